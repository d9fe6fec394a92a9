//! The choice of an engine, and the reference engine on a binary heap.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

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
///
/// A client is created when its first event may be the next one, so the heap is small if clients come one by one.
fn run_on_heap<W: Simulation>(simulation: &mut W, progress: &Progress) -> Result<(), Cancelled> {
    let mut clients = Vec::new();
    let mut events = BinaryHeap::<Reverse<Event>>::new();
    let mut run_progress = progress.start_run(u64::from(simulation.client_count()));
    let mut taken = 0_u64;
    let mut next_start = simulation.next_start(0);
    loop {
        while let Some(start) = next_start {
            if events.peek().is_some_and(|Reverse(event)| event.at() < start) {
                break;
            }
            let (id, mut client) = (clients.len() as u32, simulation.new_client());
            events.extend(simulation.first_event(id, &mut client).map(|at| Reverse(Event::new(at, id))));
            clients.push(client);
            next_start = simulation.next_start(id + 1);
        }
        let Some(mut top) = events.peek_mut() else { break };
        let (at, id) = (top.0.at(), top.0.client());
        match simulation.handle_event(at, id, &mut clients[id as usize]) {
            Some(next) => *top = Reverse(Event::new(next, id)),
            None => _ = PeekMut::pop(top),
        }
        taken += 1;
        if taken % REPORT_EVERY == 0 {
            run_progress.report(simulation.finished_clients())?;
        }
    }
    run_progress.report(simulation.finished_clients())
}
