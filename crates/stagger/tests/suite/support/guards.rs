//! Guards that record how they are used. Giving back a permit that is not outstanding fails the test.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use stagger::guard::{Answer, Ask, End, Now, Permit, ServerHealth};
use stagger::{FailureKind, Guard, Instant, Outcome};

/// A breaker that opens for a fixed time after a number of consecutive failures, and records its use as
/// [`RecordingBudget`] does.
#[derive(Debug)]
pub(crate) struct RecordingBreaker {
    threshold: u32,
    open_for: Duration,
    record: Mutex<BreakerRecord>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BreakerRecord {
    failures: u32,
    open_until: Instant,
    issued: u64,
    outstanding: BTreeSet<u64>,
    /// Outcomes of the attempts that were made.
    pub(crate) recorded: Vec<Outcome>,
    /// Number of permits whose attempts never started.
    pub(crate) released: u32,
}

impl RecordingBreaker {
    pub(crate) fn new(threshold: u32, open_for: Duration) -> Self {
        Self { threshold, open_for, record: Mutex::default() }
    }

    /// Creates a breaker that is open from the start, for `open_for`.
    pub(crate) fn open(open_for: Duration) -> Self {
        let breaker = Self::new(u32::MAX, Duration::ZERO);
        breaker.open_until(Instant::ZERO.saturating_add(open_for));
        breaker
    }

    /// Opens the breaker until `until`.
    pub(crate) fn open_until(&self, until: Instant) {
        self.lock().open_until = until;
    }

    /// Returns a copy of the record.
    pub(crate) fn snapshot(&self) -> BreakerRecord {
        self.lock().clone()
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().outstanding.len()
    }

    fn lock(&self) -> MutexGuard<'_, BreakerRecord> {
        self.record.lock().unwrap()
    }
}

impl Guard for RecordingBreaker {
    fn name(&self) -> &'static str {
        "breaker"
    }

    fn ask(&self, _: Ask, _: Permit, now: &dyn Now) -> Answer {
        let mut record = self.lock();
        let retry_in = record.open_until.saturating_since(now.now());
        if !retry_in.is_zero() {
            return Answer::No { retry_in };
        }
        record.issued += 1;
        let permit = record.issued;
        record.outstanding.insert(permit);
        Answer::Go(Permit(permit))
    }

    fn would_refuse(&self, after: Duration, _: Option<Instant>, now: &dyn Now) -> bool {
        self.lock().open_until > now.now().saturating_add(after)
    }

    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        let mut record = self.lock();
        assert!(record.outstanding.remove(&permit.0), "{permit:?} is not outstanding: {record:?}");
        let End::Made(outcome) = end else {
            record.released += 1;
            return;
        };
        record.recorded.push(*outcome);
        match outcome.verdict() {
            ServerHealth::Healthy => record.failures = 0,
            ServerHealth::Ailing => record.failures += 1,
            ServerHealth::Unknown => {}
        }
        if record.failures >= self.threshold {
            record.failures = 0;
            record.open_until = now.now().saturating_add(self.open_for);
        }
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.lock().open_until.saturating_since(now.now())
    }
}

/// A budget with a fixed number of retries that records its use. Permits are numbered.
#[derive(Debug)]
pub(crate) struct RecordingBudget {
    record: Mutex<BudgetRecord>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BudgetRecord {
    /// Retries that can still be granted.
    pub(crate) retries_left: u64,
    issued: u64,
    /// Whether each outstanding permit was charged.
    outstanding: BTreeMap<u64, bool>,
    /// Outcomes of the attempts that completed or were dropped.
    pub(crate) recorded: Vec<Outcome>,
    /// Number of permits whose attempts never started.
    pub(crate) released: u32,
}

impl RecordingBudget {
    pub(crate) fn new(retries: u64) -> Self {
        Self { record: Mutex::new(BudgetRecord { retries_left: retries, ..BudgetRecord::default() }) }
    }

    /// Returns a copy of the record.
    pub(crate) fn snapshot(&self) -> BudgetRecord {
        self.lock().clone()
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().outstanding.len()
    }

    fn lock(&self) -> MutexGuard<'_, BudgetRecord> {
        self.record.lock().unwrap()
    }
}

impl BudgetRecord {
    fn issue(&mut self, is_charged: bool) -> Permit {
        self.issued += 1;
        self.outstanding.insert(self.issued, is_charged);
        Permit(self.issued)
    }
}

impl Guard for RecordingBudget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn ask(&self, _: Ask, held: Permit, _: &dyn Now) -> Answer {
        Answer::Go(if held == Permit::NONE { self.lock().issue(false) } else { held })
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        let mut record = self.lock();
        record.retries_left = record.retries_left.checked_sub(1)?;
        Some(record.issue(true))
    }

    fn settle(&self, permit: Permit, end: End<'_>, _: &dyn Now) {
        let mut record = self.lock();
        let Some(was_charged) = record.outstanding.remove(&permit.0) else {
            panic!("{permit:?} is not outstanding: {record:?}");
        };
        match end {
            End::Made(outcome) => record.recorded.push(*outcome),
            End::NeverMade => {
                record.retries_left += u64::from(was_charged);
                record.released += 1;
            }
        }
    }

    fn available(&self) -> Option<u64> {
        Some(self.lock().retries_left)
    }

    fn bounds_retries(&self) -> bool {
        true
    }
}

/// A guard that writes down what it is asked, and lets every attempt start, with a numbered permit.
#[derive(Debug)]
pub(crate) struct Traced {
    name: &'static str,
    log: Arc<Mutex<Vec<String>>>,
    permits: Mutex<(u64, BTreeSet<u64>)>,
}

impl Traced {
    /// Creates a guard of this name that writes into `log`.
    pub(crate) fn new(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Self {
        Self { name, log: Arc::clone(log), permits: Mutex::default() }
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn in_flight(&self) -> usize {
        self.permits.lock().unwrap().1.len()
    }

    fn write(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }

    fn issue(&self) -> Permit {
        let (issued, outstanding) = &mut *self.permits.lock().unwrap();
        *issued += 1;
        outstanding.insert(*issued);
        Permit(*issued)
    }
}

impl Guard for Traced {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ask(&self, ask: Ask, held: Permit, _: &dyn Now) -> Answer {
        self.write(if ask.is_first { "first?" } else { "retry?" });
        Answer::Go(if held == Permit::NONE { self.issue() } else { held })
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        self.write("reserve");
        Some(self.issue())
    }

    fn would_refuse(&self, _: Duration, _: Option<Instant>, _: &dyn Now) -> bool {
        self.write("refuse?");
        false
    }

    fn settle(&self, permit: Permit, end: End<'_>, _: &dyn Now) {
        self.write(if end == End::NeverMade { "released" } else { "made" });
        let was_outstanding = permit == Permit::NONE || self.permits.lock().unwrap().1.remove(&permit.0);
        assert!(was_outstanding, "{}: {permit:?} is not outstanding", self.name);
    }
}

/// A guard that lets every attempt wait once, for a millisecond.
#[derive(Debug, Default)]
pub(crate) struct HoldsOnce {
    /// The number of the latest permit, and whether each that is outstanding has been waited for.
    permits: Mutex<(u64, BTreeMap<u64, bool>)>,
}

impl HoldsOnce {
    /// Returns the number of outstanding permits.
    pub(crate) fn in_flight(&self) -> usize {
        self.permits.lock().unwrap().1.len()
    }
}

impl Guard for HoldsOnce {
    fn name(&self) -> &'static str {
        "holds"
    }

    fn ask(&self, _: Ask, held: Permit, _: &dyn Now) -> Answer {
        let (issued, outstanding) = &mut *self.permits.lock().unwrap();
        if held != Permit::NONE {
            let was_waiting = outstanding.insert(held.0, false);
            assert_eq!(was_waiting, Some(true), "{held:?} does not wait");
            return Answer::Go(held);
        }
        *issued += 1;
        outstanding.insert(*issued, true);
        Answer::Wait { after: Duration::from_millis(1), permit: Permit(*issued) }
    }

    fn settle(&self, permit: Permit, _: End<'_>, _: &dyn Now) {
        let was_outstanding = permit == Permit::NONE || self.permits.lock().unwrap().1.remove(&permit.0).is_some();
        assert!(was_outstanding, "{permit:?} is not outstanding");
    }
}

/// A bulkhead, as a user would write it: at most `places` attempts are in flight. The others wait in their order, and
/// are rejected if they have waited for longer than `patience`.
#[derive(Debug)]
pub(crate) struct Bulkhead {
    places: usize,
    patience: Duration,
    state: Mutex<BulkheadState>,
}

#[derive(Clone, Debug, Default)]
struct BulkheadState {
    issued: u64,
    in_flight: BTreeSet<u64>,
    /// Since when each attempt has been waiting.
    waiting: BTreeMap<u64, Instant>,
    /// No place is free before.
    closed_until: Instant,
}

impl Bulkhead {
    /// How often an attempt asks again.
    const CHECK: Duration = Duration::from_millis(1);

    pub(crate) fn new(places: usize, patience: Duration) -> Self {
        Self { places, patience, state: Mutex::default() }
    }

    /// Frees no place until then.
    pub(crate) fn close_until(&self, until: Instant) {
        self.lock().closed_until = until;
    }

    /// Returns how many attempts are in flight, and how many wait.
    pub(crate) fn count(&self) -> (usize, usize) {
        let state = self.lock();
        (state.in_flight.len(), state.waiting.len())
    }

    fn lock(&self) -> MutexGuard<'_, BulkheadState> {
        self.state.lock().unwrap()
    }
}

impl Guard for Bulkhead {
    fn name(&self) -> &'static str {
        "bulkhead"
    }

    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        let (mut state, now) = (self.lock(), now.now());
        let place = if held == Permit::NONE {
            state.issued += 1;
            let place = state.issued;
            state.waiting.insert(place, now);
            place
        } else {
            held.0
        };
        let is_free = state.in_flight.len() < self.places && now >= state.closed_until;
        let is_next = state.waiting.keys().next() == Some(&place);
        let Some(since) = state.waiting.get(&place).copied() else { panic!("{place} does not wait: {state:?}") };
        let again = now.saturating_add(Self::CHECK);
        if is_free && is_next {
            state.waiting.remove(&place);
            state.in_flight.insert(place);
            Answer::Go(Permit(place))
        } else if again.saturating_since(since) > self.patience || ask.latest.is_some_and(|latest| latest < again) {
            state.waiting.remove(&place);
            Answer::No { retry_in: Self::CHECK }
        } else {
            Answer::Wait { after: Self::CHECK, permit: Permit(place) }
        }
    }

    fn settle(&self, permit: Permit, _: End<'_>, _: &dyn Now) {
        // The first attempt of a hedged call has not asked.
        if permit == Permit::NONE {
            return;
        }
        let mut state = self.lock();
        let was_held = state.in_flight.remove(&permit.0) || state.waiting.remove(&permit.0).is_some();
        assert!(was_held, "{permit:?} is not held: {state:?}");
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        let state = self.lock();
        let is_free = state.in_flight.len() < self.places && now.now() >= state.closed_until;
        if is_free && state.waiting.is_empty() { Duration::ZERO } else { Self::CHECK }
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        self.count() == (0, 0)
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self::new(self.places, self.patience))
    }
}
