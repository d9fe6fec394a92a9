//! Guards: what calls share, and what can let an attempt wait or reject it.

use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use super::now::Unread;
use crate::machine::decision::StopReason;
use crate::numbers::instant::Instant;
use crate::outcome::{FailureKind, Outcome};

pub use super::now::Now;
pub use crate::outcome::ServerHealth;

/// What calls share, and what can let an attempt wait or reject it: a budget, a circuit breaker, a quiet period, a
/// pacer, or one of your own. Every guard has the same life: *ask*, *permit*, *settle*.
///
/// ```text
///                     ┌────────────── wait, keeping the place ◀─┐
///                     ▼                                         │
///   first attempt ─▶ ask ──▶ go, with a permit ─▶ attempt ─▶ settle: made, with its outcome
///                     ▲ │                            │
///                     │ └▶ no: the call ends         └ fails ─▶ would_refuse? ─▶ reserve ─▶ sleep ─┐
///                     └────────────────────────────────────────────────────────────────────────────┘
/// ```
///
/// A permit is a number whose meaning is known to the guard alone. Each is settled exactly once, whatever happens to
/// the call. Guards take `&self`, are shared by all calls to a target, and neither block nor sleep: a call that has to
/// wait is told for how long, and asks again.
///
/// Only [`name`](Self::name) and [`settle`](Self::settle) are required: a guard that does nothing else lets every
/// attempt start, and is told how each ended.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a guard",
    label = "expected a type that implements `Guard`, such as `Tokens`, `CircuitBreaker` or `QuietPeriod`",
    note = "a retrier owns its guards: pass one by value, or share it as an `Arc` with `.shared_guard(..)`"
)]
pub trait Guard: fmt::Debug + Send + Sync {
    /// Returns one lower-case word for stop reasons, events and metrics, such as `budget`.
    fn name(&self) -> &'static str;

    /// Asks to start an attempt now. `held` is what the attempt has of this guard: the permit of its
    /// [reservation](Self::reserve), the place of an attempt that waits, or [`Permit::NONE`]. Default: goes with it.
    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        let _ = (ask, now);
        Answer::Go(held)
    }

    /// Reserves a retry after a failure of this kind, before it is slept for, so that many sleeping calls cannot wake
    /// up together to an allowance that is used up. `None` if there is none left: the call ends. Default: no permit.
    ///
    /// All guards have answered [`would_refuse`](Self::would_refuse) before, so nothing but another reservation can
    /// prevent the retry. A permit that is to be given back must differ from [`Permit::NONE`].
    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        let _ = (kind, now);
        Some(Permit::NONE)
    }

    /// Returns whether an attempt that is due `after` from now, and must start by `latest`, would certainly be
    /// rejected. Changes nothing. Default: false.
    fn would_refuse(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> bool {
        let _ = (after, latest, now);
        false
    }

    /// Settles the permit of an attempt. An attempt that was made is reported even if it has no permit; one that was
    /// not made only if it has.
    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now);

    /// Returns how long a call that asked now would wait or be rejected; zero if it could start. Changes nothing.
    /// Default: zero.
    fn retry_in(&self, now: &dyn Now) -> Duration {
        let _ = now;
        Duration::ZERO
    }

    /// Returns how many retries it would grant now, for events and metrics; `None` (the default) if it has no such
    /// number.
    fn available(&self) -> Option<u64> {
        None
    }

    /// Returns whether its [reservations](Self::reserve) bound the retries of all layers that share it: see
    /// [`NestedRetries::ShareBudget`]. Their permits then differ from [`Permit::NONE`], because the first attempt of a
    /// nested call, which has none, is not reported. Default: false.
    fn bounds_retries(&self) -> bool {
        false
    }

    /// Returns whether it has nothing to remember: a new one with the same settings would answer every question as this
    /// one does, now and after the same further outcomes. A collection of guards by key can then replace it. Default:
    /// false.
    fn is_at_rest(&self, now: &dyn Now) -> bool {
        let _ = now;
        false
    }

    /// Returns whether it must be told of every call. If not, a client that has one guard per target creates a target's
    /// guard when a call to it fails, and removes it when it is [at rest](Self::is_at_rest) again.
    ///
    /// Return false only if a guard that is at rest lets every attempt start without a permit, and changes nothing when
    /// one ends as cancelled or shows a [healthy](ServerHealth::Healthy) server. Default: true.
    fn needs_every_call(&self) -> bool {
        true
    }

    /// Returns a new guard with the same settings, for clients that have one per target; `None` (the default) if the
    /// targets are to share this one.
    fn fresh(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// The attempt that a guard is asked to let start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// Whether it is the first attempt of its call. A retry has a [reservation](Guard::reserve).
    pub is_first: bool,
    /// The latest time at which the limits of the call let it start; `None` if it has no limit.
    pub latest: Option<Instant>,
}

impl Ask {
    /// Creates the question of a first attempt without a limit.
    pub const FIRST: Self = Self { is_first: true, latest: None };

    /// Sets the latest time at which the attempt may start.
    #[must_use]
    pub const fn by(self, latest: Option<Instant>) -> Self {
        Self { latest, ..self }
    }
}

/// The answer of a [`Guard`] to an attempt that is about to start.
///
/// Complete: an attempt starts, waits or is not made.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is not handed on is never settled"]
pub enum Answer {
    /// The attempt starts, with this permit.
    Go(Permit),
    /// The attempt waits, and then asks again with this permit, which is its place.
    Wait {
        /// How long to wait before asking again. At least a nanosecond. If that is beyond the [latest](Ask::latest)
        /// time at which the attempt may start, it is rejected, and its place is given back.
        after: Duration,
        /// The place of the attempt.
        permit: Permit,
    },
    /// The attempt is not made. What it held of this guard has been given back.
    No {
        /// In how long it could start, as far as is known. A retry around this call treats it as a hint.
        retry_in: Duration,
    },
}

/// How an attempt ended, for the [guards](Guard::settle).
///
/// Complete: it was made or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'a> {
    /// It was made, and had this outcome; [`Outcome::Cancelled`] if it was dropped before it completed.
    Made(&'a Outcome),
    /// It was not made: the call ended before it, or another guard rejected it.
    NeverMade,
}

/// The permit of a guard for one attempt, or its place among those that wait: a number whose meaning is known to the
/// guard only.
///
/// Neither `Copy` nor `Clone`, so that it is settled once. A guard may use every number but 0, which is no permit, and
/// [`UNGUARDED`](Self::UNGUARDED).
#[derive(Debug, PartialEq, Eq)]
pub struct Permit(pub u64);

impl Permit {
    /// No permit.
    pub const NONE: Self = Self(0);

    /// What an operator control grants in place of a guard that it does not enforce. A number that nobody counts to.
    pub const UNGUARDED: Self = Self(0x756e_6775_6172_6465);

    pub(crate) const fn take(&mut self) -> Self {
        core::mem::replace(self, Self::NONE)
    }
}

/// How many guards a call has at most: their permits are kept without an allocation.
pub const MAX_GUARDS: usize = 6;

/// The permits of all guards for one attempt, in the order of the guards.
///
/// The driver holds them while the attempt [waits for its turn](crate::machine::RetryMachine::turn), between
/// [`begin`](crate::machine::RetryMachine::begin) and [`decide`](crate::machine::RetryMachine::decide), and between
/// `decide` and the next turn. A driver that drops a call settles them with [`Guards::abandon`] during an attempt, and
/// otherwise with [`Guards::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is not handed on is never settled"]
pub struct Permits {
    pub(crate) of: [Permit; MAX_GUARDS],
    /// How many guards have let the attempt start; they are not asked again.
    pub(crate) passed: u8,
}

impl Permits {
    /// No permits: what the first attempt of a call begins with.
    pub const NONE: Self = Self { of: [const { Permit::NONE }; MAX_GUARDS], passed: 0 };

    /// Takes the permits out of `slot`, leaving [`NONE`](Self::NONE).
    pub const fn take(slot: &mut Self) -> Self {
        core::mem::replace(slot, Self::NONE)
    }
}

/// Whether a call retries if it is made inside an attempt of another call.
///
/// With three attempts in each of three layers and a persistent failure, the innermost operation runs
///
/// | | times |
/// |---|---|
/// | [`Disable`](Self::Disable) | 3 |
/// | [`ShareBudget`](Self::ShareBudget) | 3, plus the retries that the shared budget grants |
/// | [`Allow`](Self::Allow) | 27 |
///
/// The driver resolves it for each call: [`Guards::nested`] is [`Allow`](Self::Allow) if there is no outer attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NestedRetries {
    /// The call makes one attempt and leaves retrying to the outer layer. The default.
    #[default]
    Disable,
    /// The call retries, and one budget bounds the retries of both layers: give the same budget to both.
    ///
    /// The call's first attempt is part of the outer layer's attempt, so the budget counts it once. Without a
    /// guard that [bounds retries](Guard::bounds_retries), this is the same as [`Disable`](Self::Disable).
    ShareBudget,
    /// The call retries as if there were no outer layer: the attempts multiply.
    Allow,
}

/// The guards of a call, in the order in which they are asked, at most [`MAX_GUARDS`]; and what the call does inside an
/// attempt of another call.
///
/// What a guard has granted is held while a later one lets the attempt wait. So those that let attempts wait come
/// first, then those that reject them, and budgets last: pacer, quiet period, breaker, budget, control.
///
/// `G` is how the list holds a guard: `&dyn Guard`, `Box<dyn Guard>`, or `Arc<dyn Guard>`.
#[derive(Debug)]
pub struct Guards<'a, G = &'a dyn Guard> {
    list: &'a [G],
    nested: NestedRetries,
}

impl<G> Clone for Guards<'_, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G> Copy for Guards<'_, G> {}

impl Default for Guards<'_> {
    fn default() -> Self {
        Self::none()
    }
}

impl Guards<'_> {
    /// Creates an empty list.
    #[inline]
    #[must_use]
    pub const fn none() -> Self {
        Self { list: &[], nested: NestedRetries::Allow }
    }
}

impl<'a, G> Guards<'a, G> {
    /// Creates a list. With more than [`MAX_GUARDS`], every attempt is rejected, with [`StopReason::TOO_MANY_GUARDS`]:
    /// a call does not go on without a guard that it was given.
    #[inline]
    #[must_use]
    pub const fn of(list: &'a [G]) -> Self {
        Self { list, nested: NestedRetries::Allow }
    }

    /// Sets whether the call retries although an outer layer is already retrying. Default: [`NestedRetries::Allow`].
    #[inline]
    #[must_use]
    pub const fn nested(mut self, nested: NestedRetries) -> Self {
        self.nested = nested;
        self
    }

    /// Returns what the call does inside an attempt of another call.
    #[inline]
    #[must_use]
    pub const fn nesting(&self) -> NestedRetries {
        self.nested
    }

    /// Returns whether there is no guard. An outer layer may still be retrying.
    #[inline]
    #[must_use]
    pub const fn is_unguarded(&self) -> bool {
        self.list.is_empty()
    }
}

impl<'a, G: Deref<Target: Guard>> Guards<'a, G> {
    /// Returns the guards, in their order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &'a G::Target> + use<'a, G> {
        // The compiler knows then that each has a place for its permit.
        self.list.iter().take(MAX_GUARDS).map(|guard| &**guard)
    }

    /// Returns how long a call that asked now would wait or be rejected by the guard of this name.
    #[must_use]
    pub fn retry_in(&self, name: &str, now: &dyn Now) -> Duration {
        match self.iter().find(|guard| guard.name() == name) {
            Some(guard) => guard.retry_in(now),
            None => Duration::ZERO,
        }
    }

    /// Returns how many retries the guards would grant now; `None` if none of them has such a number.
    #[must_use]
    pub fn available(&self) -> Option<u64> {
        self.iter().filter_map(Guard::available).min()
    }

    /// Asks whether the first attempt of a call without limits may start, for a driver that has no state yet. Returns
    /// zero if it may; otherwise for how long to wait, while `permits` hold its place for
    /// [`RetryMachine::turn`](crate::machine::RetryMachine::turn).
    ///
    /// # Errors
    /// The reason to stop, if a guard rejects it. All permits are given back then.
    #[inline]
    pub fn ask_first(&self, permits: &mut Permits, now: impl FnOnce() -> Instant) -> Result<Duration, StopReason> {
        let now = Unread::new(now);
        if self.list.len() > MAX_GUARDS || self.nested == NestedRetries::ShareBudget {
            return self.ask(permits, Ask::FIRST, &now);
        }
        for (guard, place) in self.iter().zip(&mut permits.of) {
            match guard.ask(Ask::FIRST, Permit::NONE, &now) {
                Answer::Go(permit) => *place = permit,
                answer => return self.hold_or_refuse(permits, answer, Ask::FIRST, &now),
            }
            permits.passed += 1;
        }
        Ok(Duration::ZERO)
    }

    /// Asks the guards that have not let the attempt start yet, in their order. Returns zero if all of them have;
    /// otherwise for how long to wait, while `permits` hold its place. If one rejects it, or would after the wait, all
    /// permits are given back.
    pub(crate) fn ask(&self, permits: &mut Permits, ask: Ask, now: &dyn Now) -> Result<Duration, StopReason> {
        if self.list.len() > MAX_GUARDS {
            self.give_back(Permits::take(permits), now);
            return Err(StopReason::TOO_MANY_GUARDS);
        }
        while let Some(guard) = self.list.get(usize::from(permits.passed)) {
            let Some(place) = permits.of.get_mut(usize::from(permits.passed)) else { break };
            // The outer layer has counted the first attempt.
            if !ask.is_first || !self.is_shared(&**guard) {
                match guard.ask(ask, place.take(), now) {
                    Answer::Go(permit) => *place = permit,
                    answer => return self.hold_or_refuse(permits, answer, ask, now),
                }
            }
            permits.passed += 1;
        }
        Ok(Duration::ZERO)
    }

    /// Lets an attempt wait that the next guard has not let start, or rejects it.
    #[cold]
    fn hold_or_refuse(
        &self,
        permits: &mut Permits,
        answer: Answer,
        ask: Ask,
        now: &dyn Now,
    ) -> Result<Duration, StopReason> {
        let place = usize::from(permits.passed);
        let refused_by = match answer {
            Answer::Wait { after, permit } => {
                permits.of[place] = permit;
                // It waits neither beyond its limits, which a guard may not know of, nor for a guard that comes later
                // and would then certainly reject it.
                let is_too_long = ask.latest.is_some_and(|latest| latest < now.now().saturating_add(after));
                if is_too_long {
                    self.iter().nth(place)
                } else {
                    match self.iter().skip(place + 1).find(|later| later.would_refuse(after, ask.latest, now)) {
                        // Zero would mean that it may start.
                        None => return Ok(after.max(Duration::from_nanos(1))),
                        later => later,
                    }
                }
            }
            _ => self.iter().nth(place),
        };
        self.give_back(Permits::take(permits), now);
        Err(StopReason::Guard(refused_by.map_or("", Guard::name)))
    }

    /// Returns the name of the first guard that would certainly reject an attempt, due `after` from now.
    pub(crate) fn would_refuse(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> Option<StopReason> {
        let guard = self.iter().find(|guard| guard.would_refuse(after, latest, now))?;
        Some(StopReason::Guard(guard.name()))
    }

    /// Reserves a retry with all guards. If one has nothing left, what others have reserved is given back.
    pub(crate) fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Result<Permits, StopReason> {
        let mut permits = Permits::NONE;
        for (place, guard) in self.iter().enumerate() {
            match guard.reserve(kind, now) {
                Some(permit) => permits.of[place] = permit,
                None => {
                    self.give_back(permits, now);
                    return Err(StopReason::Guard(guard.name()));
                }
            }
        }
        Ok(permits)
    }

    /// Returns whether the call leaves retries to an outer layer.
    #[inline]
    pub(crate) fn leaves_retries_to_outer_layer(&self) -> bool {
        match self.nested {
            NestedRetries::Allow => false,
            NestedRetries::Disable => true,
            NestedRetries::ShareBudget => !self.iter().any(Guard::bounds_retries),
        }
    }

    /// Returns whether an outer layer has told this guard of the call's first attempt.
    fn is_shared(&self, guard: &G::Target) -> bool {
        self.nested == NestedRetries::ShareBudget && guard.bounds_retries()
    }

    /// Counts the first of several attempts that a call makes at the same time, with the guards that
    /// [bound retries](Guard::bounds_retries), and returns its permits. The others are not asked.
    pub fn first_of_several(&self, now: impl FnOnce() -> Instant) -> Permits {
        let now = Unread::new(now);
        let mut permits = Permits::NONE;
        for (place, guard) in self.iter().enumerate() {
            if guard.bounds_retries() && !self.is_shared(guard) {
                if let Answer::Go(permit) = guard.ask(Ask::FIRST, Permit::NONE, &now) {
                    permits.of[place] = permit;
                }
            }
        }
        permits
    }

    /// Acquires the permits of another attempt at the same time, as for a retry.
    ///
    /// # Errors
    /// [`StopReason::Guard`] if a guard rejects it or would let it wait. All permits have then been given back.
    pub fn another_of_several(&self, now: impl FnOnce() -> Instant) -> Result<Permits, StopReason> {
        let now = Unread::new(now);
        let mut permits = self.reserve(FailureKind::Transient, &now)?;
        let wait = self.ask(&mut permits, Ask { is_first: false, latest: None }, &now)?;
        if wait.is_zero() {
            return Ok(permits);
        }
        let waits_for = self.waits_for(&permits);
        self.give_back(permits, &now);
        Err(waits_for)
    }

    /// Returns the guard that lets the attempt with these permits wait, as the reason to stop of a driver that does not
    /// wait.
    pub(crate) fn waits_for(&self, permits: &Permits) -> StopReason {
        StopReason::Guard(self.iter().nth(usize::from(permits.passed)).map_or("", Guard::name))
    }

    /// Settles the permits of an attempt with its outcome.
    pub fn settle(&self, permits: Permits, outcome: &Outcome, now: impl FnOnce() -> Instant) {
        self.record(permits, outcome, &Unread::new(now));
    }

    /// Settles like [`settle`](Self::settle), for a driver that has read its clock before, such as at the start of the
    /// call: guards that read it once in a while read it less often then.
    #[inline]
    pub fn settle_after(
        &self,
        permits: Permits,
        outcome: &Outcome,
        earlier: Option<Instant>,
        now: impl FnOnce() -> Instant,
    ) {
        self.record(permits, outcome, &Unread::after(earlier, now));
    }

    /// Settles the permits of an attempt that was dropped before it completed.
    #[inline]
    pub fn abandon(&self, permits: Permits, now: impl FnOnce() -> Instant) {
        self.record(permits, &Outcome::Cancelled, &Unread::new(now));
    }

    /// Gives back the permits of an attempt that was never made.
    #[inline]
    pub fn release(&self, permits: Permits, now: impl FnOnce() -> Instant) {
        self.give_back(permits, &Unread::new(now));
    }

    pub(crate) fn give_back(&self, mut permits: Permits, now: &dyn Now) {
        for (guard, permit) in self.iter().zip(&mut permits.of) {
            if *permit != Permit::NONE {
                guard.settle(permit.take(), End::NeverMade, now);
            }
        }
    }

    /// Reports the outcome of an attempt to the guards (step 1 of the decision).
    #[inline]
    pub(crate) fn record(&self, mut permits: Permits, outcome: &Outcome, now: &dyn Now) {
        for (guard, permit) in self.iter().zip(&mut permits.of) {
            if *permit != Permit::NONE || !self.is_shared(guard) {
                guard.settle(permit.take(), End::Made(outcome), now);
            }
        }
    }
}
