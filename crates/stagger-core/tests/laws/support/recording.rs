//! Fakes that record what a machine asks of its guards and its clock.

use core::cell::Cell;
use core::time::Duration;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use stagger_core::guard::{Answer, Ask, End, Guard, Now, Permit};
use stagger_core::{FailureKind, Instant, Outcome};

/// A guard with settable decisions that numbers its permits and records every call to it.
///
/// It issues a permit to each first attempt, and to each retry: a [budget](Self::budget) when it is reserved, a
/// [breaker](Self::breaker) when it starts.
#[derive(Debug)]
pub(crate) struct RecordingGuard {
    name: &'static str,
    reserves: bool,
    trace: Option<GuardTrace>,
    record: Mutex<Record>,
}

/// What several guards were asked and told, in order, such as `breaker: ask first`.
pub(crate) type GuardTrace = Arc<Mutex<Vec<String>>>;

#[derive(Debug, Default)]
struct Record {
    last_id: u64,
    outstanding: HashSet<u64>,
    rejects: bool,
    open: bool,
    /// How many questions are still answered with a wait.
    waits: u32,
    /// Makes `would_refuse` return true for this wait and longer ones.
    refuses_from: Option<Duration>,
    reads_clock: bool,
    checked_waits: Vec<Duration>,
    events: Vec<String>,
    records: Vec<(u64, Outcome)>,
    problems: Vec<String>,
}

impl RecordingGuard {
    /// For how long it lets an attempt wait, or rejects it.
    pub(crate) const WAIT: Duration = Duration::from_secs(1);

    /// Creates a guard that issues the permits of retries when they are reserved.
    pub(crate) fn budget() -> Self {
        Self { name: "budget", reserves: true, trace: None, record: Mutex::default() }
    }

    /// Creates a guard that issues the permits of retries when they start.
    pub(crate) fn breaker() -> Self {
        Self { name: "breaker", reserves: false, ..Self::budget() }
    }

    /// Sets the name, and a trace that it shares with others.
    pub(crate) fn traced(self, name: &'static str, trace: &GuardTrace) -> Self {
        Self { name, trace: Some(Arc::clone(trace)), ..self }
    }

    /// Makes it read the clock on every call.
    pub(crate) fn with_clock(self) -> Self {
        self.with_inner(|inner| inner.reads_clock = true);
        self
    }

    /// Makes it reject every retry.
    pub(crate) fn rejecting(self) -> Self {
        self.set_rejects(true);
        self
    }

    /// Sets whether it refuses to reserve retries.
    pub(crate) fn set_rejects(&self, rejects: bool) {
        self.with_inner(|inner| inner.rejects = rejects);
    }

    /// Sets whether it rejects attempts that are about to start.
    pub(crate) fn set_open(&self, open: bool) {
        self.with_inner(|inner| inner.open = open);
    }

    /// Lets the next attempts that are about to start wait, this many times in all.
    pub(crate) fn set_waits(&self, waits: u32) {
        self.with_inner(|inner| inner.waits = waits);
    }

    /// Sets the shortest wait for which `would_refuse` returns true; with `None` it never does.
    pub(crate) fn set_refuses_from(&self, wait: Option<Duration>) {
        self.with_inner(|inner| inner.refuses_from = wait);
    }

    /// Returns the waits passed to `would_refuse` since the previous call.
    pub(crate) fn checked_waits(&self) -> Vec<Duration> {
        self.with_inner(|inner| core::mem::take(&mut inner.checked_waits))
    }

    /// Returns what it was asked and told since the previous `events()`, in order, such as `reserve Transient` and
    /// `made 2 Healthy`.
    pub(crate) fn events(&self) -> Vec<String> {
        self.with_inner(|inner| core::mem::take(&mut inner.events))
    }

    /// Returns the outcomes recorded since the previous call, each with its permit's number.
    pub(crate) fn records(&self) -> Vec<(u64, Outcome)> {
        self.with_inner(|inner| core::mem::take(&mut inner.records))
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn outstanding(&self) -> usize {
        self.with_inner(|inner| inner.outstanding.len())
    }

    /// Panics unless every permit was settled exactly once, and only permits that were granted.
    pub(crate) fn assert_balanced(&self) {
        self.with_inner(|inner| assert!(inner.problems.is_empty() && inner.outstanding.is_empty(), "{inner:#?}"));
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.with_inner(|inner| inner.problems.clone())
    }

    fn with_inner<R>(&self, f: impl FnOnce(&mut Record) -> R) -> R {
        f(&mut self.record.lock().unwrap())
    }

    /// Records an event, and reads the clock if it does on every call.
    fn called(&self, event: String, now: &dyn Now) {
        self.asked(&event, now);
        self.with_inner(|inner| inner.events.push(event));
    }

    /// Records a question, which changes nothing, in the trace only.
    fn asked(&self, event: &str, now: &dyn Now) {
        if let Some(trace) = &self.trace {
            trace.lock().unwrap().push(format!("{}: {event}", self.name));
        }
        self.with_inner(|inner| {
            if inner.reads_clock {
                // Repeated reads within one decision return the same instant.
                assert_eq!(now.now(), now.now());
            }
        });
    }
}

impl Record {
    fn issue(&mut self) -> Permit {
        self.last_id += 1;
        self.outstanding.insert(self.last_id);
        Permit(self.last_id)
    }

    fn give_back(&mut self, permit: &Permit, method: &str) {
        if !self.outstanding.remove(&permit.0) {
            self.problems.push(format!("{method}: permit {} is not outstanding", permit.0));
        }
    }
}

impl Guard for RecordingGuard {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        self.called(if ask.is_first { "ask first" } else { "ask retry" }.to_owned(), now);
        self.with_inner(|inner| {
            if held != Permit::NONE && !inner.outstanding.contains(&held.0) {
                inner.problems.push(format!("ask: permit {} is not outstanding", held.0));
            }
            if inner.open {
                if held != Permit::NONE {
                    inner.give_back(&held, "ask");
                }
                return Answer::No { retry_in: Self::WAIT };
            }
            let permit = if held == Permit::NONE { inner.issue() } else { held };
            if inner.waits > 0 {
                inner.waits -= 1;
                return Answer::Wait { after: Self::WAIT, permit };
            }
            Answer::Go(permit)
        })
    }

    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        self.called(format!("reserve {kind:?}"), now);
        self.with_inner(|inner| match (inner.rejects, self.reserves) {
            (true, _) => None,
            (false, true) => Some(inner.issue()),
            (false, false) => Some(Permit::NONE),
        })
    }

    fn would_refuse(&self, after: Duration, _: Option<Instant>, now: &dyn Now) -> bool {
        self.asked("would refuse?", now);
        self.with_inner(|inner| {
            inner.checked_waits.push(after);
            inner.refuses_from.is_some_and(|from| after >= from)
        })
    }

    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        match end {
            End::Made(outcome) => {
                self.called(format!("made {} {:?}", permit.0, outcome.verdict()), now);
                self.with_inner(|inner| inner.records.push((permit.0, *outcome)));
            }
            End::NeverMade => self.called(format!("never made {}", permit.0), now),
        }
        self.with_inner(|inner| inner.give_back(&permit, "settle"));
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.asked("retry in?", now);
        self.with_inner(|inner| if inner.open { Self::WAIT } else { Duration::ZERO })
    }

    fn bounds_retries(&self) -> bool {
        self.reserves
    }
}

/// Starts attempts of a guard that is tested alone.
pub(crate) trait Start: Guard {
    /// Asks for a first attempt without a limit.
    fn first(&self, now: &dyn Now) -> Answer {
        self.ask(Ask::FIRST, Permit::NONE, now)
    }

    /// Starts a first attempt without a limit, and returns its permit; panics if it does not start.
    fn start(&self, now: &dyn Now) -> Permit {
        go(self.first(now))
    }
}

impl<G: Guard + ?Sized> Start for G {}

/// Returns the permit of an attempt that starts; panics if it does not.
pub(crate) fn go(answer: Answer) -> Permit {
    match answer {
        Answer::Go(permit) => permit,
        other => panic!("the attempt should start: {other:?}"),
    }
}

/// A clock that does not advance by itself and counts how often it is read.
pub(crate) struct CountingClock {
    now: Cell<Instant>,
    count: Cell<u32>,
}

impl CountingClock {
    pub(crate) const fn at(now: Instant) -> Self {
        Self { now: Cell::new(now), count: Cell::new(0) }
    }

    /// Returns a closure that reads the clock, to pass to a machine.
    pub(crate) fn reader(&self) -> impl FnOnce() -> Instant + '_ {
        || {
            self.count.set(self.count.get() + 1);
            self.now.get()
        }
    }

    /// Returns the number of reads since the previous call.
    pub(crate) fn take_reads(&self) -> u32 {
        self.count.replace(0)
    }

    pub(crate) fn set(&self, now: Instant) {
        self.now.set(now);
    }
}
