//! The `anamnesis` binary.

fn main() {}
