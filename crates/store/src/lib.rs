//! Everything Anamnesis keeps on disk.
