use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use tokio::task::spawn_blocking;

use crate::wait::failure::Failure;

/// What a file must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileContent {
    Any,
    NonEmpty,
}

#[derive(Debug)]
pub(super) struct FileProbe {
    pub(super) path: PathBuf,
    pub(super) content: FileContent,
}

/// What tells whether a file is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileProbe {
    /// Looks at the file, which may be on a file system that does not answer, in a thread. It is not opened, so a FIFO does
    /// not block.
    pub(super) async fn look(&self) -> Result<FileState, Failure> {
        let path = self.path.clone();
        let looked = spawn_blocking(move || fs::metadata(path)).await;
        let metadata =
            looked.map_err(|error| Failure::unknown(error.to_string()))?.map_err(|error| Failure::io(&error))?;
        match (self.content, metadata.len()) {
            (FileContent::NonEmpty, 0) => Err(Failure::new("is empty")),
            (_, bytes) => Ok(FileState { bytes, modified: metadata.modified().ok() }),
        }
    }
}
