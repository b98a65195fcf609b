//! Text processing that knows neither notes nor sessions.
//!
//! Nothing here touches the disk, the clock, the environment or the network. [`sanitize`] makes a
//! text safe to store: it removes private regions, then invisible characters, then masks
//! credentials.

pub mod clean;
pub mod correction;
pub mod glob;
pub mod hash;
mod joiner;
pub mod privacy;
pub mod private_tokens;
pub mod prompt_text;
pub mod redact;
pub mod sanitize;
pub mod shell;
pub mod similarity;
pub mod statement;
pub mod surrogates;
pub mod terms;
pub mod truncate;
pub mod values;
pub mod word_list;
