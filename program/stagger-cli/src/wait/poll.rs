use core::cell::Cell;
use core::time::Duration;

use stagger::observe::{Action, Event};
use stagger::time::{Clock, Tokio};
use stagger_core::{Outcome, Policy, PolicyError, Seed};

use super::failure::Failure;
use super::probe::Ready;
use super::settings::Settings;

/// How the attempts for one target follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polling {
    policy: Policy,
    /// While a target must stay ready: without a limit of attempts, and without the spread, which has been waited for.
    stable_policy: Policy,
    stable: Option<Duration>,
    fail_fast: bool,
}

/// An attempt that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    /// `None` if the target was ready.
    pub(super) failure: Option<&'a Failure>,
    pub(super) took: Duration,
    /// The delay before the next attempt; `None` if there is none.
    pub(super) next: Option<Duration>,
}

/// Why the time for which a target must stay ready is not over.
#[derive(Debug)]
enum Unstable {
    NotYet,
    Lost(Failure),
}

impl Polling {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Self, PolicyError> {
        let stable_policy = settings.policy.to_builder().spread(Duration::ZERO).unlimited_attempts().build()?;
        Ok(Self { policy: settings.policy, stable_policy, stable: settings.stable, fail_fast: settings.args.fail_fast })
    }

    /// Makes attempts until one finds the target ready, and it stays so for as long as it must. An error is the failure
    /// of the last attempt, if there are no more.
    pub(super) async fn until_ready(
        &self,
        seed: Seed,
        check: impl AsyncFn() -> Result<Ready, Failure>,
        report: impl Fn(&Attempt<'_>),
    ) -> Result<(), Failure> {
        let took = Cell::new(Duration::ZERO);
        let timed = async || {
            let began = Tokio.now();
            let checked = check().await;
            took.set(Tokio.now().saturating_since(began));
            checked
        };
        let mut policy = self.policy;
        for call in 0.. {
            let attempts = stagger::retry(&policy, async || timed().await)
                .classify(|failure: &Failure| failure.outcome(self.fail_fast, policy.max_hint()))
                .seed(seed.for_call(2 * call))
                .on_event(|event| {
                    report(&Attempt { failure: event.error_as(), took: took.get(), next: next(event) });
                });
            let ready = attempts.await?;
            let Some(stable) = self.stable else { return Ok(()) };
            let tell = |event: &Event<'_>| {
                let failure = match event.error_as::<Unstable>() {
                    Some(Unstable::Lost(failure)) => Some(failure),
                    _ => None,
                };
                report(&Attempt { failure, took: took.get(), next: next(event) });
            };
            if self.hold(seed.for_call(2 * call + 1), stable, ready, &timed, &tell).await {
                return Ok(());
            }
            policy = policy.to_builder().spread(Duration::ZERO).build().unwrap_or(policy);
        }
        Ok(())
    }

    /// Makes attempts for as long as the target must stay ready, and returns whether it has.
    async fn hold(
        &self,
        seed: Seed,
        stable: Duration,
        first: Ready,
        check: &impl AsyncFn() -> Result<Ready, Failure>,
        report: &impl Fn(&Event<'_>),
    ) -> bool {
        let since = Tokio.now();
        // The attempt that found it ready was the first one.
        let is_first = Cell::new(true);
        let again = async || {
            if is_first.get() {
                return Err(Unstable::NotYet);
            }
            match check().await {
                Ok(now) if now != first => Err(Unstable::Lost(Failure::new("is being changed"))),
                Ok(_) if Tokio.now().saturating_since(since) < stable => Err(Unstable::NotYet),
                Ok(_) => Ok(()),
                Err(failure) => Err(Unstable::Lost(failure)),
            }
        };
        let classify = |unstable: &Unstable| match unstable {
            Unstable::NotYet => Outcome::TRANSIENT,
            Unstable::Lost(_) => Outcome::Permanent,
        };
        let held = stagger::retry(&self.stable_policy, async || again().await).classify(classify).seed(seed);
        let held = held.on_event(|event| {
            if !is_first.replace(false) {
                report(event);
            }
        });
        held.await.is_ok()
    }
}

fn next(event: &Event<'_>) -> Option<Duration> {
    match event.action {
        Action::Retry { after, .. } => Some(after),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;
    use std::ffi::OsString;

    use tokio::runtime::Builder;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::wait::WaitArgs;
    use crate::wait::failure::Proof;

    /// Returns the flags of a wait.
    fn args(flags: &[&str]) -> WaitArgs {
        let words: Vec<_> = ["stagger", "wait", "db:1"].iter().chain(flags).map(OsString::from).collect();
        match Cli::parse(&words).unwrap().command {
            Command::Wait(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn polling(flags: &[&str]) -> Polling {
        let args = args(flags);
        Polling::new(&Settings::new(&args).unwrap()).unwrap()
    }

    /// The result, when it was known, and when each attempt was made, in milliseconds.
    type Waited = (Result<(), Failure>, u128, Vec<u128>);

    fn wait(flags: &[&str], seed: u64, state: impl Fn(u128) -> Result<Ready, Failure>) -> Waited {
        wait_as(&polling(flags), seed, state)
    }

    /// Waits in virtual time for a target that answers `state(time)`.
    fn wait_as(polling: &Polling, seed: u64, state: impl Fn(u128) -> Result<Ready, Failure>) -> Waited {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let attempts = RefCell::new(Vec::new());
        runtime.block_on(async {
            let began = Tokio.now();
            let now = || Tokio.now().saturating_since(began).as_millis();
            let check = async || {
                attempts.borrow_mut().push(now());
                state(now())
            };
            let result = polling.until_ready(Seed::new(seed), check, |_| ()).await;
            (result, now(), attempts.take())
        })
    }

    fn ready_from(start: u128) -> impl Fn(u128) -> Result<Ready, Failure> {
        move |now| if now >= start { Ok(None) } else { Err(Failure::new("refused")) }
    }

    /// For ±50 %, readiness is noticed late by `0.54` of the interval on average, and never by more than one and a half
    /// intervals; `docs/guide/wait.md` says it for the longest interval.
    #[test]
    fn readiness_is_noticed_late_by_half_an_interval_on_average() {
        const RUNS: u64 = 200;
        let polling = polling(&[]);
        for (start, most_mean, most) in [(300, 120, 300), (2_000, 350, 900), (30_000, 600, 1_500)] {
            let late = (0..RUNS).map(|seed| wait_as(&polling, seed, ready_from(start)).1 - start).collect::<Vec<_>>();
            let mean = late.iter().sum::<u128>() / u128::from(RUNS);
            assert!(mean <= most_mean, "ready at {start} ms: {mean} ms late");
            assert!(late.iter().all(|&late| late <= most), "ready at {start} ms: {late:?}");
        }
    }

    #[test]
    fn a_thousand_waits_ask_a_thousand_times_a_second_without_waves() {
        let polling = polling(&[]);
        let mut per_100_ms = vec![0; 160];
        for seed in 0..1_000 {
            for at in wait_as(&polling, seed, ready_from(14_000)).2 {
                per_100_ms[usize::try_from(at / 100).unwrap()] += 1;
            }
        }
        // From the seventh second on, when all have asked at the longest interval for some time.
        let settled = &per_100_ms[70..140];
        let mean = settled.iter().sum::<usize>() / settled.len();
        assert!((95..=105).contains(&mean), "{mean} in 100 ms");
        assert!(settled.iter().all(|&attempts| attempts < 150), "{settled:?}");
    }

    #[test]
    fn a_longer_cap_lowers_the_load() {
        let (_, _, attempts) = wait(&["--cap", "10s"], 1, ready_from(300_000));
        assert!(attempts.len() < 60, "{attempts:?}");
    }

    #[test]
    fn a_retry_after_is_respected_up_to_max_hint() {
        for (asked, least, most) in [(2_000, 2_000, 3_500), (3_600_000, 30_000, 35_000)] {
            let state = |now| match now {
                0 => Err(Failure { retry_after: Some(Duration::from_millis(asked)), ..Failure::new("503") }),
                _ => Ok(None),
            };
            let (result, end, attempts) = wait(&[], 1, state);
            assert_eq!((result, attempts.len()), (Ok(()), 2));
            assert!((least..=most).contains(&end), "asked for {asked} ms: {end} ms");
        }
    }

    #[test]
    fn a_target_must_stay_ready() {
        // Ready from 1 s on, but not between 2 s and 3 s.
        let flapping =
            |now| if now < 1_000 || (2_000..3_000).contains(&now) { Err(Failure::new("refused")) } else { Ok(None) };
        let (result, end, _) = wait(&["--stable", "2s"], 1, flapping);
        assert_eq!(result, Ok(()));
        assert!((5_000..=7_500).contains(&end), "{end} ms");
    }

    #[test]
    fn limits_of_attempts_do_not_end_the_stable_time() {
        let (result, end, attempts) = wait(&["--stable", "10s", "-n", "2"], 1, ready_from(0));
        assert_eq!(result, Ok(()));
        assert!(end >= 10_000 && attempts.len() > 10, "{attempts:?}");
    }

    #[test]
    fn max_attempts_ends_with_the_last_failure() {
        let (result, _, attempts) = wait(&["-n", "3"], 1, ready_from(u128::MAX));
        assert_eq!(result, Err(Failure::new("refused")));
        assert_eq!(attempts.len(), 3);
    }

    #[test]
    fn only_fail_fast_gives_up_on_permanent_failures() {
        let missing = |now| if now < 5_000 { Err(Failure::new("no such name").permanent()) } else { Ok(None) };
        assert_eq!(wait(&[], 1, missing).0, Ok(()));
        let (result, end, _) = wait(&["--fail-fast"], 1, missing);
        assert_eq!((result, end), (Err(Failure::new("no such name").permanent()), 0));
        let passing = |now| if now < 5_000 { Err(Failure::unknown("no answer")) } else { Ok(None) };
        assert_eq!(wait(&["--fail-fast"], 1, passing).0, Ok(()));
    }

    #[test]
    fn limits_of_a_given_policy_are_not_used() {
        let (result, _, attempts) =
            wait(&["-p", "constant delay=1s max-attempts=3 max-elapsed=5s"], 1, ready_from(20_000));
        assert_eq!(result, Ok(()));
        assert!(attempts.len() > 10, "{attempts:?}");
    }

    #[test]
    fn a_lookup_that_may_succeed_later_proves_nothing() {
        let failed = |text: &'static str| {
            let error = std::io::Error::other(format!("failed to lookup address information: {text}"));
            Failure::lookup("db", &error)
        };
        assert_eq!(failed("Temporary failure in name resolution").proof, Proof::Unknown);
        let missing = failed("Name or service not known");
        assert_eq!(missing, Failure::new("cannot look up db: Name or service not known").permanent());
    }
}
