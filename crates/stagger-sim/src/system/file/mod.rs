//! Systems as TOML files.

mod error;
mod guards;
mod number;
mod policy;
mod read;
mod system_file;
mod table;

pub use error::{FileProblem, SystemFileError};
pub use number::{FileNumber, Unit};
pub use system_file::SystemFile;
