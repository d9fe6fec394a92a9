//! What the program says: results and messages, errors and suggestions, and what the terminal can show.

pub mod error;
pub mod line;
pub mod outside;
pub mod suggestion;
pub mod terminal;
pub mod write;
