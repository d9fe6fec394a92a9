use core::sync::atomic::AtomicBool;
use std::io::{self, Write};

use rustix::stdio::stderr;

use super::fd;
use super::line_matcher::LineMatcher;

/// Standard error, for what a command has logged to a file. It is searched like what the command writes there directly.
#[derive(Debug)]
pub(super) struct Relay<'a, 'p> {
    pub(super) matcher: &'a mut LineMatcher<'p>,
    /// Cancels a blocked write.
    pub(super) cancelled: &'a AtomicBool,
}

impl Write for Relay<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.matcher.feed(bytes);
        // If standard error is closed, the log is lost, as the command's own output would be; its headers still count.
        let _ = fd::write_all(stderr(), bytes, self.cancelled);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.matcher.finish();
        Ok(())
    }
}
