//! Removes what a person marked as private.
