//! The state of a run: services, edges, calls and attempts, and random streams.

use core::ops::{Index, IndexMut};
use core::time::Duration;
use std::collections::VecDeque;

use stagger_core::guard::Permits;
use stagger_core::machine::RetryState;
use stagger_core::{FailureKind, Outcome, Seed};

use super::definition::System;
use super::edge::Refusals;
use super::figures::SystemFigures;
use super::queue::EventQueue;
use crate::outage::ProcessGuards;

/// A run of a system. Times are in nanoseconds.
pub(super) struct Simulation<'a> {
    pub(super) system: &'a System,
    pub(super) queue: EventQueue,
    pub(super) tiers: Vec<Tier>,
    pub(super) links: Vec<Link>,
    pub(super) calls: Slab<Call>,
    pub(super) attempts: Slab<Attempt>,
    pub(super) last_serial: u32,
    pub(super) random: Random,
    pub(super) figures: SystemFigures,
    pub(super) horizon: u64,
    pub(super) fault: [u64; 2],
    /// The end of the run, at which the requests before the horizon are settled.
    pub(super) end: u64,
    /// Factor of the users' rate.
    pub(super) spike: f64,
    /// Time of the next request, with the fraction of a nanosecond.
    pub(super) next_request: f64,
    /// The gap after it, in means. Drawn ahead, because nothing waits for the logarithm then.
    pub(super) next_gap: f64,
    /// Retries that guards let through, and those that they did not.
    pub(super) granted: u64,
    pub(super) refused: u64,
    pub(super) events: u64,
}

/// An edge in the course of a run.
pub(super) struct Link {
    /// The guards of each process; empty if there are none.
    pub(super) guards: Vec<ProcessGuards>,
    pub(super) cache: Option<WarmKeys>,
    pub(super) timeout: u64,
    /// The least one-way delay, and the length of the interval that is added.
    pub(super) one_way: [u64; 2],
    pub(super) to: usize,
    /// The lane of its arrivals and answers, and that of its timeouts.
    pub(super) message_lane: usize,
    pub(super) timeout_lane: usize,
}

/// A stream of random bits for each purpose, so that none shifts another.
pub(super) struct Random {
    pub(super) gaps: Stream,
    pub(super) owners: Stream,
    pub(super) keys: Stream,
    pub(super) service_times: Stream,
    pub(super) errors: Stream,
    pub(super) delays: Stream,
    pub(super) calls: Stream,
}

/// The call of a client, from its first attempt to its end.
pub(super) struct Call {
    pub(super) retry: RetryState,
    pub(super) permits: Permits,
    pub(super) seed: Seed,
    /// The attempt of a service that the call is made for; `None` for a request of the users.
    pub(super) parent: Option<AttemptId>,
    /// When the request arrived that caused the call.
    pub(super) born: u64,
    /// The deadline that the call was given; `u64::MAX` if there is none.
    pub(super) deadline: u64,
    pub(super) edge: u32,
    /// The process or instance whose guards the call has.
    pub(super) owner: u32,
    /// The serial number of the attempt in flight; 0 if there is none.
    pub(super) serial: u32,
    pub(super) key: u32,
    pub(super) marks: Marks,
}

/// An attempt and its serial number, which tells it from others in the same place.
#[derive(Clone, Copy)]
pub(super) struct AttemptId {
    pub(super) id: u32,
    pub(super) serial: u32,
}

/// What is inherited by all calls that a request causes.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks {
    /// The request arrived between the start of the fault and the horizon.
    pub(super) is_judged: bool,
    /// The request arrived during the fault.
    pub(super) is_in_fault: bool,
    /// The attempt, or one of those above it, is a retry.
    pub(super) is_retry: bool,
}

/// An attempt, from the time at which it is sent until its answer is back or nothing is left of it.
///
/// ```text
/// sent ─► arrives ─► queue ─► worker ─► calls, edge by edge ─► answered ─► heard by the caller
///            │         │                         │                ▲  └───► freed, if the caller has given up
///            │         └─ dropped: stale         └─ one fails ────┤
///            └─ refused: backlog full, or a fault ────────────────┘
/// ```
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) deadline: u64,
    pub(super) born: u64,
    /// Factor of the service time, for attempts that arrived during a slowdown.
    pub(super) slowness: f64,
    pub(super) call: u32,
    pub(super) serial: u32,
    pub(super) edge: u32,
    pub(super) instance: u32,
    pub(super) key: u32,
    /// The position of the current edge among those of the service.
    pub(super) step: u32,
    /// Calls over that edge which are not yet made, or in parallel not yet answered.
    pub(super) calls_left: u32,
    pub(super) marks: Marks,
    pub(super) reply: Reply,
    /// Whether it holds a worker after its own work.
    pub(super) holds_worker: bool,
}

/// How an attempt was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    None,
    Success,
    QueueFull,
    /// By a fault.
    Refused,
    /// After a call of the service that failed.
    Error,
}

impl Reply {
    pub(super) const fn outcome(self, refusals: Refusals) -> Outcome {
        match self {
            Self::Success => Outcome::Success,
            Self::QueueFull | Self::Refused if matches!(refusals, Refusals::Permanent) => Outcome::Permanent,
            Self::QueueFull => Outcome::Failed { kind: FailureKind::Throttled, hint: None },
            Self::None | Self::Refused | Self::Error => Outcome::TRANSIENT,
        }
    }
}

/// A service in the course of a run.
#[derive(Clone, Default)]
pub(super) struct Tier {
    /// The lane of the ends of service.
    pub(super) lane: usize,
    pub(super) queue: VecDeque<u32>,
    /// Workers that work or are held.
    pub(super) busy: u32,
    /// Workers that may be busy when an attempt is taken up.
    pub(super) limit: u32,
    /// Attempts that count towards the backlog.
    pub(super) occupancy: u32,
    pub(super) speed: Speed,
    pub(super) rejects: bool,
    /// The probability of an error.
    pub(super) error: f64,
    pub(super) start_factor: f64,
    pub(super) arrival_factor: f64,
}

impl Tier {
    #[inline]
    pub(super) const fn has_free_worker(&self) -> bool {
        self.busy < self.limit
    }
}

/// Items in places that are used again.
pub(super) struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

/// The most items at once: a request that would need more fails.
const MAX_ITEMS: usize = 1 << 24;

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    /// Adds an item and returns its place; `None` if there are too many.
    #[inline]
    pub(super) fn insert(&mut self, item: T) -> Option<u32> {
        if let Some(id) = self.free.pop() {
            self[id] = item;
            return Some(id);
        }
        if self.items.len() >= MAX_ITEMS {
            return None;
        }
        let id = self.items.len() as u32;
        self.items.push(item);
        Some(id)
    }

    /// Frees a place, whose item stays readable until the place is used again.
    #[inline]
    pub(super) fn free(&mut self, id: u32) {
        self.free.push(id);
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.items[id as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.items[id as usize]
    }
}

/// A cache before an edge.
#[derive(Clone)]
pub(super) struct WarmKeys {
    words: Vec<u64>,
    keys: u32,
    cold: u32,
}

impl WarmKeys {
    pub(super) fn new(keys: u32) -> Self {
        Self { words: vec![u64::MAX; keys.div_ceil(64) as usize], keys, cold: 0 }
    }

    pub(super) fn contains(&self, key: u32) -> bool {
        self.words[(key / 64) as usize] >> (key % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, key: u32) {
        self.cold -= u32::from(!self.contains(key));
        self.words[(key / 64) as usize] |= 1 << (key % 64);
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.cold = self.keys;
    }

    /// Returns the number of hot keys that it does not have.
    pub(super) fn cold(&self) -> u64 {
        u64::from(self.cold)
    }
}

/// Marks a call that asks for no hot key.
pub(super) const NO_KEY: u32 = u32::MAX;

/// Random bits, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    seed: Seed,
    drawn: u64,
}

impl Stream {
    pub(super) const fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    #[inline]
    pub(super) const fn bits(&mut self) -> u64 {
        self.drawn += 1;
        self.seed.draw(self.drawn)
    }

    /// Returns a number below `count`.
    #[inline]
    pub(super) const fn below(&mut self, count: u64) -> u64 {
        ((self.bits() as u128 * count as u128) >> 64) as u64
    }

    /// Returns a number below `count` if it is asked for, and 0 without a draw otherwise.
    #[inline]
    pub(super) const fn below_if(&mut self, is_drawn: bool, count: u64) -> u64 {
        self.drawn += is_drawn as u64;
        // A product, not a branch: which service an attempt arrives at is hard to predict.
        ((self.seed.draw(self.drawn) as u128 * (count * is_drawn as u64) as u128) >> 64) as u64
    }

    /// Returns whether an event of this probability happens.
    #[inline]
    pub(super) const fn chance(&mut self, probability: f64) -> bool {
        ((self.bits() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }
}

/// The speed of a service's workers over time: 1, except where faults change it. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Speed {
    /// From when on the workers have this share of their speed; the last is 1.
    steps: Vec<(u64, f64)>,
}

impl Speed {
    /// Creates the product of shares that hold from their start to their end.
    pub(super) fn new(shares: &[(u64, u64, f64)]) -> Self {
        let mut times: Vec<_> = shares.iter().flat_map(|&(from, until, _)| [from, until]).collect();
        times.sort_unstable();
        times.dedup();
        let product = |at| {
            let active = shares.iter().filter(|&&(from, until, _)| from <= at && at < until);
            active.map(|&(_, _, share)| share).product()
        };
        Self { steps: times.into_iter().map(|at| (at, product(at))).collect() }
    }

    /// Returns when `work` is done that begins at `start`.
    #[inline]
    pub(super) fn end(&self, start: u64, work: u64) -> u64 {
        if self.steps.is_empty() { start.saturating_add(work) } else { self.end_by_steps(start, work) }
    }

    fn end_by_steps(&self, start: u64, work: u64) -> u64 {
        let (mut at, mut left) = (start, work as f64);
        let mut begun = self.steps.partition_point(|&(from, _)| from <= at);
        loop {
            let share = if begun == 0 { 1.0 } else { self.steps[begun - 1].1 };
            let needed = left / share;
            match self.steps.get(begun) {
                Some(&(next, _)) if at as f64 + needed > next as f64 => {
                    left -= (next - at) as f64 * share;
                    at = next;
                    begun += 1;
                }
                // The conversion saturates.
                _ => return at.saturating_add(needed.round() as u64),
            }
        }
    }
}

/// Converts a duration of at most 76 hours to nanoseconds.
pub(super) const fn nanos(length: Duration) -> u64 {
    length.as_nanos() as u64
}

/// The present, as policies and guards read it.
pub(super) const fn instant(now: u64) -> stagger_core::Instant {
    stagger_core::Instant::from_nanos(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_as_if_the_speed_were_integrated() {
        let speed = Speed::new(&[(100, 200, 0.0), (300, 400, 0.5), (350, 400, 0.5)]);
        for (start, work, want) in [
            (0, 100, 100),
            (0, 101, 201),
            (50, 60, 210),
            (150, 10, 210),
            (200, 100, 300),
            (300, 25, 350),
            (340, 15, 390),
            (340, 20, 402 + 1),
            (400, 7, 407),
        ] {
            let got = speed.end(start, work);
            assert!(got.abs_diff(want) <= 1, "{work} from {start} ends at {got}, expected {want}");
        }
        assert_eq!(Speed::default().end(u64::MAX, 5), u64::MAX);
    }
}
