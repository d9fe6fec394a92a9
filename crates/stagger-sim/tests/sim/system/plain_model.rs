//! A second, plain implementation of the model, for chains without randomness: one heap of events, and calls and
//! attempts that are never reused. Its figures are those of the simulator, exactly, for chains drawn at random.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};

use proptest::prelude::*;
use stagger_core::Seed;
use stagger_sim::system::{Arrivals, CallOrder, Edge, NestedCalls, Service, StaleWork, System, Trigger};

use super::one_server::at_once;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// A tier of a chain and the edge into it. Times are in nanoseconds.
#[derive(Clone, Debug)]
struct Layer {
    workers: u32,
    service: u64,
    backlog: u32,
    stale: StaleWork,
    waits: bool,
    attempts: u32,
    timeout: u64,
    one_way: u64,
    calls: u32,
    order: CallOrder,
    nested: NestedCalls,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Stall,
    Half,
    Reject,
    Workers,
    SlowStart,
    SlowArrival,
}

#[derive(Clone, Debug)]
struct Chain {
    /// Time between two requests.
    gap: u64,
    layers: Vec<Layer>,
    kind: Kind,
    tier: usize,
    fault: [u64; 2],
    horizon: u64,
}

/// What is compared: requests and served requests from the fault to the horizon, and for each layer attempts, refusals,
/// dropped attempts and time limits that ended.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    requests: u64,
    served: u64,
    layers: Vec<[u64; 4]>,
}

/// In the order in which events of the same instant are handled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Answer(usize),
    Served(usize),
    Timeout(usize),
    Wake,
    Arrival(usize),
    Request,
}

struct Call {
    layer: usize,
    parent: Option<usize>,
    made: u32,
    /// The attempt in flight.
    current: Option<usize>,
    deadline: u64,
    is_retry: bool,
    is_judged: bool,
}

struct Attempt {
    call: usize,
    layer: usize,
    deadline: u64,
    is_retry: bool,
    is_slow: bool,
    is_answered: bool,
    is_success: bool,
    holds: bool,
    calls_left: u32,
}

struct Model<'a> {
    chain: &'a Chain,
    events: BinaryHeap<Reverse<(u64, u8, u64, Event)>>,
    scheduled: u64,
    calls: Vec<Call>,
    attempts: Vec<Attempt>,
    queues: Vec<VecDeque<usize>>,
    busy: Vec<u32>,
    occupancy: Vec<u32>,
    counts: Counts,
}

impl<'a> Model<'a> {
    fn run(chain: &'a Chain) -> Counts {
        let tiers = chain.layers.len();
        let mut model = Self {
            chain,
            events: BinaryHeap::new(),
            scheduled: 0,
            calls: Vec::new(),
            attempts: Vec::new(),
            queues: vec![VecDeque::new(); tiers],
            busy: vec![0; tiers],
            occupancy: vec![0; tiers],
            counts: Counts { layers: vec![[0; 4]; tiers], ..Counts::default() },
        };
        let entry = &chain.layers[0];
        let end = chain.horizon + u64::from(entry.attempts) * entry.timeout + MS;
        model.schedule(chain.gap, Event::Request);
        model.schedule(chain.fault[1], Event::Wake);
        while let Some(Reverse((now, _, _, event))) = model.events.pop() {
            if now >= end {
                break;
            }
            match event {
                Event::Request => model.request(now),
                Event::Arrival(attempt) => model.arrive(now, attempt),
                Event::Served(attempt) => model.finish(now, attempt),
                Event::Answer(attempt) => model.hear(now, attempt),
                Event::Timeout(attempt) => model.time_out(now, attempt),
                Event::Wake => model.take_up(now, chain.tier),
            }
        }
        model.counts
    }

    fn schedule(&mut self, at: u64, event: Event) {
        let rank = match event {
            Event::Answer(_) => 0,
            Event::Served(_) => 1,
            Event::Timeout(_) => 2,
            Event::Wake => 3,
            Event::Arrival(_) => 4,
            Event::Request => 5,
        };
        self.scheduled += 1;
        self.events.push(Reverse((at, rank, self.scheduled, event)));
    }

    fn is_faulty(&self, now: u64, tier: usize) -> bool {
        tier == self.chain.tier && (self.chain.fault[0]..self.chain.fault[1]).contains(&now)
    }

    fn request(&mut self, now: u64) {
        self.schedule(now + self.chain.gap, Event::Request);
        let is_judged = (self.chain.fault[0]..self.chain.horizon).contains(&now);
        self.counts.requests += u64::from(is_judged);
        self.call(now, 0, None, u64::MAX, false, is_judged);
    }

    fn call(&mut self, now: u64, layer: usize, parent: Option<usize>, deadline: u64, is_retry: bool, is_judged: bool) {
        self.calls.push(Call { layer, parent, made: 0, current: None, deadline, is_retry, is_judged });
        self.send(now, self.calls.len() - 1);
    }

    fn send(&mut self, now: u64, id: usize) {
        let call = &mut self.calls[id];
        let layer = &self.chain.layers[call.layer];
        call.made += 1;
        let limit = now + layer.timeout;
        let attempt = Attempt {
            call: id,
            layer: call.layer,
            deadline: limit.min(call.deadline),
            is_retry: call.is_retry || call.made > 1,
            is_slow: false,
            is_answered: false,
            is_success: false,
            holds: false,
            calls_left: 0,
        };
        self.attempts.push(attempt);
        let attempt = self.attempts.len() - 1;
        call.current = Some(attempt);
        self.counts.layers[call.layer][0] += u64::from(call.is_judged);
        self.schedule(now + layer.one_way, Event::Arrival(attempt));
        self.schedule(limit, Event::Timeout(attempt));
    }

    fn arrive(&mut self, now: u64, id: usize) {
        let tier = self.attempts[id].layer;
        let is_faulty = self.is_faulty(now, tier);
        let is_rejected = is_faulty && matches!(self.chain.kind, Kind::Reject);
        if is_rejected || self.occupancy[tier] >= self.chain.layers[tier].backlog {
            self.counts.layers[tier][1] += 1;
            self.reply(now, id, false);
            return;
        }
        self.occupancy[tier] += 1;
        self.attempts[id].is_slow = is_faulty && matches!(self.chain.kind, Kind::SlowArrival);
        self.queues[tier].push_back(id);
        self.take_up(now, tier);
    }

    fn take_up(&mut self, now: u64, tier: usize) {
        let layer = &self.chain.layers[tier];
        let is_faulty = self.is_faulty(now, tier);
        let limit = if is_faulty && matches!(self.chain.kind, Kind::Workers) { 1 } else { layer.workers };
        while self.busy[tier] < limit {
            let Some(id) = self.queues[tier].pop_front() else { return };
            let deadline = self.attempts[id].deadline;
            let is_dropped = match layer.stale {
                StaleWork::Done => false,
                StaleWork::DropExpired => deadline <= now,
                _ => deadline <= now || now + layer.service + layer.one_way > deadline,
            };
            if is_dropped {
                self.occupancy[tier] -= 1;
                self.counts.layers[tier][2] += 1;
                continue;
            }
            self.busy[tier] += 1;
            let is_slow = self.attempts[id].is_slow || is_faulty && matches!(self.chain.kind, Kind::SlowStart);
            let work = layer.service * if is_slow { 3 } else { 1 };
            self.schedule(self.end_of(now, work, tier), Event::Served(id));
        }
    }

    /// Returns when work ends that begins now: the speed of the faulty tier is 0 or a half during the fault.
    fn end_of(&self, now: u64, work: u64, tier: usize) -> u64 {
        let [from, until] = self.chain.fault;
        let slowness = match self.chain.kind {
            Kind::Stall if tier == self.chain.tier => None,
            Kind::Half if tier == self.chain.tier => Some(2),
            _ => return now + work,
        };
        let before = if now < from { work.min(from - now) } else { 0 };
        let left = work - before;
        if left == 0 || now >= until {
            return now + work;
        }
        let begin = now.max(from);
        let inside = slowness.map_or(0, |slowness| left.min((until - begin) / slowness));
        match slowness {
            Some(slowness) if inside == left => begin + left * slowness,
            _ => until + left - inside,
        }
    }

    fn finish(&mut self, now: u64, id: usize) {
        let tier = self.attempts[id].layer;
        if self.chain.layers[tier].waits {
            self.attempts[id].holds = true;
        } else {
            self.release(tier);
        }
        self.attempts[id].calls_left = self.chain.layers.get(tier + 1).map_or(0, |layer| layer.calls);
        self.make_calls(now, id);
        self.take_up(now, tier);
    }

    fn release(&mut self, tier: usize) {
        self.busy[tier] -= 1;
        self.occupancy[tier] -= 1;
    }

    fn make_calls(&mut self, now: u64, id: usize) {
        let attempt = &mut self.attempts[id];
        let (tier, deadline, is_retry, left) = (attempt.layer, attempt.deadline, attempt.is_retry, attempt.calls_left);
        if left == 0 {
            self.answer(now, id, true);
            return;
        }
        let drops = self.chain.layers[tier].stale != StaleWork::Done;
        if drops && deadline <= now {
            self.answer(now, id, false);
            return;
        }
        let is_judged = self.calls[attempt.call].is_judged;
        let deadline = if drops { deadline } else { u64::MAX };
        let count = match self.chain.layers[tier + 1].order {
            CallOrder::Parallel => left,
            _ => {
                attempt.calls_left -= 1;
                1
            }
        };
        for _ in 0..count {
            self.call(now, tier + 1, Some(id), deadline, is_retry, is_judged);
        }
    }

    fn answer(&mut self, now: u64, id: usize, is_success: bool) {
        let tier = self.attempts[id].layer;
        let holds = self.attempts[id].holds;
        self.reply(now, id, is_success);
        if holds {
            self.release(tier);
            self.take_up(now, tier);
        }
    }

    fn reply(&mut self, now: u64, id: usize, is_success: bool) {
        let attempt = &mut self.attempts[id];
        (attempt.is_answered, attempt.is_success) = (true, is_success);
        let at = now + self.chain.layers[attempt.layer].one_way;
        self.schedule(at, Event::Answer(id));
    }

    fn hear(&mut self, now: u64, id: usize) {
        let call = self.attempts[id].call;
        if self.calls[call].current == Some(id) {
            self.settle(now, call, self.attempts[id].is_success);
        }
    }

    fn time_out(&mut self, now: u64, id: usize) {
        let call = self.attempts[id].call;
        if self.calls[call].current == Some(id) {
            self.counts.layers[self.attempts[id].layer][3] += 1;
            self.settle(now, call, false);
        }
    }

    fn settle(&mut self, now: u64, id: usize, is_success: bool) {
        let call = &mut self.calls[id];
        call.current = None;
        let layer = &self.chain.layers[call.layer];
        let leaves = call.parent.is_some()
            && match layer.nested {
                NestedCalls::StandDown => true,
                NestedCalls::FirstOnly => call.is_retry,
                _ => false,
            };
        if !is_success && !leaves && call.made < layer.attempts && now < call.deadline {
            self.send(now, id);
            return;
        }
        let (parent, is_judged) = (call.parent, call.is_judged);
        let Some(parent) = parent else {
            self.counts.served += u64::from(is_success && is_judged);
            return;
        };
        let attempt = &mut self.attempts[parent];
        if attempt.is_answered {
            return;
        }
        if !is_success {
            self.answer(now, parent, false);
            return;
        }
        let tier = attempt.layer;
        if self.chain.layers[tier + 1].order == CallOrder::Parallel {
            attempt.calls_left -= 1;
            if attempt.calls_left > 0 {
                return;
            }
        }
        self.make_calls(now, parent);
    }
}

impl Chain {
    fn system(&self) -> System {
        let nanos = Duration::from_nanos;
        let name = |tier: usize| format!("tier {tier}");
        let mut system = System::builder(SECOND as f64 / self.gap as f64).arrivals(Arrivals::Fixed);
        for (tier, layer) in self.layers.iter().enumerate() {
            let service = Service::new(name(tier)).workers(layer.workers).service_time(nanos(layer.service));
            let service = service.backlog(layer.backlog).stale_work(layer.stale);
            system = system.service(if layer.waits { service.hold_workers() } else { service });
            let edge = if tier == 0 { Edge::from_users(name(0)) } else { Edge::between(name(tier - 1), name(tier)) };
            let edge = edge.policy(at_once(layer.attempts)).timeout(nanos(layer.timeout)).one_way(nanos(layer.one_way));
            system = system.edge(edge.calls(layer.calls).order(layer.order).nested(layer.nested));
        }
        let trigger = match self.kind {
            Kind::Stall => Trigger::stall(),
            Kind::Half => Trigger::share(0.5),
            Kind::Reject => Trigger::reject(),
            Kind::Workers => Trigger::workers(1),
            Kind::SlowStart => Trigger::slow_from_start(3.0),
            Kind::SlowArrival => Trigger::slow_from_arrival(3.0),
        };
        let [from, until] = self.fault;
        let trigger = trigger.on(name(self.tier)).at(nanos(from)).lasting(nanos(until - from));
        system.trigger(trigger).horizon(nanos(self.horizon)).build().unwrap()
    }

    /// Returns the figures of the simulator.
    fn simulated(&self) -> Counts {
        let figures = self.system().run(Seed::new(1));
        let layers = figures.edges.iter().zip(&figures.services);
        let layers =
            layers.map(|(edge, service)| [edge.judged_attempts, service.refused, service.dropped, edge.timed_out]);
        Counts { requests: figures.judged_requests, served: figures.judged_served, layers: layers.collect() }
    }
}

fn layers() -> impl Strategy<Value = Layer> {
    let stale = prop_oneof![Just(StaleWork::Done), Just(StaleWork::DropExpired), Just(StaleWork::DropHopeless)];
    let nested = prop_oneof![Just(NestedCalls::Multiply), Just(NestedCalls::StandDown), Just(NestedCalls::FirstOnly)];
    let order = prop_oneof![Just(CallOrder::Sequence), Just(CallOrder::Parallel)];
    let queue = (1..4_u32, 2..13_u64, 3..300_u32, stale, prop::bool::weighted(0.3));
    (queue, (1..4_u32, 40..1_000_u64, 0..8_u64, 1..3_u32, order, nested)).prop_map(
        |((workers, service, backlog, stale, waits), (attempts, timeout, one_way, calls, order, nested))| {
            let (service, timeout, one_way) = (service * MS, timeout * MS, one_way * MS);
            Layer { workers, service, backlog, stale, waits, attempts, timeout, one_way, calls, order, nested }
        },
    )
}

fn chains() -> impl Strategy<Value = Chain> {
    let kind = prop_oneof![
        Just(Kind::Stall),
        Just(Kind::Half),
        Just(Kind::Reject),
        Just(Kind::Workers),
        Just(Kind::SlowStart),
        Just(Kind::SlowArrival)
    ];
    let layers = prop::collection::vec(layers(), 1..4);
    (4..40_u64, layers, kind, 0..3_usize, 500..2_000_u64, 50..4_000_u64).prop_map(
        |(gap, layers, kind, tier, at, length)| {
            let mut chain = Chain {
                gap: gap * MS,
                tier: tier.min(layers.len() - 1),
                layers,
                kind,
                fault: [at * MS, (at + length) * MS],
                horizon: 10 * SECOND,
            };
            chain.layers[0].calls = 1;
            chain
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_without_randomness_have_the_figures_of_a_plain_model(chain in chains()) {
        prop_assert_eq!(chain.simulated(), Model::run(&chain));
    }
}
