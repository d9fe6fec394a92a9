use std::collections::VecDeque;

use crate::claim::{Limits, SECOND};

/// One bucket without a fleet, which pays for every retry as it is granted: what a budget of leases is measured by.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    limits: Limits,
    /// In millionths of a millionth of a token: what a microsecond refills is whole.
    level: i128,
    lowest: i128,
    at: u64,
    /// What was earned lately and may not have been reported: times, and amounts in millionths of a token.
    unreported: VecDeque<(u64, u64)>,
    late: u64,
    most_late: u64,
}

/// How late a success is reported: a period, a tenth of it, and two reports that collide.
const LATEST: u64 = SECOND * 3 / 2;
const FRACTION: i128 = SECOND as i128;

impl Audit {
    pub(super) const fn new(limits: Limits) -> Self {
        let level = limits.initial as i128 * FRACTION;
        Self { limits, level, lowest: 0, at: 0, unreported: VecDeque::new(), late: 0, most_late: 0 }
    }

    /// Notes what was spent and earned at `now`, in millionths of a token.
    pub(super) fn note(&mut self, spent: i64, earned: u64, now: u64) {
        let elapsed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let gained = i128::from(elapsed) * i128::from(self.limits.refill) + i128::from(earned) * FRACTION;
        let full = i128::from(self.limits.capacity) * FRACTION;
        self.level = (self.level + gained).min(full) - i128::from(spent) * FRACTION;
        self.lowest = self.lowest.min(self.level);
        while let Some(&(_, reported)) = self.unreported.front().filter(|(at, _)| *at + LATEST < now) {
            self.unreported.pop_front();
            self.late -= reported;
        }
        if earned > 0 {
            self.unreported.push_back((now, earned));
            self.late += earned;
            self.most_late = self.most_late.max(self.late);
        }
    }

    /// Returns the most that successes had earned, in millionths of a token, before they were reported: a full bucket
    /// forgets at once what it earns, and the store only when it learns of it.
    pub(super) const fn most_late(&self) -> u64 {
        self.most_late
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

    #[test]
    fn what_is_reported_late_is_what_was_earned_within_a_second_and_a_half() {
        let limits = Limits { capacity: 10 * TOKEN, refill: 0, initial: 10 * TOKEN, cost: TOKEN, reward: TOKEN };
        let mut audit = Audit::new(limits);
        for tenth in 0..100 {
            audit.note(0, TOKEN, tenth * SECOND / 10);
        }
        assert_eq!(audit.most_late(), 16 * TOKEN);
    }
}
