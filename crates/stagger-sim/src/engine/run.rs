//! The choice of an engine, and the reference engine on a binary heap.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::calendar;
use super::event::{Event, Simulation};
use super::progress::{Cancelled, Progress};

/// The event queue of a simulation. Both engines give the same figures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Engine {
    /// A calendar queue, for simulations with a minimum time between two events of a client, in microseconds.
    Calendar {
        min_event_interval: u64,
    },
    Heap,
}

impl Engine {
    pub(crate) fn run<W: Simulation>(self, simulation: &mut W, progress: &Progress) -> Result<(), Cancelled> {
        match self {
            Self::Calendar { min_event_interval } => calendar::run(simulation, min_event_interval, progress),
            Self::Heap => run_on_heap(simulation, progress),
        }
    }
}

/// Number of events between two progress reports.
const REPORT_EVERY: u64 = 1 << 14;

/// Runs a simulation with a binary heap of events: the reference engine.
fn run_on_heap<W: Simulation>(simulation: &mut W, progress: &Progress) -> Result<(), Cancelled> {
    let mut clients = vec![simulation.new_client(); simulation.client_count() as usize];
    let mut events = BinaryHeap::with_capacity(clients.len());
    for (id, client) in (0..).zip(&mut clients) {
        events.extend(simulation.first_event(id, client).map(|at| Reverse(Event::new(at, id))));
    }
    let mut run_progress = progress.start_run(clients.len() as u64);
    let mut taken = 0_u64;
    while let Some(Reverse(event)) = events.pop() {
        let id = event.client();
        let next = simulation.handle_event(event.at(), id, &mut clients[id as usize]);
        events.extend(next.map(|at| Reverse(Event::new(at, id))));
        taken += 1;
        if taken % REPORT_EVERY == 0 {
            run_progress.report(simulation.finished_clients())?;
        }
    }
    run_progress.report(simulation.finished_clients())
}
