//! The tokens of a process, which retries touch.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The tokens of one target in one process, in millionths, and what it has counted: all that calls touch.
///
/// At any time `held + spent − released` is what the process was granted. A reader that takes `released`, `held` and
/// `spent` in this order, while a writer adds to `spent` before it takes from `held`, and to `held` before it adds to
/// `released`, never reads less than that: what a retry in between changes makes a claim too large, which the next one
/// corrects. In any other order a retry could be granted twice.
///
/// Core's loom models compile this file.
#[derive(Debug)]
pub struct Ledger {
    held: AtomicU64,
    spent: AtomicU64,
    released: AtomicU64,
    earned: AtomicU64,
    asked: AtomicU64,
    is_short: AtomicBool,
}

/// What one look at a [`Ledger`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counted {
    /// The tokens that the process holds.
    pub held: u64,
    /// The tokens that it has spent since its start. Wraps.
    pub spent: u64,
    /// The tokens that successes have earned since its start. Wraps.
    pub earned: u64,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// Creates a ledger without tokens.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Counted { held: 0, spent: 0, earned: 0 })
    }

    /// Creates a ledger with these counters.
    #[must_use]
    pub fn with(Counted { held, spent, earned }: Counted) -> Self {
        Self {
            held: AtomicU64::new(held),
            spent: AtomicU64::new(spent),
            released: AtomicU64::new(0),
            earned: AtomicU64::new(earned),
            asked: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
        }
    }

    /// Takes `cost` if the process holds it. No clock, no I/O, no lock.
    pub fn try_spend(&self, cost: u64) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.held.load(Ordering::Relaxed) < cost {
            return false;
        }
        self.spent.fetch_add(cost, Ordering::Relaxed);
        let taken = self.held.fetch_update(Ordering::Release, Ordering::Relaxed, |held| held.checked_sub(cost));
        if taken.is_err() {
            // Another thread was faster: as if it had been spent and never used.
            self.released.fetch_add(cost, Ordering::Release);
        }
        taken.is_ok()
    }

    /// Returns `cost` for a retry that was never made.
    pub fn release(&self, cost: u64) {
        self.held.fetch_add(cost, Ordering::Release);
        self.released.fetch_add(cost, Ordering::Release);
    }

    /// Counts the reward of a success.
    pub fn earn(&self, reward: u64) {
        self.earned.fetch_add(reward, Ordering::Relaxed);
    }

    /// Adds tokens that were granted.
    pub fn grant(&self, tokens: u64) {
        self.held.fetch_add(tokens, Ordering::Release);
    }

    /// Takes what is above `most`, and returns what the process claims to hold and to have spent.
    pub fn claim(&self, most: u64) -> Counted {
        let released = self.released.load(Ordering::Acquire);
        let cap = |held| if held > most { Some(most) } else { None };
        let held = match self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, cap) {
            Ok(_) => most,
            // It was not above.
            Err(held) => held,
        };
        let spent = self.spent.load(Ordering::Relaxed).wrapping_sub(released);
        Counted { held, spent, earned: self.earned.load(Ordering::Relaxed) }
    }

    /// Returns the tokens that the process holds.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the tokens that the process has spent.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed).wrapping_sub(self.released.load(Ordering::Relaxed))
    }

    /// Returns the tokens that successes have earned.
    pub fn earned(&self) -> u64 {
        self.earned.load(Ordering::Relaxed)
    }

    /// Returns how many retries were asked for since the last call of this function.
    pub fn take_asked(&self) -> u64 {
        self.asked.swap(0, Ordering::Relaxed)
    }

    /// Returns whether the caller is the first to find the process short of tokens since
    /// [`settle_short`](Self::settle_short).
    pub fn is_newly_short(&self, below: u64) -> bool {
        self.held() < below && !self.is_short.load(Ordering::Relaxed) && !self.is_short.swap(true, Ordering::Relaxed)
    }

    /// Returns whether the process was found short of tokens, and forgets it.
    pub fn settle_short(&self) -> bool {
        self.is_short.swap(false, Ordering::Relaxed)
    }

    /// Returns whether the process was found short of tokens.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }
}
