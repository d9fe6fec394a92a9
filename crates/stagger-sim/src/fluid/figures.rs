use core::time::Duration;

/// What came of a scenario, in shares of its clients.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FluidFigures {
    /// Attempts for each client.
    pub attempts_per_client: f64,
    /// The share of the clients that is connected in the end.
    pub connected: f64,
    /// The share of the clients that gave up.
    pub gave_up: f64,
    /// Arrivals in each tenth of a second, as shares of the clients.
    pub arrivals: Vec<f64>,
    /// The most handshakes that were waiting or underway at the server, as a share of the clients.
    pub peak_backlog: f64,
    /// When half of all clients were connected; `None` if they never were.
    pub t50: Option<Duration>,
    /// When 99 % of all clients were connected; `None` if they never were.
    pub t99: Option<Duration>,
    /// When less than half a client was missing; `None` if that never was.
    pub t100: Option<Duration>,
    /// How long clients took from their own loss, of those that were connected: the mean. They are taken to have lost it as
    /// late as everyone on average, so where few come in it is too small by as much as those were the first.
    pub recovered_mean: Duration,
}

impl FluidFigures {
    /// The most arrivals in a tenth of a second, as a share of the clients.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.arrivals.iter().copied().fold(0.0, f64::max)
    }
}
