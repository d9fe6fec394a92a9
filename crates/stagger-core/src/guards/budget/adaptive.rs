use core::time::Duration;

use super::BudgetError;
use super::BudgetProblem::{Multiplier, RatioAboveOne, WindowLength};
use super::slots::{Slots, slot};
use crate::guards::guard::{Answer, Ask, End, Guard, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::random::Seed;
use crate::numbers::ratio::Ratio;
use crate::outcome::{FailureKind, ServerHealth};

/// Client-side throttling of the SRE book: the fewer requests the server accepts, the more retries are rejected, at
/// random.
///
/// ```text
/// reserve: rejected with the probability max(0, requests − K · accepts) / (requests + 1),
///              but at most max_rejection_probability
/// ```
///
/// Requests are counted when they are attempted: first attempts, retries, and the retries that were rejected here. They
/// are accepted if the server [answered](ServerHealth::Healthy); those about which [nothing can be
/// concluded](ServerHealth::Unknown) are no longer counted. Both are counted over a sliding window of twelve slots, and
/// a request leaves it together with its acceptance.
///
/// Units: requests. Defaults: K = 2, two minutes, at most 100 %, nothing rejected below 10 requests. Range: K 1 to
/// 1000, in millionths; a window of 1 s to 1 h.
///
/// Source: "Site Reliability Engineering" (Beyer and others, 2016), chapter 21, "Client-Side Throttling". Differs from
/// it in: first attempts, which detect a server's recovery, are never rejected here; and a client that has made few
/// requests rejects nothing, where the formula would reject half of the first retries.
///
/// # What it bounds
///
/// It bounds an expected value, not a burst: while the server accepts A requests in a window, about K · A are sent,
/// besides first attempts; when it accepts none, a client that made n requests rejects a retry with probability n / (n
/// + 1), so of n requests about `min_requests + ln(n / min_requests)` are granted retries, however many fail: 17 of 16
/// 000. Before the window has seen `min_requests`, all retries are granted.
///
/// Use it with a server that rejects cheaply when overloaded, and together with a budget that bounds bursts where that
/// matters. With K = 2 it rejects nothing while at least half of the requests succeed.
///
/// # Cost
///
/// Lock-free, shared by reference. The clock is read for every call and every requested retry. A call that succeeds
/// adds one to two counters that all threads share.
#[derive(Debug)]
pub struct Adaptive {
    settings: AdaptiveBuilder,
    requests: Slots<SLOTS>,
    accepts: Slots<SLOTS>,
    draws: AtomicU64,
}

/// Builds an [`Adaptive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct AdaptiveBuilder {
    seed: Seed,
    multiplier: Ratio,
    window: u64,
    max_rejection_probability: Ratio,
    min_requests: u32,
}

/// A snapshot of an [`Adaptive`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdaptiveSnapshot {
    /// Requests in the window, including the retries that were rejected here.
    pub requests: u64,
    /// Requests in the window that the server accepted.
    pub accepts: u64,
    /// The probability that a retry is rejected, rounded down.
    pub rejection_probability: Ratio,
}

const SLOTS: usize = if cfg!(loom) { 2 } else { 12 };
const SECOND: u64 = 1_000_000_000;
const MILLION: u64 = Ratio::ONE.as_millionths() as u64;

impl Adaptive {
    /// Creates a builder with the default settings. The seed draws the rejections: two clients with the same seed
    /// reject alike.
    pub const fn builder(seed: Seed) -> AdaptiveBuilder {
        AdaptiveBuilder {
            seed,
            multiplier: Ratio::percent(200),
            window: 120 * SECOND,
            max_rejection_probability: Ratio::ONE,
            min_requests: 10,
        }
    }

    const_unless_loom! {
        /// Creates a budget with the default settings.
        #[must_use]
        pub const fn new(seed: Seed) -> Self {
            Self::builder(seed).started()
        }
    }

    /// Returns a snapshot as of `now`.
    #[must_use]
    pub fn snapshot(&self, now: Instant) -> AdaptiveSnapshot {
        let slot = self.slot(now);
        let (requests, accepts) = (self.requests.sum(slot), self.accepts.sum(slot));
        let (rejected, of) = self.settings.rejection_odds(requests, accepts);
        // At most a million: `rejected ≤ of`.
        let probability = (u128::from(rejected) * u128::from(MILLION) / u128::from(of)) as u32;
        AdaptiveSnapshot { requests, accepts, rejection_probability: Ratio::millionths(probability) }
    }

    fn slot(&self, now: Instant) -> u64 {
        slot(now, self.settings.window / SLOTS as u64)
    }

    fn rejects(&self, slot: u64) -> bool {
        let (rejected, of) = self.settings.rejection_odds(self.requests.sum(slot), self.accepts.sum(slot));
        if rejected == 0 {
            return false;
        }
        let bits = self.settings.seed.for_call(self.draws.fetch_add(1, Ordering::Relaxed)).get();
        // A uniform draw below `of`.
        ((u128::from(bits) * u128::from(of)) >> 64) < u128::from(rejected)
    }
}

impl Guard for Adaptive {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        if !ask.is_first {
            return Answer::Go(held);
        }
        let slot = self.slot(now.now());
        self.requests.add(slot);
        Answer::Go(Permit(slot + 1))
    }

    fn reserve(&self, _: FailureKind, now: &dyn Now) -> Option<Permit> {
        let slot = self.slot(now.now());
        let is_rejected = self.rejects(slot);
        self.requests.add(slot);
        if is_rejected { None } else { Some(Permit(slot + 1)) }
    }

    fn settle(&self, Permit(permit): Permit, end: End<'_>, _: &dyn Now) {
        let Some(slot) = permit.checked_sub(1) else { return };
        match end {
            End::Made(outcome) if outcome.verdict() == ServerHealth::Healthy => self.accepts.add(slot),
            End::Made(outcome) if outcome.verdict() == ServerHealth::Ailing => {}
            End::Made(_) | End::NeverMade => self.requests.take_back(slot),
        }
    }

    fn bounds_retries(&self) -> bool {
        true
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        let slot = self.slot(now.now());
        self.requests.sum(slot) <= self.accepts.sum(slot)
    }

    fn fresh(&self) -> Option<Self> {
        Some(self.settings.started())
    }
}

impl AdaptiveBuilder {
    /// Sets K: how many requests are sent for each one that is accepted. Default: 2, which is `Ratio::percent(200)`.
    pub const fn multiplier(self, k: Ratio) -> Self {
        Self { multiplier: k, ..self }
    }

    /// Sets how long a request counts. Default: two minutes.
    pub const fn window(self, window: Duration) -> Self {
        Self { window: nanos(window), ..self }
    }

    /// Sets the highest probability of a rejection. Default: 1.
    pub const fn max_rejection_probability(self, most: Ratio) -> Self {
        Self { max_rejection_probability: most, ..self }
    }

    /// Sets the number of requests in the window below which nothing is rejected. Default: 10.
    pub const fn min_requests(self, requests: u32) -> Self {
        Self { min_requests: requests, ..self }
    }

    /// Returns the probability of a rejection, as numerator and denominator, not rounded.
    fn rejection_odds(&self, requests: u64, accepts: u64) -> (u64, u64) {
        // Both counts have 32 bits and the multiplier 30.
        let of = (requests + 1) * MILLION;
        if requests < u64::from(self.min_requests) {
            return (0, of);
        }
        let too_many = (requests * MILLION).saturating_sub(accepts * u64::from(self.multiplier.as_millionths()));
        (too_many.min(self.max_rejection_probability.of(of)), of)
    }

    const_unless_loom! {
        /// Creates the budget.
        ///
        /// # Errors
        /// Every problem at once: a multiplier below 1 or above 1000, a window outside 1 s to 1 h, a probability above
        /// 1.
        pub const fn build(self) -> Result<Adaptive, BudgetError> {
            let (k, most) = (self.multiplier.as_millionths() as u64, self.max_rejection_probability);
            let error = BudgetError::of([
                (Multiplier, k < MILLION || k > 1_000 * MILLION, k),
                (WindowLength, self.window < SECOND || self.window > 3_600 * SECOND, self.window),
                (RatioAboveOne, most.is_above_one(), most.as_millionths() as u64),
            ]);
            if error.is_none() { Ok(self.started()) } else { Err(error) }
        }

        const fn started(self) -> Adaptive {
            Adaptive { settings: self, requests: Slots::new(), accepts: Slots::new(), draws: AtomicU64::new(0) }
        }
    }
}
