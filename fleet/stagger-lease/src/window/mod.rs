//! The protocol by which processes share a budget that is a share of their calls:
//! [`Window`](stagger_core::budget::Window), for a fleet.
//!
//! A process counts its calls and retries in slots of a twentieth of the window, and each report has the counts of all
//! slots, youngest first. The store replaces what the process had reported before, so that a report that was lost, or a
//! store that lost its data, is repaired by the next one. The sum over all processes says how many retries the calls
//! allow; what is not used yet is leased.
//!
//! The bound, with p the time from one report to the next and a margin for its jitter and way, in any interval that
//! ends with a retry, at t:
//!
//! ```text
//! retries(t − ttl, t] ≤ ratio · calls(t − ttl − p, t] + min_per_second · ttl
//! ```
//!
//! Wherever a slot makes a time inexact, retries count longer and calls shorter: retries for 21 slots from the end of
//! theirs, calls for 19.
//!
//! What faults add to it is at most what a process has in hand, or what its own window allows, whichever is more, for
//! each process that is paused or cut off, whose reports or replies are lost in a row, or whose report the store
//! handles after the process has turned to its own window. A store that is away or loses its data, and a jump of its
//! clock by more than a lease, add nothing. `tests/model/pool.rs` tries them in every order.
//!
//! Without the store a process has its own window, `ratio · own calls + min_per_second · ttl / processes`, in which all
//! its retries of the past count, those that it had leased as well.

pub mod account;
pub mod claim;
pub mod pool;
pub mod settings;
