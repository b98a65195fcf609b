//! What comes back from the store, and why.
