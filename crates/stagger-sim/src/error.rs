use core::fmt;

/// Everything that is wrong with a scenario, each with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    problems: Vec<ScenarioProblem>,
}

/// One thing that is wrong with a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScenarioProblem {
    /// The number of clients or of processes is 0, or one of those or of requests is above 67,108,864.
    Clients,
    /// The rate is not a number within a billionth and a billion a second.
    Rate,
    /// The backlog is 0, or the queue above 67,108,864.
    Backlog,
    /// The shortest way of a message is longer than the longest, or that is above an hour.
    Network,
    /// Messages are not underway for any time, so there is none in which somebody else could be faster.
    MessageDelay,
    /// A client stops waiting before any answer can have come.
    Timeout,
    /// What happens in the scenario ends after its horizon.
    BeyondHorizon,
    /// The horizon is 0, or longer than 76 hours.
    Horizon,
    /// A server that gives appointments is given a rate below one a second.
    ReservationRate,
}

impl ScenarioError {
    /// The problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = ScenarioProblem> + '_ {
        self.problems.iter().copied()
    }

    /// `Ok` if none of the problems is there.
    pub(crate) fn check(problems: impl IntoIterator<Item = (ScenarioProblem, bool)>) -> Result<(), Self> {
        let problems: Vec<_> =
            problems.into_iter().filter(|&(_, is_there)| is_there).map(|(problem, _)| problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }
}

/// Whether it is a rate: with less than one in thirty years, or more than one in a nanosecond, times are beyond counting.
pub(crate) fn is_rate(rate: f64) -> bool {
    (1e-9..=1e9).contains(&rate)
}

impl fmt::Display for ScenarioProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clients => {
                "the number of clients, processes or requests is not within 1 and 67,108,864; \
                 figures for more are those of fewer with rate and backlog in proportion"
            }
            Self::Rate => {
                "the rate is not a number within 0.000000001 and 1,000,000,000 a second; say what the server can take"
            }
            Self::Backlog => {
                "the backlog is 0, so nobody could ever come in, or the queue above 67,108,864; \
                 use 1 or more, and no more than that"
            }
            Self::Network => "the shortest way of a message is longer than the longest, or that is above an hour; exchange them, or use less",
            Self::MessageDelay => "messages are not underway for any time; use a mean of a microsecond or more",
            Self::Timeout => "the time-out ends before any answer can come; use more than a round trip",
            Self::BeyondHorizon => {
                "not everyone is hit, or the server not up again, before the horizon; raise the horizon"
            }
            Self::Horizon => "the horizon is 0 or above 76 hours; use something in between",
            Self::ReservationRate => {
                "appointments want a rate of at least 1 a second; raise the rate, or use other hints"
            }
        })
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "; " })?;
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl core::error::Error for ScenarioError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_told_at_once() {
        let problems =
            [(ScenarioProblem::Rate, true), (ScenarioProblem::Network, false), (ScenarioProblem::Backlog, true)];
        let error = ScenarioError::check(problems).unwrap_err();
        assert_eq!(error.problems().collect::<Vec<_>>(), [ScenarioProblem::Rate, ScenarioProblem::Backlog]);
        let text = error.to_string();
        assert!(text.contains("say what the server can take; the backlog is 0"), "{text}");
    }
}
