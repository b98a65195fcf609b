//! Test programs that run the whole program as its users do: killed and raced, on three machines that
//! sync, with hostile inputs, and in the real client. Each is a task of `cargo xtask`.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod adversary;
#[cfg(unix)]
pub mod crash;
#[cfg(unix)]
pub mod e2e;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod machines;
pub mod screen;

#[cfg(unix)]
use anamnesis_lab::{Result, at, plugin, python_version, root, run, target_folder};
