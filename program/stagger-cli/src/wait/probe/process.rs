use core::num::NonZeroI32;
use core::time::Duration;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};
use stagger_core::text::Outside;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
#[cfg(target_os = "linux")]
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::run::SignalName;
use crate::wait::failure::Failure;

/// The longest attempt: the thread of one that is no longer needed ends after it.
#[cfg(target_os = "linux")]
const LONGEST: Duration = Duration::from_secs(1);

/// A process whose end is waited for.
#[derive(Debug)]
pub(super) struct ProcessProbe {
    pid: Pid,
    /// The process itself, so that another one with the same number is not taken for it. `None` if the system has none.
    #[cfg(target_os = "linux")]
    descriptor: Option<Arc<OwnedFd>>,
}

impl ProcessProbe {
    pub(super) fn new(pid: NonZeroI32) -> Self {
        let pid = Pid::from_raw(pid.get()).unwrap_or(Pid::INIT);
        Self {
            pid,
            #[cfg(target_os = "linux")]
            descriptor: pidfd_open(pid, PidfdFlags::empty()).ok().map(Arc::new),
        }
    }

    /// Waits until the process has ended, which is noticed at once where the system tells it. The attempt ends before
    /// its limit, to say that the process runs.
    pub(super) async fn wait_for_end(&self, limit: Duration) -> Result<(), Failure> {
        #[cfg(target_os = "linux")]
        if let Some(descriptor) = &self.descriptor {
            let descriptor = Arc::clone(descriptor);
            // A thread, because the runtime polls only what it can register safely.
            let ended = spawn_blocking(move || {
                let mut fds = [PollFd::new(&descriptor, PollFlags::IN)];
                let limit = Timespec::try_from(limit.mul_f64(0.9).min(LONGEST)).ok();
                matches!(poll(&mut fds, limit.as_ref()), Ok(1..))
            });
            return if ended.await.unwrap_or(false) { Ok(()) } else { Err(Failure::new("is running")) };
        }
        let _ = limit;
        // A process of another user may not be signaled, and exists.
        match test_kill_process(self.pid) {
            Err(Errno::SRCH) => Ok(()),
            _ => Err(Failure::new("is running")),
        }
    }
}

/// The most bytes kept of what a command writes to standard error, of which the last line is shown.
const KEPT: usize = 4096;

/// Time for the rest of standard error after the command has ended: a process that it left behind may hold it open.
const REST: Duration = Duration::from_millis(50);

/// Runs a shell command, which is ready if it exits with 0. Dropping the future kills it and its process group.
pub(super) async fn run_command(command: &str) -> Result<(), Failure> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Group(shell.spawn().map_err(|error| Failure::unknown(format!("cannot run /bin/sh: {error}")))?);
    let last = Arc::new(Mutex::new(Vec::new()));
    let reader = child.0.stderr.take().map(|stderr| tokio::spawn(keep_end(stderr, Arc::clone(&last))));
    let status = child.0.wait().await.map_err(|error| Failure::unknown(error.to_string()))?;
    if let Some(mut reader) = reader {
        let _ = timeout(REST, &mut reader).await;
        reader.abort();
    }
    if status.success() {
        return Ok(());
    }
    let last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let line = last_line(&last).map(|line| format!(": {line}")).unwrap_or_default();
    let failure = Failure::new(format!("{}{line}", ended(status)));
    // The shell's codes for a command that is not there or cannot be executed.
    Err(if matches!(status.code(), Some(126 | 127)) { failure.permanent() } else { failure })
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by {}", SignalName(signal)),
        (None, None) => status.to_string(),
    }
}

/// Reads to the end and keeps the last bytes.
async fn keep_end(mut stderr: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; KEPT];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..n]);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
    }
}

/// Returns the last line that is not empty, without what a terminal would obey.
fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| Outside::shows(*c)).take(200).collect())
}

/// A child that leads its process group.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // It has no number once its end was noticed, so the number cannot belong to another process.
        let pid = self.0.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_shown_without_control_characters() {
        for (bytes, want) in [
            (&b"a\nno answer\n\n"[..], Some("no answer")),
            (b"\x1b[31mred\r\n", Some("[31mred")),
            (b" \n", None),
            (b"", None),
            (b"\xff", Some("\u{fffd}")),
        ] {
            assert_eq!(last_line(bytes).as_deref(), want, "{bytes:?}");
        }
        assert_eq!(last_line(&[b'x'; KEPT]).map(|line| line.len()), Some(200));
    }
}
