//! What the tests stand on.

pub mod messages_api;
