//! What the program says: results and messages, errors and suggestions, and what the terminal can show.

pub(crate) mod error;
pub(crate) mod line;
pub(crate) mod live;
pub(crate) mod stamp;
pub(crate) mod suggestion;
pub(crate) mod target;
pub(crate) mod terminal;
pub(crate) mod write;
