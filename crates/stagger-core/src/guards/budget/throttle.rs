use super::BudgetError;
use super::BudgetProblem::{MaxTokens, TokenRatio};
use crate::guards::guard::{End, Guard, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::ratio::Ratio;
use crate::outcome::{FailureKind, Outcome, ServerHealth};

/// gRPC's retry throttling: rejects retries while half of the tokens are used up.
///
/// ```text
/// failure: tokens = max(0, tokens − 1)
/// success: tokens = min(max_tokens, tokens + token_ratio)
/// reserve: tokens > max_tokens / 2, and nothing is taken
/// ```
///
/// Units: tokens, kept in thousandths. Range: `max_tokens` 1 to 1000, `token_ratio` 0.001 to 1000, of which three
/// decimals are kept. There are no defaults; the proposal's example uses 10 and 0.1.
///
/// Source: gRPC proposal A6, "Throttling Retry Attempts and Hedged RPCs". Differs from it in: nothing. A success is
/// [`Outcome::Success`]; a failure is a temporary one that is not of kind [`FailureKind::LocalExhaustion`], whether or
/// not it is retried; a permanent failure is neither.
///
/// # What it bounds
///
/// Every retry is preceded by a failure of its own, which takes a token: N failing calls cause fewer than `max_tokens /
/// 2 + token_ratio · successes` retries. Failures of kind `LocalExhaustion` take nothing, because they have not reached
/// the server, so the retries after them are bounded by the policy alone.
///
/// Use it to behave like gRPC clients in other languages that call the same server. It counts failures and not retries,
/// so it stops early: with a `token_ratio` of 0.1 no retry is granted once one call in eleven fails.
///
/// # Cost
///
/// Lock-free, shared by reference; a success with all tokens present is one load. It never reads the clock.
#[derive(Debug)]
pub struct Throttle {
    /// Tokens, their maximum and the ratio, 20 bits each, so that a new configuration takes effect at once.
    word: AtomicU64,
}

/// A snapshot of a [`Throttle`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThrottleSnapshot {
    /// Tokens, in thousandths.
    pub milli_tokens: u32,
    /// The maximum number of tokens, in thousandths.
    pub max_milli_tokens: u32,
    /// The tokens that a success puts back, in thousandths.
    pub milli_ratio: u32,
}

/// One token.
const WHOLE: u32 = 1_000;
/// Room for 1 000 000 thousandths.
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;

impl ThrottleSnapshot {
    const fn read(word: u64) -> Self {
        Self {
            milli_tokens: (word & MASK) as u32,
            max_milli_tokens: (word >> BITS & MASK) as u32,
            milli_ratio: (word >> (2 * BITS) & MASK) as u32,
        }
    }

    const fn word(self) -> u64 {
        self.milli_tokens as u64 | (self.max_milli_tokens as u64) << BITS | (self.milli_ratio as u64) << (2 * BITS)
    }

    /// Returns the state with all tokens, in this configuration.
    const fn full(max_tokens: u32, token_ratio: Ratio) -> Result<Self, BudgetError> {
        let milli_ratio = token_ratio.as_millionths() / 1_000;
        let error = BudgetError::of([
            (MaxTokens, max_tokens == 0 || max_tokens > 1_000, max_tokens as u64),
            (TokenRatio, milli_ratio == 0 || milli_ratio > 1_000 * WHOLE, token_ratio.as_millionths() as u64),
        ]);
        let max = max_tokens.saturating_mul(WHOLE);
        let full = Self { milli_tokens: max, max_milli_tokens: max, milli_ratio };
        if error.is_none() { Ok(full) } else { Err(error) }
    }

    const fn grants(self) -> bool {
        self.milli_tokens * 2 > self.max_milli_tokens
    }
}

impl Throttle {
    const_unless_loom! {
        /// Creates a throttle with all tokens. The token ratio may be above one.
        ///
        /// # Errors
        /// `max_tokens` outside `1..=1000`, or a `token_ratio` below 0.001 or above 1000.
        pub const fn new(max_tokens: u32, token_ratio: Ratio) -> Result<Self, BudgetError> {
            match ThrottleSnapshot::full(max_tokens, token_ratio) {
                Ok(full) => Ok(Self { word: AtomicU64::new(full.word()) }),
                Err(error) => Err(error),
            }
        }
    }

    /// Sets a new configuration, with the same proportion of tokens: three of four tokens become 7.5 of 10.
    ///
    /// # Errors
    /// As [`new`](Self::new); the old configuration stays in force.
    pub fn reconfigure(&self, max_tokens: u32, token_ratio: Ratio) -> Result<(), BudgetError> {
        let full = ThrottleSnapshot::full(max_tokens, token_ratio)?;
        self.update(|old| {
            let share =
                u64::from(old.milli_tokens) * u64::from(full.max_milli_tokens) / u64::from(old.max_milli_tokens);
            ThrottleSnapshot { milli_tokens: share as u32, ..full }
        });
        Ok(())
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> ThrottleSnapshot {
        ThrottleSnapshot::read(self.word.load(Ordering::Relaxed))
    }

    /// Applies a change, and writes only if it changes something, so that successes on many threads do not disturb each
    /// other.
    #[inline]
    fn update(&self, change: impl Fn(ThrottleSnapshot) -> ThrottleSnapshot) {
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let new = change(ThrottleSnapshot::read(word)).word();
            if new == word { None } else { Some(new) }
        });
    }
}

/// The permit of a retry. Nothing is taken, but it tells the retries of a nested call from its first attempt.
const RETRY: Permit = Permit(1);

impl Guard for Throttle {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        if self.snapshot().grants() { Some(RETRY) } else { None }
    }

    #[inline]
    fn settle(&self, _: Permit, end: End<'_>, _: &dyn Now) {
        let End::Made(outcome) = end else { return };
        match outcome.verdict() {
            ServerHealth::Ailing => {
                self.update(|held| ThrottleSnapshot { milli_tokens: held.milli_tokens.saturating_sub(WHOLE), ..held })
            }
            ServerHealth::Healthy if matches!(outcome, Outcome::Success) => self.update(|held| {
                let tokens = (held.milli_tokens + held.milli_ratio).min(held.max_milli_tokens);
                ThrottleSnapshot { milli_tokens: tokens, ..held }
            }),
            ServerHealth::Healthy | ServerHealth::Unknown => {}
        }
    }

    /// Returns how many failures in a row would still be retried.
    fn available(&self) -> Option<u64> {
        let held = self.snapshot();
        let above = (2 * held.milli_tokens).saturating_sub(held.max_milli_tokens);
        // The last one must leave more than one half.
        Some(u64::from(above.saturating_sub(1) / (2 * WHOLE)))
    }

    fn bounds_retries(&self) -> bool {
        true
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        let held = self.snapshot();
        held.milli_tokens == held.max_milli_tokens
    }

    fn needs_every_call(&self) -> bool {
        false
    }

    fn fresh(&self) -> Option<Self> {
        let held = self.snapshot();
        let full = ThrottleSnapshot { milli_tokens: held.max_milli_tokens, ..held };
        Some(Self { word: AtomicU64::new(full.word()) })
    }
}
