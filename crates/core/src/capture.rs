//! Turns a session into the text of its note.
