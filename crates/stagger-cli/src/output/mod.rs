//! What the program says: results and messages, errors, and what the terminal can show.

pub(crate) mod error;
pub(crate) mod line;
pub(crate) mod live;
pub(crate) mod terminal;
pub(crate) mod write;
