//! Masks credentials.
