//! A server that limits its clients.

use super::Nanos;
use super::random::Random;

/// One second.
pub const SECOND: Nanos = 1_000_000_000;
/// The way of a request to the server, and that of its answer.
pub const ONE_WAY: Nanos = 1_000_000;
/// How long a request takes whose answer never comes: the client's timeout.
const TIMEOUT: Nanos = SECOND;

/// How a server limits its clients.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// It does not.
    None,
    /// A bucket of tokens.
    Bucket {
        /// The tokens per second.
        rate: f64,
        /// How many tokens it holds.
        burst: f64,
    },
    /// A quota per fixed window.
    Window {
        /// The length of a window.
        length: Nanos,
        /// The quota, per second of the window.
        rate: f64,
    },
    /// So many requests at a time.
    Concurrent {
        /// The most requests.
        most: usize,
    },
}

/// How the capacity changes with time.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// It does not.
    Constant,
    /// It is multiplied by the factor from this time on.
    Step(Nanos, f64),
    /// It alternates: so long as it is, so long multiplied by the factor.
    Pulses(Nanos, f64),
    /// A sine of this period, between the capacity and none of it less the share.
    Diurnal(Nanos, f64),
}

/// A server.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Its limit.
    pub limit: Limit,
    /// How the limit changes.
    pub shape: Shape,
    /// How long it works on a request, in the mean.
    pub service: Nanos,
    /// The share of requests that fail with a transient error.
    pub errors: f64,
    /// The share of requests whose answer never comes.
    pub timeouts: f64,
    /// Whether a refusal says how long to stay away: until the next window, or a second.
    pub hints: bool,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was served.
    Success,
    /// It was refused, with a hint or without.
    Refused(Option<Nanos>),
    /// It failed for another reason.
    Error,
}

/// A server at work.
#[derive(Debug)]
pub struct Working {
    server: Server,
    tokens: f64,
    filled: Nanos,
    window: Nanos,
    pub(super) in_service: usize,
}

impl Server {
    /// Returns the factor of the capacity at this time.
    fn factor(&self, at: Nanos) -> f64 {
        match self.shape {
            Shape::Constant => 1.0,
            Shape::Step(from, factor) => {
                if at < from {
                    1.0
                } else {
                    factor
                }
            }
            Shape::Pulses(length, factor) => {
                if (at / length) & 1 == 0 {
                    1.0
                } else {
                    factor
                }
            }
            Shape::Diurnal(period, depth) => {
                let phase = (at % period) as f64 / period as f64 * core::f64::consts::TAU;
                1.0 - depth * (0.5 - 0.5 * phase.cos())
            }
        }
    }

    /// Returns how many requests per second it serves at this time, if it has a limit.
    #[must_use]
    pub fn capacity(&self, at: Nanos) -> f64 {
        let base = match self.limit {
            Limit::None => f64::INFINITY,
            Limit::Bucket { rate, .. } | Limit::Window { rate, .. } => rate,
            Limit::Concurrent { most } => most as f64 * SECOND as f64 / self.service as f64,
        };
        base * self.factor(at)
    }
}

impl Working {
    pub(super) const fn new(server: Server) -> Self {
        let tokens = match server.limit {
            Limit::Bucket { burst, .. } => burst,
            _ => 0.0,
        };
        Self { server, tokens, filled: 0, window: u64::MAX, in_service: 0 }
    }

    /// Takes a request that arrives at this time. Returns when it leaves again, and the answer.
    pub(super) fn take(&mut self, at: Nanos, random: &mut Random) -> (Nanos, Answer) {
        if !self.admits(at) {
            let hint = match self.server.limit {
                Limit::Window { length, .. } => length - at % length,
                _ => SECOND,
            };
            return (at, Answer::Refused(self.server.hints.then_some(hint)));
        }
        self.in_service += 1;
        let drawn = random.unit();
        if drawn < self.server.timeouts {
            return (at + TIMEOUT, Answer::Error);
        }
        let service = (self.server.service as f64 * (0.8 + 0.4 * random.unit())) as Nanos;
        let is_error = drawn < self.server.timeouts + self.server.errors;
        (at + service, if is_error { Answer::Error } else { Answer::Success })
    }

    fn admits(&mut self, at: Nanos) -> bool {
        let factor = self.server.factor(at);
        match self.server.limit {
            Limit::None => true,
            Limit::Bucket { rate, burst } => {
                let passed = (at - self.filled) as f64 / SECOND as f64;
                self.tokens = (self.tokens + passed * rate * factor).min(burst);
                self.filled = at;
                self.pays()
            }
            Limit::Window { length, rate } => {
                if self.window != at / length {
                    self.window = at / length;
                    self.tokens = rate * factor * length as f64 / SECOND as f64;
                }
                self.pays()
            }
            Limit::Concurrent { most } => (self.in_service as f64) < most as f64 * factor,
        }
    }

    fn pays(&mut self) -> bool {
        let pays = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(pays));
        pays
    }
}
