//! Text in, text out: everything that knows text and neither notes nor sessions.
//!
//! Nothing here touches a disk, a clock, the environment or the network. Before a text is stored it
//! passes [`sanitize`]: private regions are removed, invisible characters are removed, credentials
//! are masked, in this order.

pub mod clean;
pub mod contradiction;
pub mod glob;
pub mod hash;
pub mod privacy;
pub mod private_tokens;
pub mod prompt_text;
pub mod redact;
pub mod sanitize;
pub mod shell;
pub mod terms;
pub mod truncate;
