//! What the program says: results and messages, errors and suggestions, and what the terminal can show.

pub mod error;
pub mod line;
pub mod live;
pub mod stamp;
pub mod suggestion;
pub mod target;
pub mod terminal;
pub mod write;
