use core::time::Duration;

/// The results of a mass disconnect, as shares of the clients.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FluidFigures {
    /// Mean number of attempts per client.
    pub attempts_per_client: f64,
    /// Share of the clients connected at the end.
    pub connected: f64,
    /// Share of the clients that gave up.
    pub gave_up: f64,
    /// Arrivals per 100 ms, as shares of the clients.
    pub arrivals: Vec<f64>,
    /// Maximum number of pending handshakes at the server, as a share of the clients.
    pub peak_backlog: f64,
    /// Time at which half of all clients were connected; `None` if never.
    pub t50: Option<Duration>,
    /// Time at which 99 % of all clients were connected; `None` if never.
    pub t99: Option<Duration>,
    /// Time at which less than half a client was missing; `None` if never.
    pub t100: Option<Duration>,
    /// Mean recovery time: from the loss of a connection until the client is connected again, over connected clients.
    /// Assumes that connected clients lost their connections at the mean time of all clients, which underestimates it
    /// if only the clients that lost theirs first were connected.
    pub recovered_mean: Duration,
}

impl FluidFigures {
    /// Returns the maximum number of arrivals within 100 ms, as a share of the clients.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.arrivals.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the maximum number of arrivals within ten consecutive bins of 100 ms, as a share of the clients.
    #[must_use]
    pub fn peak_second(&self) -> f64 {
        let second = |end: usize| self.arrivals[end.saturating_sub(10)..end].iter().sum();
        (1..=self.arrivals.len()).map(second).fold(0.0, f64::max)
    }
}
