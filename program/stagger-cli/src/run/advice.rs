use core::time::Duration;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use stagger_core::text::{Outside, parse_duration};
use stagger_http::hint::LONGEST_WAIT;
use tempfile::NamedTempFile;

use super::http::{self, HttpClient, Response, ResponseReader, next_line};

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
    /// The last HTTP response whose headers are in the file.
    pub(super) response: Option<Response>,
    /// The first lines that are not valid instructions, cut to 40 characters.
    pub(super) unknown: Vec<String>,
}

/// Maximum length in bytes. Longer than the headers of a long chain of redirects; if the file is longer, which response
/// is the last one is unknown, and all of them are ignored.
const MAX_LEN: u64 = 16 * 1024 * 1024;

/// Maximum length of a line in bytes; anything beyond is ignored.
const MAX_LINE: usize = 16 * 1024;

const MAX_UNKNOWN: usize = 3;

impl AdviceFile {
    /// Creates an empty file in the directory for temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("stagger-advice-");
        // In a container whose files are read-only, this one place is writable on Linux.
        let file = match builder.tempfile() {
            Ok(file) => file,
            Err(error) => builder.tempfile_in("/dev/shm").map_err(|_| error)?,
        };
        Ok(Self { file })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Reads the file and empties it for the next attempt. Fails, and puts a plain file in its place, if it is anything
    /// else: opening a FIFO would block, and behind a link is a file that is not ours to empty.
    pub(super) fn take(&self) -> io::Result<Advice> {
        self.take_with(MAX_LEN, |file| Advice::read(file))
    }

    /// Reads the file, the log of an HTTP client, and empties it like [`take`](Self::take). The log is passed on to
    /// `to`.
    pub(super) fn take_log(&self, client: &HttpClient, to: impl Write) -> io::Result<Advice> {
        self.take_with(u64::MAX, |file| {
            let mut to = BufWriter::new(to);
            let response = http::relay_log(file, client.prints_headers(), &mut to)?;
            to.flush()?;
            Ok(Advice { response, ..Advice::default() })
        })
    }

    /// Reads up to `max_len` bytes of the file and empties it.
    fn take_with(
        &self,
        max_len: u64,
        read: impl FnOnce(&mut BufReader<io::Take<&File>>) -> io::Result<Advice>,
    ) -> io::Result<Advice> {
        let (file, len) = match self.open() {
            Ok(opened) => opened,
            Err(error) => {
                let _ = fs::remove_file(self.path());
                // Nobody else may have put a file there in the meantime.
                let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path());
                return if error.kind() == io::ErrorKind::NotFound { Ok(Advice::default()) } else { Err(error) };
            }
        };
        if len == 0 {
            return Ok(Advice::default());
        }
        // What is appended from now on is not awaited.
        let advice = read(&mut BufReader::new((&file).take(len.min(max_len))));
        let _ = file.set_len(0);
        let mut advice = advice.unwrap_or_default();
        if len > max_len {
            // Which response is the last one is unknown.
            advice.response = None;
        }
        Ok(advice)
    }

    /// Opens the file by path, because the command may have replaced or removed it. Returns its length, too.
    fn open(&self) -> io::Result<(File, u64)> {
        let not_plain = || io::Error::other("the advice file is not a plain file");
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags.bits().cast_signed()).open(self.path());
        let file = file.map_err(|error| if error.kind() == io::ErrorKind::NotFound { error } else { not_plain() })?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            return Err(not_plain());
        }
        Ok((file, metadata.len()))
    }
}

impl Advice {
    /// Reads instructions, and the headers of HTTP responses.
    fn read(mut file: impl BufRead) -> io::Result<Self> {
        let (mut advice, mut headers) = (Self::default(), ResponseReader::default());
        let mut line = Vec::new();
        while next_line(&mut file, &mut line, MAX_LINE)? {
            let line = String::from_utf8_lossy(&line);
            if !headers.read(line.as_bytes()) {
                advice.instruct(line.trim());
            }
        }
        advice.response = headers.finish();
        Ok(advice)
    }

    fn instruct(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if line == "stop" {
            self.stop = true;
            return;
        }
        if let Some((key, length)) = line.split_once('=')
            && key.trim() == "retry-after"
            && let Ok(length) = parse_duration(length)
        {
            match length {
                // A mistake, such as a Unix time.
                Some(length) if length > LONGEST_WAIT => return self.reject(line),
                Some(length) => self.retry_after = Some(length),
                // "retry-after=never"
                None => self.stop = true,
            }
            return;
        }
        self.reject(line);
    }

    /// Keeps a line that is no valid instruction, to be shown.
    fn reject(&mut self, line: &str) {
        if self.unknown.len() < MAX_UNKNOWN {
            let start: String = line.chars().take(40).collect();
            self.unknown.push(Outside(&start).to_string());
        }
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
            ("retry-after=366d", false, after(31_622_400_000), &[]),
            ("retry-after=1795255202", false, None, &["retry-after=1795255202"]),
            ("retry-after=1795255202000ms", false, None, &["retry-after=1795255202000ms"]),
        ] {
            let unknown = unknown.iter().map(|&word| word.to_owned()).collect();
            let want = Advice { stop, retry_after, unknown, response: None };
            assert_eq!(Advice::read(text.as_bytes()).unwrap(), want, "{text:?}");
        }
    }

    #[test]
    fn headers_are_read_beside_instructions() {
        let text = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nstop\r\n\r\nretry-after=30\nX: trailer\n";
        let advice = Advice::read(text.as_bytes()).unwrap();
        assert_eq!((advice.stop, advice.retry_after), (false, Some(Duration::from_secs(30))));
        assert!(advice.response.is_some() && advice.unknown.is_empty(), "{advice:?}");
    }

    #[test]
    fn unknown_lines_are_bounded_and_printable() {
        let text = format!("\u{1b}[31m{}\n", "x".repeat(100_000)).repeat(10);
        let advice = Advice::read(text.as_bytes()).unwrap();
        assert_eq!(
            advice.unknown,
            [format!(r"\u{{1b}}[31m{}", "x".repeat(35)), advice.unknown[1].clone(), advice.unknown[2].clone()]
        );
    }

    #[test]
    fn a_file_that_is_too_long_has_no_last_response() {
        let file = AdviceFile::new().unwrap();
        fs::write(file.path(), "HTTP/1.1 404 No\n\n").unwrap();
        assert!(file.take().unwrap().response.is_some());
        fs::write(file.path(), "HTTP/1.1 404 No\n\n").unwrap();
        File::options().write(true).open(file.path()).unwrap().set_len(MAX_LEN + 1).unwrap();
        assert_eq!(file.take().unwrap().response, None);
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
