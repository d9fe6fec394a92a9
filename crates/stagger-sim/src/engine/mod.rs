//! What brings events to a world in the order of their times.
//!
//! Each client has at most one event that is still to come, so an event is a time and a client, and what happens then
//! is the client's own affair. There are two engines, and a world cannot tell them apart:
//!
//! - [`heap`] takes one event after the other from a binary heap. It is the reference.
//! - [`calendar`] keeps events in bins of time that are no wider than the shortest way from one event of a client to its
//!   next, so a bin is complete when its turn comes. It is put into order as a whole, and what is known of its clients lies
//!   beside their events: memory is read and written in a row, where the heap waits for one place after the other.
//!
//! Events of the same microsecond come in the order of the clients' numbers, never in the order in which they were
//! scheduled: that depends on how long somebody slept, and would let long sleepers in first.

mod calendar;
mod chunks;
mod event;
mod heap;
mod simulation;
mod sort;

pub(crate) use calendar::run as run_calendar;
pub(crate) use event::{CLIENT_BITS, MAX_TIME};
pub(crate) use heap::run as run_heap;
pub(crate) use simulation::{Cancelled, Simulation};

/// Which engine brings the events. Both give the same figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// Bins of time: for everything.
    #[default]
    Calendar,
    /// A binary heap: the reference that the other one is held against. Twenty times slower with ten million clients.
    Heap,
}

impl Engine {
    pub(crate) fn run<W: Simulation>(self, simulation: &mut W, progress: &crate::Progress) -> Result<(), Cancelled> {
        match self {
            Self::Calendar => run_calendar(simulation, progress),
            Self::Heap => run_heap(simulation, progress),
        }
    }
}
