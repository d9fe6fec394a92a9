use core::num::NonZeroI32;
use core::time::Duration;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::sync::Arc;

#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};
#[cfg(target_os = "linux")]
use tokio::task::spawn_blocking;

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

    /// Waits until the process has ended, which is noticed at once where the system tells it. The attempt ends before its
    /// limit, to say that the process runs.
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
