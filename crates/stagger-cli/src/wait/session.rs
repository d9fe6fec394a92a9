use core::cell::RefCell;
use core::future::{Future, pending};
use core::pin::pin;
use core::time::Duration;

use futures_util::future::{select_ok, try_join_all};
use stagger_core::Policy;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::failure::{Failure, Lasting};
use super::log::{Ending, Log};
use super::poll::Polling;
use super::probe::Ready;
use super::settings::{Need, Settings};
use crate::output::live::REDRAW_INTERVAL;

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

/// Waits for the targets, `check` of each being one attempt, until they are ready, the time is over, or `signal` completes.
pub(super) async fn run<C: AsyncFn() -> Result<Ready, Failure>>(
    settings: &Settings<'_>,
    polling: &Polling,
    checks: &[C],
    log: &RefCell<Log>,
    signal: impl Future<Output = i32>,
) -> Verdict {
    log.borrow_mut().start(policy(settings));
    let waits = checks.iter().enumerate().map(|(index, check)| {
        // Numbered, so that clients with one seed do not ask all targets at the same time.
        let seed = settings.seed.for_call(u64::try_from(index).unwrap_or(u64::MAX));
        async move {
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

fn policy<'a>(settings: &'a Settings<'_>) -> &'a Policy {
    &settings.policy
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
