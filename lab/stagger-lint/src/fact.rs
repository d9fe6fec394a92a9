use crate::DeploymentContext;

/// A field of [`DeploymentContext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Purpose,
    Clients,
    Capacity,
    Requests,
    Deadline,
    Lease,
    Invocation,
    AttemptTimeout,
    RetryAfter,
    Backlog,
    Tick,
    Layers,
    Idempotency,
    Budget,
}

impl Fact {
    pub(super) const ALL: [Self; 14] = [
        Self::Purpose,
        Self::Clients,
        Self::Capacity,
        Self::Requests,
        Self::Deadline,
        Self::Lease,
        Self::Invocation,
        Self::AttemptTimeout,
        Self::RetryAfter,
        Self::Backlog,
        Self::Tick,
        Self::Layers,
        Self::Idempotency,
        Self::Budget,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Purpose => "for",
            Self::Clients => "clients",
            Self::Capacity => "capacity",
            Self::Requests => "rps",
            Self::Deadline => "within",
            Self::Lease => "lease",
            Self::Invocation => "invocation",
            Self::AttemptTimeout => "attempt-timeout",
            Self::RetryAfter => "retry-after",
            Self::Backlog => "backlog",
            Self::Tick => "tick",
            Self::Layers => "layers",
            Self::Idempotency => "idempotent",
            Self::Budget => "budget",
        }
    }

    /// Adds this fact to what is known.
    pub(super) fn add(self, given: &DeploymentContext, known: &mut DeploymentContext) {
        match self {
            Self::Purpose => known.purpose = given.purpose,
            Self::Clients => known.clients = given.clients,
            Self::Capacity => known.capacity = given.capacity,
            Self::Requests => known.requests = given.requests,
            // The system may end a call before its caller does.
            Self::Deadline => known.deadline = given.deadline.into_iter().chain(known.deadline).min(),
            Self::Lease => known.lease = given.lease,
            Self::Invocation => known.invocation = given.invocation,
            Self::AttemptTimeout => known.attempt_timeout = given.attempt_timeout,
            Self::RetryAfter => known.retry_after = given.retry_after,
            Self::Backlog => known.backlog = given.backlog,
            Self::Tick => known.tick = given.tick,
            Self::Layers => known.layers = given.layers,
            Self::Idempotency => known.idempotency = given.idempotency,
            Self::Budget => known.budget = given.budget,
        }
    }

    pub(super) fn is_in(self, given: &DeploymentContext) -> bool {
        let mut alone = DeploymentContext::default();
        self.add(given, &mut alone);
        alone != DeploymentContext::default()
    }
}

impl DeploymentContext {
    /// Returns the names of the fields that are set, as the command line has them, such as `rps`.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        Fact::ALL.into_iter().filter(|fact| fact.is_in(self)).map(Fact::name)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use stagger_core::text::Rate;

    use crate::Purpose;

    #[test]
    fn only_what_is_set_is_given() {
        let context = DeploymentContext::default().purpose(Purpose::Far).requests(Rate::per_second(2.0).unwrap());
        assert_eq!(context.given().collect::<Vec<_>>(), ["for", "rps"]);
        assert_eq!(DeploymentContext::default().given().count(), 0);
    }

    #[test]
    fn of_two_deadlines_the_shorter_one_counts() {
        let [short, long] = [1, 2].map(|s| DeploymentContext::default().deadline(Duration::from_secs(s)));
        for (given, before) in [(short, long), (long, short), (short, DeploymentContext::default())] {
            let mut known = before;
            Fact::Deadline.add(&given, &mut known);
            assert_eq!(known, short);
        }
    }
}
