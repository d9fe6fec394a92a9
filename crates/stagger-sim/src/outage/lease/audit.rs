use stagger_lease::claim::{Limits, SECOND};

/// One bucket without a fleet, which pays for every retry as it is granted: what a budget of leases is measured by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Audit {
    limits: Limits,
    /// In millionths of a millionth of a token: what a microsecond refills is whole.
    level: i128,
    lowest: i128,
    at: u64,
}

const FRACTION: i128 = SECOND as i128;

impl Audit {
    pub(super) const fn new(limits: Limits) -> Self {
        let level = limits.initial as i128 * FRACTION;
        Self { limits, level, lowest: 0, at: 0 }
    }

    /// Notes what was spent and earned at `now`, in millionths of a token.
    pub(super) fn note(&mut self, spent: i64, earned: u64, now: u64) {
        let elapsed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let gained = i128::from(elapsed) * i128::from(self.limits.refill) + i128::from(earned) * FRACTION;
        let full = i128::from(self.limits.capacity) * FRACTION;
        self.level = (self.level + gained).min(full) - i128::from(spent) * FRACTION;
        self.lowest = self.lowest.min(self.level);
    }

    /// Returns how far the bucket fell below zero, as a ratio of its capacity.
    pub(super) fn overshoot(&self) -> f64 {
        -self.lowest as f64 / (self.limits.capacity as f64 * FRACTION as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: u64 = 1_000_000;

    #[test]
    fn a_bucket_is_refilled_up_to_its_capacity_and_remembers_how_far_it_fell() {
        let limits = Limits { capacity: 10 * TOKEN, refill: TOKEN, initial: 10 * TOKEN, cost: TOKEN, reward: 0 };
        let mut audit = Audit::new(limits);
        audit.note(8_000_000, 0, 5 * SECOND);
        audit.note(4_000_000, 0, 7 * SECOND);
        assert!(audit.overshoot().abs() < 1e-9, "8 and 4 of 10, and 2 refilled after the first: {}", audit.overshoot());
        audit.note(2_000_000, 1_000_000, 7 * SECOND);
        assert!((audit.overshoot() - 0.1).abs() < 1e-9, "one token below zero");
        audit.note(0, 0, 100 * SECOND);
        audit.note(10_000_000, 0, 100 * SECOND);
        assert!((audit.overshoot() - 0.1).abs() < 1e-9, "full again, and not fuller");
    }
}
