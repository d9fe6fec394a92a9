//! Findings in files: where they are, and the change of the file that fixes them.

mod finding;
mod fix;
mod place;

pub use finding::FileFinding;
pub use fix::{Edit, Fix};
pub use place::Place;
