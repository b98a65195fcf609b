//! Measures recall on the notes of the store. Measuring changes nothing that
//! recall learns from.

pub mod build;
pub mod experiment;
pub mod figures;
pub mod sandbox;
