//! Systems as TOML files.

mod error;
mod policy;
mod read;
mod system_file;
mod table;

pub use error::{FileProblem, SystemFileError};
pub use system_file::SystemFile;
pub use table::{FileNumber, Unit};
