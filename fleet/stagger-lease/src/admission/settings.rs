//! The settings of a shared admission, checked.

use core::fmt;
use core::time::Duration;

use stagger_core::admission::{ReservationToken, Secret};

use super::shares::WHOLE;

const LARGEST_RATE: u32 = 1_000_000_000;
const LARGEST_WEIGHT: u32 = 1_000_000;
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// Settings of a shared admission, for all servers together.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionSettings {
    /// Clients a second.
    pub rate: u32,
    /// How many clients may be admitted at once without a reservation; `None` for those of 100 ms.
    pub burst: Option<u32>,
    /// The longest wait for a reservation.
    pub max_wait: Duration,
    /// The weight of this server.
    pub weight: u32,
    /// The most clients a second that this server admits; `None` for the rate.
    pub most: Option<u32>,
    /// The key that seals reservations.
    pub secret: Secret,
    /// Another key whose reservations are honored as well, while all servers change from one to the other.
    pub accepted: Option<Secret>,
}

/// The settings, checked. Lengths are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    pub(crate) rate: u64,
    /// The time of the burst.
    pub(crate) burst: u64,
    pub(crate) max_wait: u64,
    pub(crate) weight: u64,
    /// The largest share, in millionths.
    pub(crate) most: u64,
    secret: Secret,
    accepted: Option<Secret>,
}

/// A problem in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionProblem {
    /// The rate is 0, or above a thousand million.
    Rate(u32),
    /// The burst is 0.
    Burst,
    /// The longest wait is 0, or above an hour.
    MaxWait(Duration),
    /// The weight is 0, or above a million.
    Weight(u32),
    /// The most that one server admits is 0, or less than a millionth of the rate.
    Most(u32),
    /// All bytes of the secret are zero.
    Secret,
}

impl AdmissionSettings {
    /// Creates settings with the defaults: a burst of 100 ms, a longest wait of five minutes, weight 1, no limit for
    /// this server.
    #[must_use]
    pub const fn new(rate: u32, secret: Secret) -> Self {
        Self { rate, burst: None, max_wait: Duration::from_secs(300), weight: 1, most: None, secret, accepted: None }
    }

    /// Returns the limits of the protocol.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn limits(&self) -> Result<AdmissionLimits, Vec<AdmissionProblem>> {
        let Self { rate, burst, max_wait, weight, most, secret, accepted } = *self;
        let burst = burst.unwrap_or((rate / 10).max(1));
        let mut share = WHOLE;
        let mut problems = Vec::new();
        if rate == 0 || rate > LARGEST_RATE {
            problems.push(AdmissionProblem::Rate(rate));
        }
        if burst == 0 {
            problems.push(AdmissionProblem::Burst);
        }
        if max_wait.is_zero() || max_wait > LONGEST_WAIT {
            problems.push(AdmissionProblem::MaxWait(max_wait));
        }
        if weight == 0 || weight > LARGEST_WEIGHT {
            problems.push(AdmissionProblem::Weight(weight));
        }
        if let Some(most) = most {
            share = u64::from(most) * WHOLE / u64::from(rate.max(1));
            if share == 0 {
                problems.push(AdmissionProblem::Most(most));
            }
        }
        if secret.is_zero() || accepted.is_some_and(|secret| secret.is_zero()) {
            problems.push(AdmissionProblem::Secret);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(AdmissionLimits {
            rate: u64::from(rate),
            burst: u64::from(burst) * 1_000_000_000 / u64::from(rate),
            max_wait: u64::try_from(max_wait.as_nanos()).unwrap_or(u64::MAX),
            weight: u64::from(weight),
            most: share.min(WHOLE),
            secret,
            accepted,
        })
    }
}

impl AdmissionLimits {
    /// Returns the reservation of a position.
    pub(crate) fn seal(&self, position: u64) -> ReservationToken {
        ReservationToken::seal(position, self.secret)
    }

    /// Returns the position of a reservation that one of the servers has sealed.
    pub(crate) fn position(&self, token: &ReservationToken) -> Option<u64> {
        match token.position(self.secret) {
            Some(position) => Some(position),
            None => token.position(self.accepted?),
        }
    }

    /// Returns whether both are of one admission with the same settings. The secrets are not compared.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let of = |limits: &Self| (limits.rate, limits.burst, limits.max_wait, limits.weight, limits.most);
        of(self) == of(other)
    }
}

impl fmt::Display for AdmissionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => {
                write!(f, "rate {rate} is outside 1 to 1000000000 a second: use what all servers can take together")
            }
            Self::Burst => {
                f.write_str("burst is 0, so no client could be admitted without a reservation: use 1 or more")
            }
            Self::MaxWait(wait) => write!(f, "max_wait {wait:?} is 0s or above 1h: change it"),
            Self::Weight(weight) => write!(f, "weight {weight} is outside 1 to 1000000: change it"),
            Self::Most(most) => {
                write!(f, "this server may admit {most} a second, less than a millionth of the rate: raise it")
            }
            Self::Secret => f.write_str(
                "the secret is zero, so anyone could make up reservations: \
                 use 16 random bytes, the same in all servers",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_only_accepted_is_not_zero_either() {
        for (byte, want) in [(0, Err(vec![AdmissionProblem::Secret])), (1, Ok(()))] {
            let accepted = Some(Secret::new([byte; 16]));
            let settings = AdmissionSettings { accepted, ..AdmissionSettings::new(1, Secret::new([7; 16])) };
            assert_eq!(settings.limits().map(|_| ()), want);
        }
    }

    #[test]
    fn every_problem_of_an_admission_is_found_at_once() {
        let wrong = AdmissionSettings {
            rate: 0,
            burst: Some(0),
            max_wait: Duration::ZERO,
            weight: 0,
            most: Some(0),
            secret: Secret::new([0; 16]),
            accepted: None,
        };
        let want = [
            AdmissionProblem::Rate(0),
            AdmissionProblem::Burst,
            AdmissionProblem::MaxWait(Duration::ZERO),
            AdmissionProblem::Weight(0),
            AdmissionProblem::Most(0),
            AdmissionProblem::Secret,
        ];
        assert_eq!(wrong.limits().unwrap_err(), want);
        for problem in want {
            let text = problem.to_string();
            assert!(text.contains('0') || text.contains("zero"), "{text}");
        }
        let most = AdmissionSettings { most: Some(1), ..AdmissionSettings::new(1_000_000_000, Secret::new([1; 16])) };
        assert_eq!(most.limits().unwrap_err(), [AdmissionProblem::Most(1)]);
    }

    #[test]
    fn the_burst_is_that_of_a_tenth_of_a_second_and_at_least_one_client() {
        for (rate, burst, want) in [(500, None, 100_000_000), (3, None, 333_333_333), (500, Some(1), 2_000_000)] {
            let settings = AdmissionSettings { burst, ..AdmissionSettings::new(rate, Secret::new([1; 16])) };
            assert_eq!(settings.limits().unwrap().burst, want, "{rate}/s, {burst:?}");
        }
    }
}
