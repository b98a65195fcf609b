//! Shared helpers for tests: a temporary home, mock servers, the real client, time limits.

#[cfg(unix)]
pub mod client;
pub mod home;
mod linear;
pub mod messages_api;
pub mod model_server;
#[cfg(unix)]
pub mod npm;
#[cfg(unix)]
pub mod process;
mod sources;
pub mod tiny_model;
#[cfg(unix)]
pub mod tmux;
#[cfg(unix)]
pub mod viewer;
mod wait;

pub use self::{
    linear::assert_linear,
    sources::rust_files,
    wait::{poll, wait_for},
};
