use core::time::Duration;

use super::BudgetError;
use super::BudgetProblem::{CostAboveCapacity, InitialAboveCapacity, NoCapacity, NoCost, NoRefillTime};
use crate::guards::guard::{End, Guard, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::ratio::Ratio;
use crate::outcome::{FailureKind, ServerHealth};

/// A token bucket: every retry takes tokens, every success puts tokens back.
///
/// ```text
/// reserve: tokens ≥ cost(kind)  →  tokens −= cost(kind)
/// success:     tokens = min(capacity, tokens + refund)
/// ```
///
/// Units: tokens, kept in millionths, so that fractional rewards add up exactly. Defaults: 500 tokens, 5 for a retry, 5
/// back for every success ([`Refund::EverySuccess`]), no refill over time: the 101st retry in a row is rejected.
///
/// Source: the retry quota of the AWS SDKs ([`AWS`](Self::AWS), [`AWS_2026`](Self::AWS_2026)). Differs from it in: by
/// default every success counts the same.
///
/// # What it bounds
///
/// However many calls fail, and in whatever order: retries · cost ≤ initial tokens + refill + refunds. With the default
/// numbers, N failing calls cause at most 100 retries, and each success allows one more. So while half of all calls
/// fail, as many retries as successes are possible, without end; a smaller [reward](TokensBuilder::reward) bounds that,
/// as the 1 of the AWS SDKs does.
///
/// Tokens return with successes and not with time, after a second or a day. A client that was cut off and makes few
/// calls has few retries for a long time, unless there is a [refill](TokensBuilder::refill).
///
/// Use it in clients that talk to one service all the time. Use [`Window`](super::Window) to bound retries by a share
/// of recent traffic.
///
/// # Cost
///
/// Lock-free, shared by reference; a success on a full bucket is one load. The clock is read when a retry is requested,
/// and only if there is a refill. The cost of a retry that was never made is returned; a retry cancelled while in
/// flight has been a load on the server and stays charged.
///
/// ```
/// use stagger_core::budget::Tokens;
/// use stagger_core::{FailureKind, Guard, Instant};
///
/// static TOKENS: Tokens = Tokens::new();
///
/// for _ in 0..100 {
///     assert!(TOKENS.reserve(FailureKind::Transient, &Instant::ZERO).is_some());
/// }
/// assert!(TOKENS.reserve(FailureKind::Transient, &Instant::ZERO).is_none());
/// ```
#[derive(Debug)]
pub struct Tokens {
    settings: TokensBuilder,
    tokens: AtomicU64,
    /// Up to when the refill has been counted, in nanoseconds, plus one; 0 before the first requested retry.
    refilled: AtomicU64,
}

/// What a success puts back into the bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refund {
    /// The reward, for every success. The default.
    #[default]
    EverySuccess,
    /// The rule of the AWS SDKs: a successful retry returns the cost of this last retry (earlier ones stay charged); a
    /// successful first attempt returns the reward.
    LastCost,
}

/// Builds [`Tokens`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct TokensBuilder {
    capacity: u64,
    initial: Option<u64>,
    transient: u64,
    throttled: u64,
    local: u64,
    refund: Refund,
    reward: u64,
    refill: Option<Refill>,
}

/// So many millionths of a token in so many nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refill {
    amount: u64,
    per: u64,
}

/// A snapshot of [`Tokens`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokensSnapshot {
    /// Whole tokens.
    pub tokens: u64,
    /// The fraction of a token besides them.
    pub fraction: Ratio,
    /// The maximum number of tokens.
    pub capacity: u64,
}

/// The state of [`Tokens`] as numbers, for a budget that outlives its process, or that processes share.
///
/// It has no settings: [`TokensBuilder::restore`] combines it with those of the process that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokensState {
    /// The tokens, in millionths of one.
    pub millionths: u64,
    /// Up to when the refill has been added; `None` before the first requested retry.
    pub refilled: Option<Instant>,
}

impl TokensState {
    /// Creates a state, from numbers that were stored.
    #[must_use]
    pub const fn new(millionths: u64, refilled: Option<Instant>) -> Self {
        Self { millionths, refilled }
    }
}

/// One token.
const WHOLE: u64 = Ratio::ONE.as_millionths() as u64;

const fn whole(tokens: u32) -> u64 {
    tokens as u64 * WHOLE
}

const fn most(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}

impl Tokens {
    /// The numbers of the AWS SDKs until 2026: 500 tokens; cost 10 for a transient failure and 5 for any other; a
    /// success returns the cost of the last retry, or 1 at the first attempt. Source: smithy-rs, retry mode 2.0.
    pub const AWS: TokensBuilder =
        Self::builder().transient_cost(10).throttled_cost(5).local_cost(5).refund(Refund::LastCost).reward(1);

    /// The numbers of the AWS SDKs from 2026: like [`AWS`](Self::AWS), but cost 5 for a throttled request and 14 for
    /// any other failure. Source: smithy-rs, retry mode 2.1.
    pub const AWS_2026: TokensBuilder = Self::AWS.transient_cost(14).local_cost(14);

    /// Creates a builder with the default settings.
    pub const fn builder() -> TokensBuilder {
        TokensBuilder {
            capacity: whole(500),
            initial: None,
            transient: whole(5),
            throttled: whole(5),
            local: whole(5),
            refund: Refund::EverySuccess,
            reward: whole(5),
            refill: None,
        }
    }

    const_unless_loom! {
        /// Creates a bucket with the default settings.
        #[must_use]
        pub const fn new() -> Self {
            Self::builder().filled()
        }
    }

    /// Returns a snapshot. A refill is applied when a retry is requested, and visible from then on.
    #[must_use]
    pub fn snapshot(&self) -> TokensSnapshot {
        let held = self.tokens.load(Ordering::Relaxed);
        TokensSnapshot {
            tokens: held / WHOLE,
            fraction: Ratio::millionths((held % WHOLE) as u32),
            capacity: self.settings.capacity / WHOLE,
        }
    }

    /// Returns the state, to store it. If other threads use the bucket meanwhile, the two numbers may be of different
    /// moments.
    #[must_use]
    pub fn state(&self) -> TokensState {
        let refilled = self.refilled.load(Ordering::Relaxed).checked_sub(1).map(Instant::from_nanos);
        TokensState { millionths: self.tokens.load(Ordering::Relaxed), refilled }
    }

    #[inline]
    fn deposit(&self, amount: u64) {
        let capacity = self.settings.capacity;
        // A full bucket is only read, so that successes on many threads do not disturb each other.
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            if held < capacity && amount > 0 { Some(held.saturating_add(amount).min(capacity)) } else { None }
        });
    }

    /// Adds the tokens earned since the last refill. The thread that advances the time adds them, so nothing is added
    /// twice; until it has, other threads see too few tokens, never too many.
    #[cold]
    fn refill(&self, refill: Refill, now: Instant) {
        let now = now.as_nanos().saturating_add(1);
        let last = self.refilled.load(Ordering::Relaxed);
        let (from, earned) = if last == 0 { (now, 0) } else { refill.since(last, now, self.settings.capacity) };
        if from != last && self.refilled.compare_exchange(last, from, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.deposit(earned);
        }
    }
}

impl Refill {
    /// Returns the start of the next refill, and the tokens earned since `last`.
    fn since(self, last: u64, now: u64, capacity: u64) -> (u64, u64) {
        let (amount, per) = (u128::from(self.amount), u128::from(self.per));
        let earned = u128::from(now.saturating_sub(last)) * amount / per;
        if earned >= u128::from(capacity) {
            return (now, capacity);
        }
        // The time that it took to earn them, rounded up: the remainder of a millionth is neither lost nor invented.
        let took = (earned * per).div_ceil(amount.max(1));
        // At most `now − last`, and fewer than `capacity` were earned.
        (last + took as u64, earned as u64)
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard for Tokens {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        if let Some(refill) = self.settings.refill {
            self.refill(refill, now.now());
        }
        let cost = self.settings.cost_of(kind);
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| held.checked_sub(cost)).ok()?;
        // One more than the cost, so that the permit of a free retry is not `NONE`.
        Some(Permit(cost + 1))
    }

    #[inline]
    fn settle(&self, permit: Permit, end: End<'_>, _: &dyn Now) {
        match end {
            End::Made(outcome) if outcome.verdict() != ServerHealth::Healthy => {}
            End::Made(_) => self.deposit(match (self.settings.refund, permit) {
                (Refund::EverySuccess, _) | (Refund::LastCost, Permit::NONE) => self.settings.reward,
                (Refund::LastCost, Permit(cost)) => cost - 1,
            }),
            End::NeverMade => self.deposit(permit.0.saturating_sub(1)),
        }
    }

    /// Returns how many retries after transient failures the tokens suffice for.
    fn available(&self) -> Option<u64> {
        self.tokens.load(Ordering::Relaxed).checked_div(self.settings.transient)
    }

    fn bounds_retries(&self) -> bool {
        true
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        if let Some(refill) = self.settings.refill {
            self.refill(refill, now.now());
        }
        self.tokens.load(Ordering::Relaxed) >= self.settings.initial_tokens()
    }

    /// Returns whether a new bucket has less than its capacity, so that a success adds to it.
    fn needs_every_call(&self) -> bool {
        self.settings.initial_tokens() < self.settings.capacity
    }

    fn fresh(&self) -> Option<Self> {
        Some(self.settings.filled())
    }
}

impl TokensBuilder {
    /// Sets the maximum number of tokens. Default: 500.
    pub const fn capacity(self, tokens: u32) -> Self {
        Self { capacity: whole(tokens), ..self }
    }

    /// Sets the number of tokens at the start. Default: the capacity.
    pub const fn initial(self, tokens: u32) -> Self {
        Self { initial: Some(whole(tokens)), ..self }
    }

    /// Sets the cost of every retry. Default: 5.
    pub const fn cost(self, tokens: u32) -> Self {
        self.transient_cost(tokens).throttled_cost(tokens).local_cost(tokens)
    }

    /// Sets the cost of a retry after a [transient](FailureKind::Transient) failure. Default: 5.
    pub const fn transient_cost(self, tokens: u32) -> Self {
        Self { transient: whole(tokens), ..self }
    }

    /// Sets the cost of a retry after a [throttled](FailureKind::Throttled) request. Default: 5.
    pub const fn throttled_cost(self, tokens: u32) -> Self {
        Self { throttled: whole(tokens), ..self }
    }

    /// Sets the cost of a retry after the client ran out of [a resource of its own](FailureKind::LocalExhaustion).
    /// Default: 5.
    pub const fn local_cost(self, tokens: u32) -> Self {
        Self { local: whole(tokens), ..self }
    }

    /// Sets what a success puts back. Default: the reward, for every success.
    pub const fn refund(self, refund: Refund) -> Self {
        Self { refund, ..self }
    }

    /// Sets the reward for a success, in whole tokens. Default: 5.
    pub const fn reward(self, tokens: u32) -> Self {
        Self { reward: whole(tokens), ..self }
    }

    /// Sets the reward for a success, as a share of a token.
    pub const fn fractional_reward(self, share: Ratio) -> Self {
        Self { reward: share.as_millionths() as u64, ..self }
    }

    /// Adds `tokens` in each period `per`, evenly, from the first requested retry on. Default: none. With a refill, the
    /// clock is read whenever a retry is requested.
    pub const fn refill(self, tokens: u32, per: Duration) -> Self {
        Self { refill: Some(Refill { amount: whole(tokens), per: nanos(per) }), ..self }
    }

    const fn dearest(&self) -> u64 {
        most(self.transient, most(self.throttled, self.local))
    }

    const fn initial_tokens(&self) -> u64 {
        match self.initial {
            Some(initial) => initial,
            None => self.capacity,
        }
    }

    const fn cost_of(&self, kind: FailureKind) -> u64 {
        match kind {
            FailureKind::Transient => self.transient,
            FailureKind::Throttled => self.throttled,
            FailureKind::LocalExhaustion => self.local,
        }
    }

    const_unless_loom! {
        /// Creates the bucket.
        ///
        /// # Errors
        /// Every problem at once: a capacity of 0, more tokens at the start than the capacity, a cost above the
        /// capacity, no cost at all, a refill period of 0.
        pub const fn build(self) -> Result<Tokens, BudgetError> {
            let initial = match self.initial {
                Some(initial) => initial,
                None => 0,
            };
            let error = BudgetError::of([
                (NoCapacity, self.capacity == 0, self.capacity),
                (InitialAboveCapacity, initial > self.capacity, initial),
                (CostAboveCapacity, self.capacity > 0 && self.dearest() > self.capacity, self.dearest()),
                (NoCost, self.dearest() == 0, 0),
                (NoRefillTime, matches!(self.refill, Some(Refill { per: 0, .. })), 0),
            ]);
            if error.is_none() { Ok(self.filled()) } else { Err(error) }
        }

        /// Creates the bucket with a stored state. Tokens above the capacity are dropped.
        ///
        /// # Errors
        /// As [`build`](Self::build).
        pub const fn restore(self, state: TokensState) -> Result<Tokens, BudgetError> {
            match self.build() {
                Ok(Tokens { settings, .. }) => {
                    let full = settings.capacity;
                    let tokens = if state.millionths < full { state.millionths } else { full };
                    let refilled = match state.refilled {
                        Some(refilled) => refilled.as_nanos().saturating_add(1),
                        None => 0,
                    };
                    Ok(Tokens { settings, tokens: AtomicU64::new(tokens), refilled: AtomicU64::new(refilled) })
                }
                Err(error) => Err(error),
            }
        }

        const fn filled(self) -> Tokens {
            Tokens { settings: self, tokens: AtomicU64::new(self.initial_tokens()), refilled: AtomicU64::new(0) }
        }
    }
}
