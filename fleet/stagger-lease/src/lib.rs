//! The lease protocol by which the processes of a fleet share one retry budget or one admission, without a clock and
//! without I/O.
//!
//! A process holds a *lease*: tokens that it may spend alone for three seconds. Retries take them from its
//! [`Ledger`](ledger::Ledger), which is local. A report each second ([`Process`](process::Process)) says what was
//! spent, earned and is held of each target ([`Account`](account::Account)), and the store's reply is the next lease.
//! Without replies the process uses its local share of the budget. [`Bucket`](bucket::Bucket) is the store's side.
//!
//! A [`window`] is a budget that is a share of the calls of all processes, leased likewise.
//!
//! An [`admission`] is shared in the same reports: servers hold leases on shares of its rate.
//!
//! `stagger-redis` drives the process's side with tasks and connections, and has the store's side as a script, which a
//! test compares with the bucket. The feature `sim` drives both in virtual time, under the calls of `stagger-sim`.
//! Neither decides anything itself, so what is simulated is what runs.
//!
//! It is a crate of its own. In `stagger-core` it would belong to the interface that changes least, although it changes
//! with the store's script, and the model of the store allocates. In `stagger-redis`, a simulation would depend on the
//! drivers.
//!
//! Times are microseconds, amounts are millionths of a token. The interface follows the protocol, and changes with it:
//! only the crates of stagger are meant to use it.

pub mod account;
pub mod admission;
pub mod bucket;
pub mod claim;
mod holders;
pub mod ledger;
#[cfg(test)]
#[path = "../tests/model/network.rs"]
mod network;
pub mod process;
pub mod settings;
#[cfg(feature = "sim")]
pub mod sim;
pub mod window;
