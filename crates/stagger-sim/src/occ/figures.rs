use core::time::Duration;

/// The results of an optimistic concurrency scenario with one policy and one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OccFigures {
    /// Number of clients.
    pub clients: u64,
    /// Number of writes that arrived at the server, successful or not: attempts.
    pub calls: u64,
    /// Number of clients whose write succeeded.
    pub written: u64,
    /// Number of clients that gave up, or would have continued for more than 38 hours.
    pub gave_up: u64,
    /// Time at which the last answer to a write was received.
    pub time: Duration,
    /// W: the mean time of two messages.
    pub window: Duration,
}

impl OccFigures {
    /// Returns c, the number of attempts per client; the minimum is 1.
    #[must_use]
    pub fn calls_per_client(&self) -> f64 {
        self.calls as f64 / self.clients as f64
    }

    /// Returns τ, the time per client as a multiple of W; the minimum is about 1.
    #[must_use]
    pub fn time_per_client(&self) -> f64 {
        self.time.as_secs_f64() / (self.window.as_secs_f64() * self.clients as f64)
    }

    /// Returns `(c − 1)(τ − 1)`; the minimum is 1 for clients that do not know of each other.
    #[must_use]
    pub fn to_limit(&self) -> f64 {
        (self.calls_per_client() - 1.0) * (self.time_per_client() - 1.0)
    }

    /// Returns the number of calls relative to the optimum for the same time: `c / (τ / (τ − 1))`. `None` if the time
    /// per client is about W or less, because more attempts could not reduce it.
    #[must_use]
    pub fn calls_to_limit(&self) -> Option<f64> {
        let time = self.time_per_client();
        (time > 1.05).then(|| self.calls_per_client() * (time - 1.0) / time)
    }
}
