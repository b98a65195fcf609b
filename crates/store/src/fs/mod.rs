//! The file system: where things are, atomic files, kernel locks, the log.

pub mod file;
pub mod home;
pub mod lock;
pub mod log;
