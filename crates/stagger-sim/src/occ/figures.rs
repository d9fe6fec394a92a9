use core::time::Duration;

/// What came of a scenario with one policy and one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OccFigures {
    /// The clients there were.
    pub clients: u64,
    /// Writes that arrived at the server, successful or not: attempts.
    pub calls: u64,
    /// Clients whose write was made.
    pub written: u64,
    /// Clients that gave up, or would have gone on for more than 38 hours.
    pub gave_up: u64,
    /// When the last answer to a write was heard.
    pub time: Duration,
    /// W: the time of two messages, on average.
    pub window: Duration,
}

impl OccFigures {
    /// c: attempts for each client; 1 is the limit.
    #[must_use]
    pub fn calls_per_client(&self) -> f64 {
        self.calls as f64 / self.clients as f64
    }

    /// τ: the time as a multiple of W for each client; about 1 is the limit.
    #[must_use]
    pub fn time_per_client(&self) -> f64 {
        self.time.as_secs_f64() / (self.window.as_secs_f64() * self.clients as f64)
    }

    /// `(c − 1)(τ − 1)`: 1 is the best that clients can do without knowing of each other.
    #[must_use]
    pub fn to_limit(&self) -> f64 {
        (self.calls_per_client() - 1.0) * (self.time_per_client() - 1.0)
    }

    /// The calls as a multiple of those that the best could do with in the same time: `c / (τ / (τ − 1))`. `None` where it
    /// took about W for each client or less: then attempts have bought everything that there is.
    #[must_use]
    pub fn calls_to_limit(&self) -> Option<f64> {
        let time = self.time_per_client();
        (time > 1.05).then(|| self.calls_per_client() * (time - 1.0) / time)
    }
}
