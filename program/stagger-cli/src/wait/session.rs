use core::cell::RefCell;
use core::future::{Future, pending};
use core::pin::pin;
use core::time::Duration;

use futures_util::future::{select_ok, try_join_all};
use stagger_terminal::output::line::REDRAW_INTERVAL;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::failure::{Failure, Lasting};
use super::log::{Ending, Log};
use super::poll::Polling;
use super::probe::Ready;
use super::settings::{Need, Settings};

/// How the wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ready,
    /// The time is over.
    Timeout,
    /// The attempts are used up.
    Attempts,
    /// `--fail-fast` has met what waiting seldom changes.
    Permanent,
    Signal(i32),
}

/// Waits for the targets, `check` of each being one attempt, until they are ready, the time is over, or `signal`
/// completes.
pub(super) async fn run<C: AsyncFn() -> Result<Ready, Failure>>(
    settings: &Settings<'_>,
    polling: &Polling,
    checks: &[C],
    log: &RefCell<Log>,
    signal: impl Future<Output = i32>,
) -> Verdict {
    log.borrow_mut().start(&settings.policy);
    let waits = checks.iter().enumerate().map(|(index, check)| {
        // Numbered, so that clients with one seed do not ask all targets at the same time.
        let seed = settings.seed.for_call(u64::try_from(index).unwrap_or(u64::MAX));
        async move {
            let check = async || {
                log.borrow_mut().begins(index);
                check().await
            };
            polling.until_ready(seed, check, |attempt| log.borrow_mut().attempt(index, attempt)).await?;
            log.borrow_mut().ready(index);
            Ok(())
        }
    });
    let mut gathered = pin!(gather(waits, settings.need));
    let mut time_is_over = pin!(sleep_for(settings.timeout));
    let mut signal = pin!(signal);
    let mut redraw = interval(REDRAW_INTERVAL);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            signal = &mut signal => return Verdict::Signal(signal),
            gathered = &mut gathered => return match gathered {
                Ok(()) => Verdict::Ready,
                Err(failure) if settings.args.fail_fast && failure.lasts == Lasting::Permanent => Verdict::Permanent,
                Err(_) => Verdict::Attempts,
            },
            () = &mut time_is_over => return Verdict::Timeout,
            _ = redraw.tick() => log.borrow_mut().tick(),
        }
    }
}

impl Verdict {
    /// Returns the exit status, the name of the signal being passed on.
    pub(super) fn ending<'a>(self, signal_name: Option<&'a str>) -> Ending<'a> {
        let (exit, why) = match self {
            Self::Ready => (0, "ready"),
            Self::Timeout | Self::Attempts => (124, "not ready"),
            Self::Permanent => (1, "gave up"),
            // The highest signal is 64, so the sum fits a byte.
            Self::Signal(signal) => (u8::try_from(128 + signal).unwrap_or(u8::MAX), "interrupted"),
        };
        Ending { exit, signal: signal_name, why }
    }
}

/// Waits until all are ready, or any; an error ends it if the others cannot change the result.
async fn gather(
    waits: impl Iterator<Item = impl Future<Output = Result<(), Failure>>>,
    need: Need,
) -> Result<(), Failure> {
    match need {
        Need::All => try_join_all(waits).await.map(drop),
        Need::Any => select_ok(waits.map(Box::pin)).await.map(drop),
    }
}

async fn sleep_for(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use core::future::ready;
    use std::ffi::OsString;

    use stagger::time::{Clock, Tokio};
    use stagger_terminal::output::terminal::{ColorChoice, Progress, Term};
    use tokio::runtime::Builder;

    use super::*;
    use crate::cli::{Cli, Command};

    /// Waits in virtual time for targets that are ready at these times, in milliseconds; returns the verdict and when
    /// it was known.
    fn wait(flags: &[&str], ready_at: &[u128], signal: impl Future<Output = i32>) -> (Verdict, u128) {
        let names = (1..=ready_at.len()).map(|port| format!("db:{port}"));
        let words = ["stagger", "wait", "-q"].iter().chain(flags).map(OsString::from).chain(names.map(OsString::from));
        let Command::Wait(args) = Cli::parse(&words.collect::<Vec<_>>()).unwrap().command else { panic!("not a wait") };
        let settings = Settings::new(&args).unwrap();
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let began = Tokio.now();
            let now = || Tokio.now().saturating_since(began).as_millis();
            let check = |&at: &u128| {
                async move || {
                    sleep(Duration::from_millis(10)).await;
                    if now() >= at { Ok(None) } else { Err(Failure::new("refused").permanent()) }
                }
            };
            let checks: Vec<_> = ready_at.iter().map(check).collect();
            let log = RefCell::new(Log::new(&settings, &Term::detect(ColorChoice::Never, Progress::Hidden)));
            let polling = Polling::new(&settings).unwrap();
            let verdict = run(&settings, &polling, &checks, &log, signal).await;
            (verdict, now())
        })
    }

    const NEVER: u128 = u128::MAX;

    #[test]
    fn all_waits_for_the_last_and_any_for_the_first() {
        let (verdict, end) = wait(&[], &[20_000, 0, 3_000], pending());
        assert!(verdict == Verdict::Ready && (20_000..=21_600).contains(&end), "{verdict:?} {end}");
        let (verdict, end) = wait(&["--any"], &[20_000, NEVER, 3_000], pending());
        assert!(verdict == Verdict::Ready && (3_000..=4_600).contains(&end), "{verdict:?} {end}");
    }

    #[test]
    fn the_time_limit_is_exact() {
        assert_eq!(wait(&["-t", "15s"], &[0, NEVER], pending()), (Verdict::Timeout, 15_000));
        assert_eq!(wait(&[], &[NEVER], pending()), (Verdict::Timeout, 60_000));
        assert_eq!(wait(&["--any", "-t", "15s"], &[NEVER, NEVER], pending()), (Verdict::Timeout, 15_000));
        let (verdict, end) = wait(&["-t", "inf"], &[3_600_000], pending());
        assert!(verdict == Verdict::Ready && end < 3_602_000, "{verdict:?} {end}");
    }

    #[test]
    fn a_signal_ends_the_wait_at_once() {
        assert_eq!(wait(&[], &[0], ready(15)), (Verdict::Signal(15), 0));
        let later = async {
            sleep(Duration::from_millis(1_234)).await;
            2
        };
        assert_eq!(wait(&[], &[NEVER], later), (Verdict::Signal(2), 1_234));
    }

    #[test]
    fn the_first_target_without_attempts_ends_all_and_the_last_ends_any() {
        let (verdict, end) = wait(&["-n", "2"], &[NEVER, 10_000], pending());
        assert!(verdict == Verdict::Attempts && end < 500, "{verdict:?} {end}");
        assert_eq!(wait(&["-n", "2", "--any"], &[NEVER, 10], pending()).0, Verdict::Ready);
        assert_eq!(wait(&["-n", "2", "--any"], &[NEVER, NEVER], pending()).0, Verdict::Attempts);
        assert_eq!(wait(&["--fail-fast"], &[NEVER], pending()), (Verdict::Permanent, 10));
    }

    #[test]
    fn exit_statuses_are_those_of_the_help() {
        for (verdict, want) in [
            (Verdict::Ready, 0),
            (Verdict::Permanent, 1),
            (Verdict::Timeout, 124),
            (Verdict::Attempts, 124),
            (Verdict::Signal(15), 143),
            (Verdict::Signal(2), 130),
        ] {
            assert_eq!(verdict.ending(None).exit, want, "{verdict:?}");
        }
    }
}
