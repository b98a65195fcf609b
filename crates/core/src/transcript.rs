//! Reads a Claude Code transcript as a stream.
