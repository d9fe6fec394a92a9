use rustix::fs::{FileType, SeekFrom, fstat, seek};

/// How much a failed attempt has already written to standard output, where it now stands before the output of the
/// next one.
///
/// The command writes there by itself, and standing in between to count would cost more than the answer is worth: a
/// background process would lose its output with us, and output and errors that go to one pipe would change places.
/// So only a file tells, by the position that we share with the command; a pipe does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct StdoutPosition {
    before: Option<u64>,
}

impl StdoutPosition {
    /// Looks before the attempt.
    pub(super) fn record() -> Self {
        Self { before: position() }
    }

    /// Looks again after it: how many bytes were written.
    pub(super) fn bytes_written(self) -> u64 {
        match (self.before, position()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => 0,
        }
    }
}

/// Where the next byte goes, if standard output is a file, and one that does not get the errors too.
fn position() -> Option<u64> {
    let (stdout, stderr) = (fstat(rustix::stdio::stdout()).ok()?, fstat(rustix::stdio::stderr()).ok());
    let is_file = FileType::from_raw_mode(stdout.st_mode) == FileType::RegularFile;
    let is_shared = stderr.is_some_and(|stderr| (stderr.st_dev, stderr.st_ino) == (stdout.st_dev, stdout.st_ino));
    if is_file && !is_shared { seek(rustix::stdio::stdout(), SeekFrom::Current(0)).ok() } else { None }
}
