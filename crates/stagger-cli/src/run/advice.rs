use core::time::Duration;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use stagger_core::text::parse_duration;
use tempfile::NamedTempFile;

/// The file that `STAGGER_ADVICE` names, in which the command may write instructions for the next attempt.
#[derive(Debug)]
pub(super) struct AdviceFile {
    file: NamedTempFile,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Advice {
    /// Whether to stop retrying.
    pub(super) stop: bool,
    /// Minimum delay before the next attempt.
    pub(super) retry_after: Option<Duration>,
    /// Lines that are not valid instructions, cut to 40 characters.
    pub(super) unknown: Vec<String>,
}

/// Maximum length in bytes; anything beyond is ignored.
const MAX_LEN: u64 = 4096;

impl AdviceFile {
    /// Creates an empty file in the directory for temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("stagger-advice-");
        // In a container whose files are read-only, this one place is writable on Linux.
        let file = builder.tempfile().or_else(|error| builder.tempfile_in("/dev/shm").map_err(|_| error))?;
        Ok(Self { file })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Reads the file and truncates it for the next attempt. The command may have replaced or removed it, so it is opened
    /// by path. Fails, and puts a plain file in its place, if it is anything else: opening a FIFO would block, and behind a
    /// link is a file that is not ours to empty.
    pub(super) fn take(&self) -> io::Result<Advice> {
        match self.read() {
            Ok(bytes) => Ok(Advice::parse(&String::from_utf8_lossy(&bytes))),
            Err(error) => {
                let _ = fs::remove_file(self.path());
                // Nobody else may have put a file there in the meantime.
                let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path());
                if error.kind() == io::ErrorKind::NotFound { Ok(Advice::default()) } else { Err(error) }
            }
        }
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let not_plain = || io::Error::other("the advice file is not a plain file");
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(self.path());
        let mut file =
            file.map_err(|error| if error.kind() == io::ErrorKind::NotFound { error } else { not_plain() })?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            return Err(not_plain());
        }
        let mut bytes = Vec::new();
        if (&mut file).take(MAX_LEN).read_to_end(&mut bytes)? > 0 {
            file.set_len(0)?;
        }
        Ok(bytes)
    }
}

impl Advice {
    fn parse(text: &str) -> Self {
        let mut advice = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let length = line.split_once('=').filter(|(key, _)| key.trim() == "retry-after");
            match length.map(|(_, length)| parse_duration(length)) {
                Some(Ok(Some(length))) => advice.retry_after = Some(length),
                // "retry-after=never"
                Some(Ok(None)) => advice.stop = true,
                None if line == "stop" => advice.stop = true,
                Some(Err(_)) | None => advice.unknown.push(line.chars().take(40).collect()),
            }
        }
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_parsed_line_by_line() {
        let after = |millis| Some(Duration::from_millis(millis));
        for (text, stop, retry_after, unknown) in [
            ("", false, None, &[][..]),
            ("retry-after=30\n", false, after(30_000), &[]),
            ("retry-after = 1.5s", false, after(1_500), &[]),
            ("retry-after=1\nretry-after=2\n", false, after(2_000), &[]),
            ("stop", true, None, &[]),
            ("retry-after=5\nstop\n", true, after(5_000), &[]),
            ("retry-after=never", true, None, &[]),
            ("retry after 5", false, None, &["retry after 5"]),
            ("retry-after=soon", false, None, &["retry-after=soon"]),
        ] {
            let want = Advice { stop, retry_after, unknown: unknown.iter().map(|&word| word.to_owned()).collect() };
            assert_eq!(Advice::parse(text), want, "{text:?}");
        }
    }

    #[test]
    fn advice_is_consumed_when_read() {
        let file = AdviceFile::new().unwrap();
        assert_eq!(file.take().unwrap(), Advice::default());
        fs::write(file.path(), "stop").unwrap();
        assert!(file.take().unwrap().stop);
        assert!(!file.take().unwrap().stop);
        fs::remove_file(file.path()).unwrap();
        assert_eq!(file.take().unwrap(), Advice::default());
    }
}
