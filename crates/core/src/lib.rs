//! The vocabulary of Anamnesis: text in, text out.
//!
//! Nothing here touches a disk, a clock, the environment or the network. Modules stand in the
//! order in which a session passes through them.

pub mod id;

pub mod yaml;

pub mod note;

pub mod transcript;

pub mod privacy;

pub mod clean;

pub mod redact;

pub mod capture;
