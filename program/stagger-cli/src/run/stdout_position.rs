use rustix::fs::{FileType, SeekFrom, fstat, seek};

/// Returns the offset of standard output if it is a file that standard error does not share, to determine how much a
/// failed attempt has written ahead of the output of the next one.
///
/// The command writes to standard output directly. Counting the bytes in between has drawbacks: a background process
/// would lose its output when stagger ends, and output and errors that go to the same pipe would be reordered. So this
/// works only for a file, by the offset that is shared with the command, and not for a pipe.
pub(super) fn stdout_position() -> Option<u64> {
    let (stdout, stderr) = (fstat(rustix::stdio::stdout()).ok()?, fstat(rustix::stdio::stderr()).ok());
    let is_file = FileType::from_raw_mode(stdout.st_mode) == FileType::RegularFile;
    let is_shared = stderr.is_some_and(|stderr| (stderr.st_dev, stderr.st_ino) == (stdout.st_dev, stdout.st_ino));
    if is_file && !is_shared { seek(rustix::stdio::stdout(), SeekFrom::Current(0)).ok() } else { None }
}
