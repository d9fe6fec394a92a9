//! A run whose server crashes again: see [`Crashes`](super::crash_loop::Crashes).

use core::time::Duration;

use stagger_core::Outcome;

use super::FirstAttempt;
use super::crash_loop::Next;
use super::server::Server;
use super::simulation::{Arrival, Client, ReconnectSimulation};

impl<S: Server> ReconnectSimulation<'_, S> {
    /// Prepares the next run of the engine if the server has crashed in the last one, and returns whether it has.
    /// Otherwise the connections that are open stay open, and the run is complete.
    pub(super) fn restart(&mut self) -> bool {
        let Some(crashes) = &mut self.crashes else {
            return false;
        };
        if core::mem::take(&mut crashes.is_ending) {
            // Reservations outlive the crash: they belong to what is in front of the server.
            self.acceptor.restart();
            if self.scenario.first_attempt == FirstAttempt::Immediate {
                // Every such call begins anew, and would repeat the draws of the last.
                self.policy = self.policy.reseeded(crashes.count);
            }
            return true;
        }
        for (id, between) in (0..).zip(crashes.clients.clone()) {
            if let Next::Open { heard, .. } = between.next {
                self.connected(id, &between.client, heard);
            }
        }
        false
    }

    /// Returns the first event of a client in a run of the engine: in the first run its first attempt, later the event
    /// that the crash put aside, or what follows from the loss of its connection.
    pub(super) fn first_event_of_run(&mut self, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        let crashes = self.crashes.as_ref()?;
        let between = crashes.clients[id as usize];
        let next = match (crashes.crashed_at, between.next) {
            (None, _) => self.first_attempt(id, client),
            (Some(crash), next) => {
                *client = between.client;
                match next {
                    Next::Nothing => None,
                    Next::Arrives(at) => Some(at),
                    // The handshake was not complete.
                    Next::Open { done, .. } if done > crash => self.fail_pending(id, client, crash),
                    Next::Open { heard, .. } => self.lose(id, client, heard, crash),
                }
            }
        };
        self.put_aside(id, client, next.map_or(Next::Nothing, Next::Arrives));
        next
    }

    /// Handles the arrival of an attempt at a server that may crash under it.
    #[inline(never)]
    pub(super) fn handle_with_crashes(&mut self, at: u64, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        let crashes = self.crashes.as_mut()?;
        let up_at = crashes.up_at;
        if crashes.is_ending || at >= up_at && crashes.crashes_under(at) {
            self.put_aside(id, client, Next::Arrives(at));
            return None;
        }
        let nth = self.attempts(id, client);
        let (next, event) = match self.arrive(at, id, client, nth, up_at) {
            Arrival::Accepted { done, heard } => (Next::Open { done, heard }, None),
            Arrival::Rejected(event) => (event.map_or(Next::Nothing, Next::Arrives), event),
        };
        self.put_aside(id, client, next);
        event
    }

    /// Fails an attempt whose handshake was pending at the crash.
    fn fail_pending(&mut self, id: u32, client: &mut Client<S::Token>, crash: u64) -> Option<u64> {
        let [answer, next] = self.environment.message_bits(id, self.attempts(id, client));
        let heard = crash + self.scenario.network.delay(answer);
        self.tally.in_flight.end(heard);
        let after = self.policy.on_failure(id, &mut client.state, Outcome::TRANSIENT, heard);
        self.send(id, client, heard, after, next, heard)
    }

    /// Loses a connection that the client heard of at `heard`.
    fn lose(&mut self, id: u32, client: &mut Client<S::Token>, heard: u64, crash: u64) -> Option<u64> {
        self.tally.in_flight.end(heard);
        let crashes = self.crashes.as_mut()?;
        let between = &mut crashes.clients[id as usize];
        let window = self.scenario.disconnect_window;
        let lost = heard.max(crash + self.environment.repeated_disconnect_time(id, crashes.count, window));
        if id < self.scenario.sample {
            self.tally.sample.connects.record(id, heard);
            self.tally.sample.losses.record(id, lost);
        }
        let (attempts, last_wait) = (client.state.attempt(), Duration::from_micros(between.last_wait));
        // The bits for the attempt after the one that succeeded: not used yet.
        let [_, way] = self.environment.message_bits(id, attempts + between.earlier_attempts);
        let after = match self.scenario.first_attempt {
            FirstAttempt::AfterDelay => {
                let lived = Duration::from_micros(lost - heard);
                self.policy.on_loss(id, &mut client.state, Outcome::TRANSIENT, [lived, last_wait], lost)
            }
            FirstAttempt::Immediate => Some(self.policy.on_call(id, &mut client.state, lost)),
        };
        if client.state.attempt() == 0 {
            between.earlier_attempts += attempts;
        }
        self.send(id, client, lost, after, way, lost)
    }

    fn put_aside(&mut self, id: u32, client: &Client<S::Token>, next: Next) {
        if let Some(crashes) = &mut self.crashes {
            let between = &mut crashes.clients[id as usize];
            (between.client, between.next) = (*client, next);
        }
    }
}
