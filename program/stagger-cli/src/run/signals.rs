use core::sync::atomic::AtomicBool;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use super::process_tree;

/// Signals that end the run.
pub(crate) const TERMINATING: [i32; 5] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM];
/// Signals that are only forwarded to the command. With their default action, the first two would end stagger and
/// orphan the command.
const FORWARDED: [i32; 3] = [SIGUSR1, SIGUSR2, SIGWINCH];

/// The signals received by this process, as a descriptor that can be polled.
#[derive(Debug)]
pub(super) struct Signals {
    delivery: SignalDelivery<UnixStream, WithOrigin>,
    /// Set as soon as a signal requests the end of the run, even during a write.
    pub(super) terminate: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CaughtSignal {
    pub(super) signal: i32,
    /// Whether the terminal has sent it (^C, ^\, ^Z, hang-up) to the whole foreground group at once.
    pub(super) from_terminal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalRequest {
    Terminate(CaughtSignal),
    Forward(CaughtSignal),
    /// Stop until continued (^Z).
    Stop(CaughtSignal),
    Continue,
}

impl Signals {
    /// Installs handlers for every signal that would end or stop this process, except those that it inherited as
    /// ignored (`nohup`, background jobs of a shell without job control).
    pub(super) fn catch() -> io::Result<Self> {
        // The parent may have left signals blocked, and with SIGCHLD blocked the end of the command would go unnoticed.
        let _ = nix::sys::signal::SigSet::all().thread_unblock();

        let ignored = ignored_signals();
        let wanted =
            TERMINATING.into_iter().chain(FORWARDED).chain([SIGTSTP]).filter(|&signal| !contains(ignored, signal));
        let wanted = wanted.chain([SIGCHLD, SIGCONT]);
        let (read, write) = UnixStream::pair()?;
        let delivery = SignalDelivery::with_pipe(read, write, WithOrigin::default(), wanted)?;
        let terminate = Arc::new(AtomicBool::new(false));
        for signal in TERMINATING.into_iter().filter(|&signal| !contains(ignored, signal)) {
            signal_hook::flag::register(signal, Arc::clone(&terminate))?;
        }
        Ok(Self { delivery, terminate })
    }

    /// Returns a descriptor that is readable when a signal has arrived.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    /// Returns the requests received since the last call, the most urgent first.
    pub(super) fn take(&mut self) -> Vec<SignalRequest> {
        by_urgency(self.delivery.pending().filter_map(|origin| request(&origin)).collect())
    }

    /// Handles the requests received while no command runs: on a stop request, calls `before_stop` and stops this
    /// process. Reaps orphans that have ended. Returns the signal that requests the end of the run, if any.
    pub(super) fn take_idle(&mut self, mut before_stop: impl FnMut()) -> Option<CaughtSignal> {
        // It fails only if there are no child processes.
        let _ = process_tree::reap(|_, _| {});
        for request in self.take() {
            match request {
                SignalRequest::Terminate(caught) => return Some(caught),
                SignalRequest::Stop(_) => {
                    before_stop();
                    Self::stop_self();
                }
                SignalRequest::Forward(_) | SignalRequest::Continue => {}
            }
        }
        None
    }

    /// Stops this process as ^Z would, and returns when it is continued.
    pub(super) fn stop_self() {
        let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
    }
}

fn request(origin: &Origin) -> Option<SignalRequest> {
    let signal = origin.signal;
    let from_terminal = match origin.cause {
        Cause::Kernel => true,
        // If the system does not report the sender, these three are most likely typed at the terminal.
        Cause::Unknown => [SIGINT, SIGQUIT, SIGTSTP].contains(&signal),
        _ => false,
    };
    let caught = CaughtSignal { signal, from_terminal };
    match signal {
        // It only wakes the wait, after which the child is polled anyway.
        SIGCHLD => None,
        SIGCONT => Some(SignalRequest::Continue),
        SIGTSTP => Some(SignalRequest::Stop(caught)),
        signal if TERMINATING.contains(&signal) => Some(SignalRequest::Terminate(caught)),
        _ => Some(SignalRequest::Forward(caught)),
    }
}

/// Sorts requests by urgency, since the order of arrival is not known. Termination comes first. A stop is dropped if a
/// continue arrived too: stopping after it would suspend the process with nothing left to continue it.
fn by_urgency(mut requests: Vec<SignalRequest>) -> Vec<SignalRequest> {
    if requests.contains(&SignalRequest::Continue) {
        requests.retain(|request| !matches!(request, SignalRequest::Stop(_)));
    }
    requests.sort_by_key(|request| match request {
        SignalRequest::Terminate(_) => 0,
        SignalRequest::Forward(_) => 1,
        SignalRequest::Stop(_) => 2,
        SignalRequest::Continue => 3,
    });
    requests
}

/// Returns the signals that this process inherited as ignored: bit `n - 1` for signal `n`.
///
/// Querying the disposition needs `unsafe`; Linux also reports it in a file. On other systems, none is assumed ignored.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Returns whether this process inherited a signal as ignored.
pub(crate) fn is_ignored(signal: i32) -> bool {
    contains(ignored_signals(), signal)
}

fn contains(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_dropped_after_a_continue() {
        let caught = |signal| CaughtSignal { signal, from_terminal: true };
        let stop = SignalRequest::Stop(caught(SIGTSTP));
        assert_eq!(by_urgency(vec![stop, SignalRequest::Continue]), [SignalRequest::Continue]);
        assert_eq!(by_urgency(vec![stop]), [stop]);
        let end = SignalRequest::Terminate(caught(SIGTERM));
        assert_eq!(by_urgency(vec![SignalRequest::Continue, stop, end]), [end, SignalRequest::Continue]);
    }
}
