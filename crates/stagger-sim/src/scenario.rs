//! What the scenarios share: their problems, and their setters.

use core::fmt;

/// All problems of a scenario. Displayed with a fix for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    problems: Vec<ScenarioProblem>,
}

/// A problem of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScenarioProblem {
    /// The number of clients or processes is 0, or the number of clients, processes or requests is above 67,108,864.
    Clients,
    /// The number of processes that clients are grouped into is 0, or above the number of clients.
    Processes,
    /// The rate is not between a billionth and a billion per second.
    Rate,
    /// The backlog is 0, or the queue is longer than 67,108,864.
    Backlog,
    /// The minimum one-way delay is above the maximum, or the maximum is above an hour.
    Network,
    /// The mean message delay is 0, so clients could not conflict with each other.
    MessageDelay,
    /// The timeout is shorter than a round trip.
    Timeout,
    /// Some clients are disconnected, or the outage ends, after the horizon.
    BeyondHorizon,
    /// The horizon is 0 or above 76 hours.
    Horizon,
    /// A fault of the store does not end after it begins, or ends after the horizon, or cuts off more than all
    /// processes.
    Store,
    /// Guards and a crash loop cannot be simulated together.
    GuardedCrashLoop,
    /// A server that assigns reservations has a rate below 1 per second.
    ReservationRate,
}

impl ScenarioError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = ScenarioProblem> + '_ {
        self.problems.iter().copied()
    }

    /// Returns an error with the problems whose condition is true, if any.
    pub(crate) fn check(problems: impl IntoIterator<Item = (ScenarioProblem, bool)>) -> Result<(), Self> {
        let problems: Vec<_> =
            problems.into_iter().filter(|&(_, is_there)| is_there).map(|(problem, _)| problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }
}

/// Returns whether `rate` can be simulated: beyond these limits (one in thirty years, one per nanosecond) times cannot
/// be represented.
pub(crate) fn is_rate(rate: f64) -> bool {
    (1e-9..=1e9).contains(&rate)
}

impl fmt::Display for ScenarioProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clients => {
                "the number of clients, processes or requests is not between 1 and 67,108,864; \
                 to simulate more, scale clients, rate and backlog down in proportion"
            }
            Self::Processes => "the number of processes is 0 or above the number of clients; use a number in between",
            Self::Rate => {
                "the rate is not between 0.000000001 and 1,000,000,000 per second; use the capacity of the server"
            }
            Self::Backlog => {
                "the backlog is 0, so no client could be accepted, or the queue is longer than 67,108,864; \
                 use a value between 1 and 67,108,864"
            }
            Self::Network => {
                "the minimum one-way delay is above the maximum, or the maximum is above an hour; swap them or use less"
            }
            Self::MessageDelay => "the mean message delay is 0; use a mean of one microsecond or more",
            Self::Timeout => "the timeout is shorter than a round trip; raise it",
            Self::BeyondHorizon => {
                "not all clients are disconnected, or the server is not up again, before the horizon; raise the horizon"
            }
            Self::Horizon => "the horizon is 0 or above 76 hours; use a value in between",
            Self::Store => {
                "a fault of the store does not end after it begins, or ends after the horizon, or cuts off more than \
                 all processes; change its times, or raise the horizon"
            }
            Self::GuardedCrashLoop => "guards and a crash loop cannot be simulated together; remove one of them",
            Self::ReservationRate => {
                "reservations require a rate of at least 1 per second; raise the rate, or use other hints"
            }
        })
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

impl core::error::Error for ScenarioError {}

/// Defines the setters of a type whose fields have the same names; after `in`, of the type in that field. Each is one
/// line: the name, the type of the argument, and the value that is stored.
macro_rules! setters {
    (in $inner:tt; $($(#[$doc:meta])* $name:ident: $Type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        pub const fn $name(mut self, $name: $Type) -> Self {
            self.$inner.$name = $value;
            self
        }
    )*};
    ($($(#[$doc:meta])* $name:ident: $Type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        pub const fn $name(mut self, $name: $Type) -> Self {
            self.$name = $value;
            self
        }
    )*};
}

pub(crate) use setters;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_reported_together() {
        let problems =
            [(ScenarioProblem::Rate, true), (ScenarioProblem::Network, false), (ScenarioProblem::Backlog, true)];
        let error = ScenarioError::check(problems).unwrap_err();
        assert_eq!(error.problems().collect::<Vec<_>>(), [ScenarioProblem::Rate, ScenarioProblem::Backlog]);
        let text = error.to_string();
        assert!(text.contains("use the capacity of the server; the backlog is 0"), "{text}");
    }
}
