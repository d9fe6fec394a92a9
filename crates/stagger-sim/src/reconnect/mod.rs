//! Mass disconnect: everyone loses the connection at once, and a server lets in so many a second.
//!
//! # The model
//!
//! - Client *i* loses its connection at a time that is uniform on `[0, disconnect_window]`, and knows it at once. It then does
//!   what a program with [`stagger_core::Reconnect`] does, or makes its first attempt at once ([`FirstAttempt`]).
//! - A message is underway for a time that is uniform between two lengths, each message anew.
//! - The server has a single acceptor that takes `1 / rate` for each handshake, and a backlog. An attempt that arrives at
//!   *t* is accepted if fewer than `backlog` handshakes are waiting then, and the client is connected when the answer has
//!   come. Otherwise it is refused at once, and the client hears of it after the way back, with a hint if the server gives
//!   any ([`RetryAfter`]). Until the server is up again ([`ReconnectScenarioBuilder::down_for`]) it refuses everyone, without a hint.
//! - Clients do not time out. Who has no attempt left gives up; what would arrive after the horizon does not.
//!
//! # Limits
//!
//! No policy needs less than one attempt for each client, `clients / rate` for all of them, and half of that on average:
//! [`ReconnectFigures::efficiency`] says how close a policy comes.

mod figures;
mod recorder;
mod scenario;
mod server;
mod simulation;
mod tally;

pub use figures::{Efficiency, Fairness, ReconnectFigures};
pub use recorder::{AttemptTrace, ClientOutcome, ClientTrace, ReconnectRecorder};
pub use scenario::{FirstAttempt, ReconnectScenario, ReconnectScenarioBuilder, RetryAfter};
pub use server::Acceptor;
