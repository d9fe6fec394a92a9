//! The settings of a fleet's token bucket, before they are checked.

use core::fmt;
use core::time::Duration;

use crate::claim::Limits;

const WHOLE: u64 = 1_000_000;
const LARGEST: u64 = 1_000_000_000;

/// Settings in whole tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenSettings {
    /// The most that there is, leases included.
    pub capacity: u64,
    /// What the bucket begins with; `None` for the capacity.
    pub initial: Option<u64>,
    /// The cost of a retry.
    pub cost: u64,
    /// What a success puts back.
    pub reward: u64,
    /// What time adds in a period.
    pub refill: (u64, Duration),
}

/// A problem in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettingsProblem {
    /// The capacity is 0, or above a thousand million.
    Capacity(u64),
    /// The bucket begins with more tokens than it holds.
    InitialAboveCapacity(u64),
    /// The cost of a retry is 0, or above the capacity.
    Cost(u64),
    /// The reward for a success is above the capacity.
    RewardAboveCapacity(u64),
    /// The refill period is 0, or the refill is above the largest capacity per second.
    Refill,
}

impl TokenSettings {
    /// A capacity of 500 tokens, a cost of 5, a reward of 1, and no refill by time.
    pub const DEFAULT: Self =
        Self { capacity: 500, initial: None, cost: 5, reward: 1, refill: (0, Duration::from_secs(1)) };

    /// Returns the limits of the protocol.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn limits(&self) -> Result<Limits, Vec<SettingsProblem>> {
        let Self { capacity, initial, cost, reward, refill: (refill, per) } = *self;
        let initial = initial.unwrap_or(capacity);
        // Millionths per second. Both factors are small enough for 128 bits.
        let per_second = (u128::from(refill) * u128::from(WHOLE) * 1_000_000_000).checked_div(per.as_nanos());
        let mut problems = Vec::new();
        if capacity == 0 || capacity > LARGEST {
            problems.push(SettingsProblem::Capacity(capacity));
        }
        if initial > capacity {
            problems.push(SettingsProblem::InitialAboveCapacity(initial));
        }
        if cost == 0 || cost > capacity {
            problems.push(SettingsProblem::Cost(cost));
        }
        if reward > capacity {
            problems.push(SettingsProblem::RewardAboveCapacity(reward));
        }
        let refill = match per_second {
            Some(rate) if rate <= u128::from(LARGEST * WHOLE) => rate as u64,
            _ => {
                problems.push(SettingsProblem::Refill);
                0
            }
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Limits {
            capacity: capacity * WHOLE,
            refill,
            initial: initial * WHOLE,
            cost: cost * WHOLE,
            reward: reward * WHOLE,
        })
    }
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(capacity) => write!(f, "capacity {capacity} is outside 1 to 1000000000: change it"),
            Self::InitialAboveCapacity(initial) => write!(f, "initial {initial} is above the capacity: lower it"),
            Self::Cost(cost) => write!(f, "cost {cost} is outside 1 to the capacity: change it"),
            Self::RewardAboveCapacity(reward) => write!(f, "reward {reward} is above the capacity: lower it"),
            Self::Refill => {
                f.write_str("the refill period is 0s, or the refill is above 1000000000 tokens per second: change it")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_millionths_and_per_second() {
        let settings = TokenSettings { refill: (30, Duration::from_secs(60)), ..TokenSettings::DEFAULT };
        let want =
            Limits { capacity: 500_000_000, refill: 500_000, initial: 500_000_000, cost: 5_000_000, reward: 1_000_000 };
        assert_eq!(settings.limits(), Ok(want));
    }

    #[test]
    fn every_problem_is_found_at_once() {
        let second = Duration::from_secs(1);
        let settings =
            TokenSettings { capacity: 0, initial: Some(1), cost: 2, reward: 3, refill: (u64::MAX, Duration::ZERO) };
        let want = [
            SettingsProblem::Capacity(0),
            SettingsProblem::InitialAboveCapacity(1),
            SettingsProblem::Cost(2),
            SettingsProblem::RewardAboveCapacity(3),
            SettingsProblem::Refill,
        ];
        assert_eq!(settings.limits(), Err(want.to_vec()));
        for (refill, is_valid) in [((LARGEST, second), true), ((LARGEST + 1, second), false)] {
            let settings = TokenSettings { refill, ..TokenSettings::DEFAULT };
            assert_eq!(settings.limits().is_ok(), is_valid, "{refill:?}");
        }
    }
}
