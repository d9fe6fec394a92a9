//! Mass disconnect: everyone loses the connection at once, and a server lets in so many a second.
//!
//! # The model
//!
//! - Client *i* loses its connection at a time that is uniform on `[0, hits_within]`, and knows it at once. It then does
//!   what a program with [`stagger_core::machine::ReconnectMachine`] does, or makes its first attempt at once ([`First`]).
//! - A message is underway for a time that is uniform between two lengths, each message anew.
//! - The server has a single acceptor that takes `1 / rate` for each handshake, and a backlog. An attempt that arrives at
//!   *t* is accepted if fewer than `backlog` handshakes are waiting then, and the client is connected when the answer has
//!   come. Otherwise it is refused at once, and the client hears of it after the way back, with a hint if the server gives
//!   any ([`Hints`]). Until the server is up again ([`ScenarioBuilder::down_for`]) it refuses everyone, without a hint.
//! - Clients do not time out. Who has no attempt left gives up; what would arrive after the horizon does not.
//!
//! # Limits
//!
//! No policy needs less than one attempt for each client, `clients / rate` for all of them, and half of that on average:
//! [`Figures::efficiency`] says how close a policy comes.

mod figures;
mod herd;
mod record;
mod scenario;
mod server;
mod tally;

pub use figures::{Efficiency, Fairness, Figures};
pub use record::{Attempt, Course, Ended, Record};
pub use scenario::{First, Hints, Scenario, ScenarioBuilder};
pub use server::Acceptor;
