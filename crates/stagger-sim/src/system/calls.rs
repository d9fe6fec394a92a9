//! The callers' side of a run: calls, which send attempts as policy and guards decide.

use core::time::Duration;
use std::sync::Arc;

use stagger_core::guard::{Guard, Permits};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Guards, Instant, NestedRetries, Outcome, Seed, StopReason};

use super::edge::{Edge, NestedCalls};
use super::queue::EventKind;
use super::state::{Attempt, AttemptId, Call, Link, Marks, NO_KEY, Reply, Simulation, instant};

/// The callers' side: calls, which send attempts as policy and guards decide.
impl Simulation<'_> {
    /// Starts a call for `parent`. Returns its result if it ends at once: by a cache, or rejected by a guard.
    pub(super) fn start_call(
        &mut self,
        now: u64,
        edge: usize,
        parent: Option<(AttemptId, u64)>,
        owner: u32,
        born: u64,
        marks: Marks,
    ) -> Option<bool> {
        let key = self.draw_key(edge);
        if key != NO_KEY && self.links[edge].has_cached(key) {
            self.figures.edges[edge].cached += 1;
            return Some(true);
        }
        let (parent, deadline) = match parent {
            Some((attempt, deadline)) => (Some(attempt), deadline),
            None => (None, u64::MAX),
        };
        let call = Call {
            retry: RetryState::new(),
            permits: Permits::NONE,
            seed: Seed::new(self.random.calls.bits()),
            parent,
            born,
            deadline,
            edge: edge as u32,
            owner,
            serial: 0,
            key,
            marks,
        };
        let Some(id) = self.calls.insert(call) else { return Some(false) };
        let call = &mut self.calls[id];
        let policy = &self.system.settings.edges[edge].policy;
        let spread = RetryMachine::new(policy, &mut call.retry, call.seed).spread(|| instant(now));
        if spread.is_zero() {
            return if self.send(now, id) { None } else { Some(false) };
        }
        self.send_after(now, id, spread);
        None
    }

    fn draw_key(&mut self, edge: usize) -> u32 {
        match self.system.settings.edges[edge].cache {
            Some(cache) if self.random.keys.chance(cache.hot) => self.random.keys.below(u64::from(cache.keys)) as u32,
            _ => NO_KEY,
        }
    }

    fn send_after(&mut self, now: u64, id: u32, wait: Duration) {
        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.queue.push(usize::MAX, now.saturating_add(wait), EventKind::Send, id, 0);
    }

    /// Sends the attempt that a call has waited for.
    pub(super) fn send_later(&mut self, now: u64, id: u32) {
        if !self.send(now, id) {
            self.end_call(now, id, false);
        }
    }

    /// Sends the next attempt of a call, or lets it wait for its turn. Returns false if it is not sent: the call's
    /// place is free then.
    fn send(&mut self, now: u64, id: u32) -> bool {
        let call = &mut self.calls[id];
        let edge = call.edge as usize;
        let (settings, link) = (&self.system.settings.edges[edge], &self.links[edge]);
        let nested = call.nested(settings);
        let mut permits = Permits::take(&mut call.permits);
        let mut retry =
            RetryMachine::new(&settings.policy, &mut call.retry, call.seed).deadline(deadline(call.deadline));
        let begun = if link.guards.is_empty() {
            retry.begin(Permits::NONE, || instant(now), &Guards::none().nested(nested))
        } else {
            let guards = link.guards(call.owner, nested);
            match retry.turn(&mut permits, || instant(now), &guards) {
                Ok(Duration::ZERO) => Ok(permits),
                Ok(wait) => {
                    call.permits = permits;
                    self.send_after(now, id, wait);
                    return true;
                }
                Err(stop) => Err(stop),
            }
        };
        let Ok(permits) = begun else {
            self.calls.free(id);
            return false;
        };
        let is_retry = retry.attempt() > 1;
        call.permits = permits;
        self.last_serial = self.last_serial.checked_add(1).unwrap_or(1);
        call.serial = self.last_serial;
        let own = now.saturating_add(link.timeout);
        let mut attempt = Attempt {
            deadline: own.min(call.deadline),
            born: call.born,
            slowness: 1.0,
            call: id,
            serial: call.serial,
            edge: call.edge,
            instance: 0,
            key: call.key,
            step: 0,
            calls_left: 0,
            marks: call.marks,
            reply: Reply::None,
            holds_worker: false,
        };
        attempt.marks.is_retry |= is_retry;
        let figures = &mut self.figures.edges[edge];
        figures.judged_attempts += u64::from(attempt.marks.is_judged);
        figures.fault_attempts += u64::from(attempt.marks.is_in_fault);
        if now < self.horizon {
            figures.attempts.add(now / 1_000);
        }
        // An attempt that finds no place is lost on the way.
        if let Some(attempt_id) = self.attempts.insert(attempt) {
            let arrives = now + self.one_way(edge);
            self.queue.push(self.links[edge].message_lane, arrives, EventKind::Arrival, attempt_id, 0);
        }
        self.queue.push(self.links[edge].timeout_lane, own, EventKind::Timeout, id, attempt.serial);
        true
    }

    /// Handles the end of the time limit of an attempt.
    pub(super) fn time_out(&mut self, now: u64, id: u32, serial: u32) {
        if self.calls[id].serial == serial {
            self.figures.edges[self.calls[id].edge as usize].timed_out += 1;
            self.settle(now, id, Outcome::TRANSIENT);
        }
    }

    /// Handles an answer that reaches the caller.
    pub(super) fn hear_answer(&mut self, now: u64, id: u32) {
        let attempt = self.attempts[id];
        self.attempts.free(id);
        let edge = attempt.edge as usize;
        let is_in_time = self.calls[attempt.call].serial == attempt.serial;
        let is_success = attempt.reply == Reply::Success;
        let link = &mut self.links[edge];
        if is_in_time && is_success {
            self.figures.services[link.to].useful += 1;
        }
        if is_success && attempt.key != NO_KEY && (is_in_time || self.system.settings.edges[edge].fills_late()) {
            if let Some(cache) = &mut link.cache {
                cache.insert(attempt.key);
            }
        }
        if is_in_time {
            let refusals = self.system.settings.edges[edge].refusals;
            self.settle(now, attempt.call, attempt.reply.outcome(refusals));
        }
    }

    /// Handles the outcome of a call's attempt.
    fn settle(&mut self, now: u64, id: u32, outcome: Outcome) {
        let call = &mut self.calls[id];
        call.serial = 0;
        let edge = call.edge as usize;
        let settings = &self.system.settings.edges[edge];
        let link = &self.links[edge];
        let nested = call.nested(settings);
        let permits = Permits::take(&mut call.permits);
        let mut retry =
            RetryMachine::new(&settings.policy, &mut call.retry, call.seed).deadline(deadline(call.deadline));
        let decision = if link.guards.is_empty() {
            retry.decide_unguarded(outcome, nested, || instant(now))
        } else {
            retry.decide(outcome, permits, || instant(now), &link.guards(call.owner, nested))
        };
        if !link.guards.is_empty() {
            self.granted += u64::from(matches!(decision, Decision::Retry { .. }));
            self.refused += u64::from(matches!(decision, Decision::Stop(StopReason::Guard(_))));
        }
        let is_served = match decision {
            Decision::Retry { after, permit, .. } => {
                call.permits = permit;
                if !after.is_zero() {
                    self.send_after(now, id, after);
                    return;
                }
                self.send_later(now, id);
                return;
            }
            decision => decision == Decision::Done,
        };
        self.calls.free(id);
        self.end_call(now, id, is_served);
    }

    /// Handles the end of a call, whose place is free.
    fn end_call(&mut self, now: u64, id: u32, is_served: bool) {
        let call = &self.calls[id];
        let (born, marks) = (call.born, call.marks);
        match call.parent {
            None => self.end_request(now, born, marks, is_served),
            Some(parent) => self.hear_call(now, parent, is_served),
        }
    }
}

impl Edge {
    pub(super) fn fills_late(&self) -> bool {
        self.cache.is_some_and(|cache| cache.fills_late)
    }
}

impl Call {
    /// Returns whether the call retries.
    #[inline]
    fn nested(&self, settings: &Edge) -> NestedRetries {
        let leaves_retries = match settings.nested {
            NestedCalls::Multiply => false,
            NestedCalls::StandDown => self.parent.is_some(),
            NestedCalls::FirstOnly => self.parent.is_some() && self.marks.is_retry,
        };
        if leaves_retries { NestedRetries::Disable } else { NestedRetries::Allow }
    }
}

impl Link {
    #[inline]
    fn guards(&self, owner: u32, nested: NestedRetries) -> Guards<'_, Arc<dyn Guard>> {
        match self.guards.get(owner as usize) {
            Some(process) => process.guards().nested(nested),
            None => Guards::of(&[]).nested(nested),
        }
    }

    #[inline]
    fn has_cached(&self, key: u32) -> bool {
        match &self.cache {
            Some(cache) => cache.contains(key),
            None => false,
        }
    }
}

/// Returns the deadline of a call, which `u64::MAX` stands for the lack of.
fn deadline(at: u64) -> Option<Instant> {
    if at == u64::MAX { None } else { Some(instant(at)) }
}
