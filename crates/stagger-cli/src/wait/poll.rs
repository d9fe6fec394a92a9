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

    /// Makes attempts until one finds the target ready, and it stays so for as long as it must. An error is the failure of
    /// the last attempt, if there are no more.
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
