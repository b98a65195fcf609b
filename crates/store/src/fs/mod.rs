//! The file system: paths, atomic files, kernel locks, the log.

pub mod archive;
pub mod file;
pub mod home;
pub mod lock;
pub mod log;
