//! What the tests stand on.

#[cfg(unix)]
pub mod client;
pub mod home;
pub mod messages_api;
pub mod model_server;
#[cfg(unix)]
pub mod npm;
#[cfg(unix)]
pub mod process;
#[cfg(unix)]
pub mod tmux;
