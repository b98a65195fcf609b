//! The viewer: the memory as pages in a browser, while a person looks at them.
//!
//! [`Server`] listens on 127.0.0.1 inside the process of `anamnesis open` and ends with the last
//! page. `routes` lists the pages, `guard` decides which requests are answered, and every operation
//! is one of `anamnesis_app`. See `docs/decisions/0060-viewer.md`.

mod answer;
mod chart;
mod events;
mod guard;
mod kept;
mod layout;
mod markdown;
mod pages;
mod proof;
mod routes;
mod server;
mod site;
mod streams;
mod visit;

pub use proof::proof_html;
pub use routes::names;
pub use server::{Options, Server};

#[cfg(test)]
mod tests;
