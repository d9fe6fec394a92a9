//! The services' side of a run: queues, workers, and the calls that an attempt makes.

use core::time::Duration;

use super::edge::CallOrder;
use super::queue::EventKind;
use super::service::{Occupancy, Service, StaleWork, Times};
use super::state::{AttemptId, Reply, Simulation, nanos};
use crate::distributions::{exponential, gamma, unit_interval};

/// The services' side: queues, workers, and the calls that an attempt makes.
impl Simulation<'_> {
    /// Handles the arrival of an attempt at its service.
    pub(super) fn arrive(&mut self, now: u64, id: u32) {
        let service = self.service_of(id);
        let settings = &self.system.settings.services[service];
        let tier = &mut self.tiers[service];
        let is_refused = tier.rejects || tier.error > 0.0 && self.random.errors.chance(tier.error);
        if is_refused || tier.occupancy >= settings.backlog && settings.backlog < Service::MAX_BACKLOG {
            self.figures.services[service].refused += 1;
            self.reply(now, id, if is_refused { Reply::Refused } else { Reply::QueueFull });
            return;
        }
        tier.occupancy += 1;
        let peak = &mut self.figures.services[service].peak;
        *peak = tier.occupancy.max(*peak);
        let attempt = &mut self.attempts[id];
        attempt.slowness = tier.arrival_factor;
        // Only the calls of a service with guards of its own ask which instance makes them.
        let makes_calls = !self.system.graph.out[service].is_empty();
        attempt.instance = self.random.owners.below_if(makes_calls, u64::from(settings.instances)) as u32;
        if tier.has_free_worker() && tier.queue.is_empty() {
            self.begin_work(now, service, id);
        } else {
            tier.queue.push_back(id);
            self.take_up(now, service);
        }
    }

    /// Lets free workers take attempts from the queue.
    #[inline]
    pub(super) fn take_up(&mut self, now: u64, service: usize) {
        while self.tiers[service].has_free_worker() {
            let Some(id) = self.tiers[service].queue.pop_front() else { return };
            self.begin_work(now, service, id);
        }
    }

    /// Lets a free worker begin its work on an attempt, unless that is dropped.
    fn begin_work(&mut self, now: u64, service: usize, id: u32) {
        let settings = &self.system.settings.services[service];
        let (tier, attempt) = (&mut self.tiers[service], &self.attempts[id]);
        let is_dropped = match settings.stale {
            StaleWork::Done => false,
            StaleWork::DropExpired => attempt.deadline <= now,
            StaleWork::DropHopeless => {
                let [least, range] = self.links[attempt.edge as usize].one_way;
                attempt.deadline <= now || now + nanos(settings.time) + least + range / 2 > attempt.deadline
            }
        };
        if is_dropped {
            tier.occupancy -= 1;
            self.figures.services[service].dropped += 1;
            self.attempts.free(id);
            return;
        }
        tier.busy += 1;
        let mut work = nanos(settings.time);
        let random = &mut self.random.service_times;
        match &settings.times {
            Times::Exponential => work = (work as f64 * exponential(random.bits())).round() as u64,
            Times::Gamma(variation) if *variation > 0.0 => {
                let drawn = gamma(1.0 / (variation * variation), || random.bits());
                work = (work as f64 * drawn).round() as u64;
            }
            Times::Fixed | Times::Gamma(_) => {}
            Times::Measured(quantiles) => work = quantile(quantiles, unit_interval(random.bits())),
        }
        let factor = attempt.slowness * tier.start_factor;
        if (factor - 1.0).abs() > 0.0 {
            work = (work as f64 * factor).round() as u64;
        }
        let end = tier.speed.end(now, work);
        self.queue.push(tier.lane, end, EventKind::Served, id, 0);
    }

    /// Handles the end of an attempt's own work.
    pub(super) fn finish_service(&mut self, now: u64, id: u32) {
        let service = self.service_of(id);
        self.figures.services[service].completed += 1;
        match self.system.settings.services[service].occupancy {
            Occupancy::OwnWork => self.release_worker(service),
            Occupancy::UntilAnswered => self.attempts[id].holds_worker = true,
        }
        self.begin_step(id, service);
        self.make_calls(now, id);
        self.take_up(now, service);
    }

    /// Handles the result of a call that was made for an attempt, if that has not been answered yet.
    pub(super) fn hear_call(&mut self, now: u64, parent: AttemptId, is_served: bool) {
        let attempt = &mut self.attempts[parent.id];
        if attempt.serial != parent.serial || attempt.reply != Reply::None {
            return;
        }
        if !is_served {
            self.answer(now, parent.id, Reply::Error);
            return;
        }
        let service = self.service_of(parent.id);
        match self.order_of_step(parent.id, service) {
            CallOrder::Sequence => self.make_calls(now, parent.id),
            CallOrder::Parallel => {
                let attempt = &mut self.attempts[parent.id];
                attempt.calls_left -= 1;
                if attempt.calls_left == 0 {
                    attempt.step += 1;
                    self.begin_step(parent.id, service);
                    self.make_calls(now, parent.id);
                }
            }
        }
    }

    /// Makes the calls that an attempt has left, as far as they may be made now, and answers it after the last one.
    fn make_calls(&mut self, now: u64, id: u32) {
        let service = self.service_of(id);
        loop {
            let attempt = self.attempts[id];
            let Some(&edge) = self.system.graph.out[service].get(attempt.step as usize) else {
                self.answer(now, id, Reply::Success);
                return;
            };
            if attempt.calls_left == 0 {
                self.attempts[id].step += 1;
                self.begin_step(id, service);
                continue;
            }
            let drops = self.system.settings.services[service].stale != StaleWork::Done;
            if drops && attempt.deadline <= now {
                self.answer(now, id, Reply::Error);
                return;
            }
            let hands_on = drops && self.system.settings.edges[edge].hands_on_deadline;
            let parent = (AttemptId { id, serial: attempt.serial }, if hands_on { attempt.deadline } else { u64::MAX });
            let order = self.system.settings.edges[edge].order;
            let mut start = || self.start_call(now, edge, Some(parent), attempt.instance, attempt.born, attempt.marks);
            match order {
                CallOrder::Sequence => {
                    let result = start();
                    self.attempts[id].calls_left -= 1;
                    match result {
                        None => return,
                        Some(true) => {}
                        Some(false) => {
                            self.answer(now, id, Reply::Error);
                            return;
                        }
                    }
                }
                CallOrder::Parallel => {
                    let (mut served, mut failed) = (0, 0);
                    for _ in 0..attempt.calls_left {
                        match start() {
                            None => {}
                            Some(true) => served += 1,
                            Some(false) => failed += 1,
                        }
                    }
                    if failed > 0 {
                        self.answer(now, id, Reply::Error);
                        return;
                    }
                    self.attempts[id].calls_left -= served;
                    if self.attempts[id].calls_left > 0 {
                        return;
                    }
                }
            }
        }
    }

    /// Prepares the calls over the current edge of an attempt.
    fn begin_step(&mut self, id: u32, service: usize) {
        let attempt = &mut self.attempts[id];
        let edge = self.system.graph.out[service].get(attempt.step as usize);
        attempt.calls_left = edge.map_or(0, |&edge| self.system.settings.edges[edge].calls);
    }

    fn order_of_step(&self, id: u32, service: usize) -> CallOrder {
        let edge = self.system.graph.out[service].get(self.attempts[id].step as usize);
        edge.map_or(CallOrder::Sequence, |&edge| self.system.settings.edges[edge].order)
    }

    /// Answers an attempt after its own work.
    fn answer(&mut self, now: u64, id: u32, reply: Reply) {
        let service = self.service_of(id);
        let holds_worker = core::mem::take(&mut self.attempts[id].holds_worker);
        self.reply(now, id, reply);
        if holds_worker {
            self.release_worker(service);
            self.take_up(now, service);
        }
    }

    /// Sends an answer, unless nothing depends on it any more.
    fn reply(&mut self, now: u64, id: u32, reply: Reply) {
        let attempt = &mut self.attempts[id];
        attempt.reply = reply;
        let (edge, is_awaited) = (attempt.edge as usize, self.calls[attempt.call].serial == attempt.serial);
        if is_awaited || self.system.settings.edges[edge].fills_late() {
            let heard = now + self.one_way(edge);
            self.queue.push(self.links[edge].message_lane, heard, EventKind::Answer, id, 0);
        } else {
            self.attempts.free(id);
        }
    }

    fn release_worker(&mut self, service: usize) {
        let tier = &mut self.tiers[service];
        tier.busy -= 1;
        tier.occupancy -= 1;
    }

    fn service_of(&self, attempt: u32) -> usize {
        self.links[self.attempts[attempt].edge as usize].to
    }
}

/// Returns the time at a share of the way from the least of measured times to the longest, in nanoseconds.
fn quantile(quantiles: &[Duration], share: f64) -> u64 {
    let at = share * (quantiles.len().max(2) - 1) as f64;
    let low = at as usize;
    let [from, to] = [low, low + 1].map(|nth| quantiles.get(nth).copied().unwrap_or_default().as_nanos() as f64);
    (from + (to - from) * (at - low as f64)).round() as u64
}
