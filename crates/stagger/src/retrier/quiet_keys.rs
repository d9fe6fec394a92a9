//! Quiet periods by key, of which there are only those that the server has asked for.

use core::cell::Cell;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, OnceLock};

use stagger_core::guard::{Limiter, LimiterPermit, Now};
use stagger_core::quiet::{QuietPeriod, QuietSnapshot, QuietTrigger};
use stagger_core::{FailureKind, Instant, Outcome, Policy, Seed, ServerHint};

use crate::control::keyed::Keyed;

/// The quiet periods of a retrier's keys. A key has one from the first hint on, until it is at rest again: while no
/// server asks for quiet, a call costs the question whether there is any.
#[derive(Debug)]
pub(crate) struct QuietKeys {
    /// The quiet period with the settings of all.
    model: Box<QuietPeriod>,
    /// Created for the first client that has keys.
    table: OnceLock<Option<Box<QuietTable>>>,
}

#[derive(Debug)]
struct QuietTable {
    periods: Keyed<u64, KeyQuiet>,
    /// Never pauses: it learns the rate at which calls to all keys are admitted.
    all: QuietPeriod,
    shares: KeyShares,
    /// When quiet periods that nobody needs any more were last looked for, in nanoseconds.
    swept: AtomicU64,
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    ended: Arc<EndedTotals>,
}

/// How often quiet periods whose keys are not used any more are looked for, in nanoseconds.
const SWEEP: u64 = 1_000_000_000;

/// The quiet period of one key.
#[derive(Debug)]
pub(crate) struct KeyQuiet {
    quiet: QuietPeriod,
    ended: Arc<EndedTotals>,
}

impl KeyQuiet {
    /// Returns whether it has nothing to remember.
    pub(crate) fn is_unneeded(&self, now: Instant) -> bool {
        self.quiet.is_at_rest(&now)
    }
}

impl Deref for KeyQuiet {
    type Target = QuietPeriod;

    fn deref(&self) -> &QuietPeriod {
        &self.quiet
    }
}

impl Drop for KeyQuiet {
    fn drop(&mut self) {
        self.ended.add(&self.quiet.snapshot(&Instant::ZERO));
    }
}

/// What has happened in quiet periods that are no longer there.
#[derive(Debug, Default)]
struct EndedTotals {
    pauses: AtomicU64,
    waited: AtomicU64,
    rejected: AtomicU64,
    would_have_held: AtomicU64,
}

impl EndedTotals {
    fn add(&self, seen: &QuietSnapshot) {
        for (total, count) in [
            (&self.pauses, seen.pauses),
            (&self.waited, seen.waited),
            (&self.rejected, seen.rejected),
            (&self.would_have_held, seen.would_have_held),
        ] {
            total.fetch_add(count, Ordering::Relaxed);
        }
    }
}

impl QuietKeys {
    /// Creates quiet periods with the settings of this one for every key.
    pub(crate) fn with_settings_of(model: &QuietPeriod) -> Option<Self> {
        Some(Self { model: Box::new(model.fresh()?), table: OnceLock::new() })
    }

    /// Prepares for calls with keys.
    pub(crate) fn prepare(&self) {
        self.table.get_or_init(|| QuietTable::new(self.model.fresh()?).map(Box::new));
    }

    fn table(&self) -> Option<&QuietTable> {
        self.table.get()?.as_deref()
    }

    /// Returns the quiet period of this key, if there is one. Without any, neither is called.
    #[inline]
    pub(crate) fn known(&self, key: impl FnOnce() -> u64, now: impl FnOnce() -> Instant) -> Option<Arc<KeyQuiet>> {
        let table = self.table().filter(|table| !table.periods.is_empty())?;
        table.known(key(), now())
    }

    /// Counts a success, so that the rate is known if it is needed.
    #[inline]
    pub(crate) fn count_success(&self, key: impl FnOnce() -> u64, now: impl Fn() -> Instant) {
        let Some(table) = self.table() else { return };
        let reading = WatchedClock { read: now, was_read: Cell::new(false) };
        table.all.record(LimiterPermit::NONE, &Outcome::Success, &reading);
        if reading.was_read.get() {
            table.shares.plan(reading.now());
        }
        table.shares.count(key);
    }

    /// Returns the quiet period of this key, to begin a pause. `None` if there are too many keys.
    pub(crate) fn asked_for(&self, key: u64, now: Instant) -> Option<Arc<KeyQuiet>> {
        let table = self.table()?;
        let quiet = table.periods.own(&key, now)?;
        quiet.assume_interval(table.all.learned_interval(&now).saturating_mul(table.shares.keys_like(key)));
        Some(quiet)
    }

    /// Returns the pause that the server asks all calls for, if the policy follows it.
    pub(crate) fn hint_for_everybody(outcome: &Outcome, policy: &Policy) -> Option<Duration> {
        let Outcome::Failed { kind: FailureKind::Throttled, hint: Some(hint) } = *outcome else { return None };
        match policy.followed(hint) {
            Some(ServerHint::AtLeast(length)) if !length.is_zero() => Some(length),
            _ => None,
        }
    }

    /// Returns whether this is a refusal that can begin a pause together with others.
    pub(crate) fn counts(&self, outcome: &Outcome) -> bool {
        let is_refusal = matches!(
            outcome,
            Outcome::Failed { kind: FailureKind::Throttled, hint: None }
                | Outcome::UnsafeToRetry(FailureKind::Throttled)
        );
        is_refusal && self.table().is_some_and(|table| table.all.trigger() == QuietTrigger::HintsAndRefusals)
    }

    /// Removes quiet periods that have nothing to remember and that no call holds.
    #[cold]
    pub(crate) fn sweep(&self, now: Instant) {
        if let Some(table) = self.table() {
            table.sweep(now);
        }
    }

    /// Calls `show` with every quiet period, and returns the sums of those that are no longer there; `None` if no
    /// client has keys.
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub(crate) fn for_each(&self, mut show: impl FnMut(&QuietPeriod)) -> Option<[u64; 4]> {
        let table = self.table()?;
        table.periods.for_each(|_, quiet| show(quiet));
        let EndedTotals { pauses, waited, rejected, would_have_held } = &*table.ended;
        Some([pauses, waited, rejected, would_have_held].map(|total| total.load(Ordering::Relaxed)))
    }

    /// Returns how many keys have a quiet period.
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub(crate) fn len(&self) -> usize {
        self.table().map_or(0, |table| table.periods.len())
    }
}

impl QuietTable {
    /// Creates a table without quiet periods.
    fn new(model: QuietPeriod) -> Option<Self> {
        let ended = Arc::new(EndedTotals::default());
        let all = model.fresh()?;
        let make = {
            let ended = Arc::clone(&ended);
            move || KeyQuiet { quiet: model.fresh().unwrap_or_default(), ended: Arc::clone(&ended) }
        };
        let periods = Keyed::new(make, |quiet: &KeyQuiet, now| quiet.is_at_rest(now))
            .keep_if(|quiet, now| !quiet.retry_in(now).is_zero());
        Some(Self {
            periods,
            all,
            shares: KeyShares::default(),
            swept: AtomicU64::new(0),
            #[cfg(any(feature = "metrics", feature = "tracing"))]
            ended,
        })
    }

    #[cold]
    fn known(&self, key: u64, now: Instant) -> Option<Arc<KeyQuiet>> {
        let swept = self.swept.load(Ordering::Relaxed);
        if now.as_nanos().saturating_sub(swept) >= SWEEP {
            self.sweep(now);
        }
        self.periods.known(&key, now)
    }

    fn sweep(&self, now: Instant) {
        self.swept.store(now.as_nanos(), Ordering::Relaxed);
        self.periods.sweep(now);
    }
}

/// How often each key was called lately: the keys of the last 64 of the calls that are looked at, about every 256th,
/// because the key of a request costs more than the rest of a call.
#[derive(Debug)]
struct KeyShares {
    /// Zero is none.
    keys: [AtomicU64; 64],
    next: AtomicUsize,
    /// After how many successes one is looked at; zero if none is. A random number, because a caller may take turns
    /// between its keys.
    after: AtomicU64,
}

impl Default for KeyShares {
    fn default() -> Self {
        Self { keys: [const { AtomicU64::new(0) }; 64], next: AtomicUsize::new(0), after: AtomicU64::new(0) }
    }
}

impl KeyShares {
    /// Plans to look at one of the next eight successes, every eighth time.
    #[cold]
    fn plan(&self, now: Instant) {
        // A seed for the time, so that calls at regular times do not select the same key every time.
        let bits = Seed::new(0).for_call(now.as_nanos()).get() >> 58;
        if bits % 8 == 0 {
            self.after.store(bits / 8 + 1, Ordering::Relaxed);
        }
    }

    /// Counts one success, and looks at its key if that is planned.
    #[inline]
    fn count(&self, key: impl FnOnce() -> u64) {
        let after = self.after.load(Ordering::Relaxed);
        if after > 0 {
            self.after.store(after - 1, Ordering::Relaxed);
            if after == 1 {
                let place = self.next.fetch_add(1, Ordering::Relaxed) % self.keys.len();
                self.keys[place].store(key().max(1), Ordering::Relaxed);
            }
        }
    }

    /// Returns how many keys there would be if all were called as often as this one.
    fn keys_like(&self, key: u64) -> u32 {
        let (mut all, mut same) = (0_u32, 0_u32);
        for seen in &self.keys {
            let seen = seen.load(Ordering::Relaxed);
            all += u32::from(seen != 0);
            same += u32::from(seen == key.max(1));
        }
        all.max(1).div_ceil(same.max(1))
    }
}

/// A clock, and whether it was read.
struct WatchedClock<F> {
    read: F,
    was_read: Cell<bool>,
}

impl<F: Fn() -> Instant> Now for WatchedClock<F> {
    fn now(&self) -> Instant {
        self.was_read.set(true);
        (self.read)()
    }
}
