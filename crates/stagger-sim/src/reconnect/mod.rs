//! Mass disconnect: all clients lose their connections at once, and the server accepts a limited rate.
//!
//! # The model
//!
//! - Client *i* loses its connection at a time that is uniform on `[0, disconnect_window]`, and notices it at once. It
//!   then behaves like a program that uses [`stagger_core::machine::ReconnectMachine`], or makes its first attempt
//!   immediately ([`FirstAttempt`]).
//! - The one-way delay of each message is uniform between two bounds.
//! - The server has a single acceptor that takes `1 / rate` for each handshake, and a backlog. An attempt that arrives
//!   at *t* is accepted if fewer than `backlog` handshakes are pending then, and the client is connected when it
//!   receives the answer. Otherwise the attempt is rejected at once, and the client learns of it after the one-way
//!   delay, with a hint if the server sends any ([`RetryAfter`]). The delay of a hint or reservation starts when the
//!   client learns of it, so that the attempt arrives a round trip later than the time that the server reserved. Until
//!   the server is up again ([`ReconnectScenarioBuilder::down_for`]) it rejects all attempts, without a hint. A
//!   rejection with a hint is [throttled](stagger_core::FailureKind::Throttled), any other is a transient failure.
//! - Clients have no timeouts. A client without further attempts gives up; attempts that would arrive after the horizon
//!   are not made.
//!
//! - A server in a crash loop ([`ReconnectScenarioBuilder::crash_loop`]) loses all connections and pending handshakes
//!   when too many attempts arrive within a second while it is up, and is down again. Every client that was connected
//!   notices it within another `disconnect_window`, and continues its backoff unless the connection had been stable; a
//!   client whose handshake was pending learns that the attempt failed. Recovery times run from the first loss to the
//!   last connection.
//!
//! - Clients may have guards ([`ReconnectScenario::run_with_guards`]), each its own or those of its process. Then a
//!   client that waits for its turn, or that a guard rejects, behaves like the library's machine.
//!
//! # Limits
//!
//! No policy needs less than one attempt per client, `clients / rate` to connect all clients, and half of that on
//! average: [`ReconnectFigures::efficiency`] compares a policy with these limits.

mod crash_loop;
mod figures;
mod guarded;
mod recorder;
mod run;
mod scenario;
mod server;
mod simulation;
mod tally;

pub use figures::{Efficiency, Fairness, ReconnectFigures};
pub use recorder::{AttemptTrace, ClientOutcome, ClientTrace, ReconnectRecorder, ServerTrace};
pub use scenario::{FirstAttempt, ReconnectScenario, ReconnectScenarioBuilder, RetryAfter};
pub use server::Acceptor;
