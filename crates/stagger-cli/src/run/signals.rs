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

/// Signals that end the run.
const END: [i32; 5] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM];
/// Signals that are the command's business alone. Left to themselves, the first two would end stagger and leave the
/// command behind.
const PASS_ON: [i32; 3] = [SIGUSR1, SIGUSR2, SIGWINCH];

/// The signals that came for this process, as something that can be waited for.
#[derive(Debug)]
pub(super) struct Signals {
    delivery: SignalDelivery<UnixStream, WithOrigin>,
    end: Arc<AtomicBool>,
}

/// A signal that came for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caught {
    pub(super) signal: i32,
    /// The terminal has sent it (^C, ^\, ^Z, hang-up), to the whole foreground group at once.
    pub(super) from_terminal: bool,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// End the run.
    End(Caught),
    /// Hand it to the command.
    PassOn(Caught),
    /// Stop until further notice (^Z).
    Stop(Caught),
    /// Go on.
    Continue,
}

impl Signals {
    /// Takes over every signal that would end or stop this process, except those it was started to ignore
    /// (`nohup`, background jobs of a shell without job control).
    pub(super) fn catch() -> io::Result<Self> {
        // A parent that waits for signals in its own way may have left them blocked, and a blocked SIGCHLD would make
        // us sleep through the end of every command.
        let _ = nix::sys::signal::SigSet::all().thread_unblock();

        let ignored = ignored_signals();
        let wanted = END.into_iter().chain(PASS_ON).chain([SIGTSTP]).filter(|&signal| !contains(ignored, signal));
        let wanted = wanted.chain([SIGCHLD, SIGCONT]);
        let (read, write) = UnixStream::pair()?;
        let delivery = SignalDelivery::with_pipe(read, write, WithOrigin::default(), wanted)?;
        let end = Arc::new(AtomicBool::new(false));
        for signal in END.into_iter().filter(|&signal| !contains(ignored, signal)) {
            signal_hook::flag::register(signal, Arc::clone(&end))?;
        }
        Ok(Self { delivery, end })
    }

    /// Readable when a signal has come.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    /// Set as soon as a signal asks to end the run, also in the middle of a write.
    pub(super) fn end_flag(&self) -> &Arc<AtomicBool> {
        &self.end
    }

    /// What has come since the last call, the most urgent first.
    pub(super) fn take(&mut self) -> Vec<Notice> {
        in_order(self.delivery.pending().filter_map(|origin| notice(&origin)).collect())
    }

    /// The same while no command runs: stops here if asked to, with `before_stop` done first, and tells whether the run
    /// shall end.
    pub(super) fn take_idle(&mut self, mut before_stop: impl FnMut()) -> Option<Caught> {
        for notice in self.take() {
            match notice {
                Notice::End(caught) => return Some(caught),
                Notice::Stop(_) => {
                    before_stop();
                    Self::stop_here();
                }
                Notice::PassOn(_) | Notice::Continue => {}
            }
        }
        None
    }

    /// Stops this process as ^Z would, and returns when it is continued.
    pub(super) fn stop_here() {
        let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
    }
}

fn notice(origin: &Origin) -> Option<Notice> {
    let signal = origin.signal;
    let from_terminal = match origin.cause {
        Cause::Kernel => true,
        // Where the system does not tell, these three are far more often typed than sent.
        Cause::Unknown => [SIGINT, SIGQUIT, SIGTSTP].contains(&signal),
        _ => false,
    };
    let caught = Caught { signal, from_terminal };
    match signal {
        // Whoever is woken by it looks at the child anyway.
        SIGCHLD => None,
        SIGCONT => Some(Notice::Continue),
        SIGTSTP => Some(Notice::Stop(caught)),
        signal if END.contains(&signal) => Some(Notice::End(caught)),
        _ => Some(Notice::PassOn(caught)),
    }
}

/// The order of arrival is not known. Ends come first; a stop that was followed by a continue must not be obeyed
/// after it, or nobody would ever wake us.
fn in_order(mut notices: Vec<Notice>) -> Vec<Notice> {
    if notices.contains(&Notice::Continue) {
        notices.retain(|notice| !matches!(notice, Notice::Stop(_)));
    }
    notices.sort_by_key(|notice| match notice {
        Notice::End(_) => 0,
        Notice::PassOn(_) => 1,
        Notice::Stop(_) => 2,
        Notice::Continue => 3,
    });
    notices
}

/// Which signals this process was started to ignore: bit `n - 1` for signal `n`.
///
/// Asking the system itself needs `unsafe`; Linux also tells it in a file. Elsewhere none is taken as ignored.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn contains(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_was_already_continued_is_not_obeyed() {
        let caught = |signal| Caught { signal, from_terminal: true };
        let stop = Notice::Stop(caught(SIGTSTP));
        assert_eq!(in_order(vec![stop, Notice::Continue]), [Notice::Continue]);
        assert_eq!(in_order(vec![stop]), [stop]);
        let end = Notice::End(caught(SIGTERM));
        assert_eq!(in_order(vec![Notice::Continue, stop, end]), [end, Notice::Continue]);
    }
}
