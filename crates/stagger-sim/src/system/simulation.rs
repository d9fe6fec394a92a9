//! A run of a system: its start, the loop of events, requests and triggers.

use core::time::Duration;
use std::borrow::Cow;

use stagger_core::Seed;

use super::definition::{Arrivals, System};
use super::figures::{EdgeFigures, ServiceFigures, SystemFigures};
use super::queue::{Event, EventKind, EventQueue, Lanes};
use super::service::{Service, Times};
use super::state::{Link, Marks, Random, Simulation, Slab, Speed, Stream, Tier, WarmKeys, nanos};
use super::trigger::{Fault, Trigger};
use crate::distributions::exponential;
use crate::engine::{Cancelled, Progress};
use crate::outage::{Course, GOOD_PERCENT, JudgedWindows, Verdict, longest_call};

/// The share of served requests of a good window before a cache: with 90 % hits, a dead server would be on the line.
const GOOD_PERCENT_WITH_CACHE: u64 = 95;

const SECOND: u64 = 1_000_000_000;

/// The lane of the users' requests.
const REQUESTS: usize = 0;

/// What a [`Change`](EventKind::Change) does.
const APPLY_TRIGGERS: u32 = 0;
const MEASURE_QUEUES: u32 = 1;

/// Number of events between two progress reports.
const REPORT_EVERY: u64 = 1 << 16;

impl System {
    /// Runs the system with this seed. The same seed gives the same figures on every machine.
    #[must_use]
    pub fn run(&self, seed: Seed) -> SystemFigures {
        // This progress is not shared, so it is never cancelled.
        self.run_with_progress(seed, &Progress::new()).unwrap_or_default()
    }

    /// Runs the system like [`run`](Self::run) and reports its progress; returns `None` if it was cancelled.
    #[must_use]
    pub fn run_with_progress(&self, seed: Seed, progress: &Progress) -> Option<SystemFigures> {
        let mut simulation = Simulation::new(self, seed);
        simulation.run(progress).ok()?;
        Some(simulation.figures)
    }

    /// Runs the system until its [verdict](SystemFigures::verdict) is decided: with the horizon, or with the [shortest
    /// one](SystemFigures::min_horizon) if that is later, and then for twice as long as before, up to
    /// [`LONGEST_RUN`](Self::LONGEST_RUN) times as long. The figures are those of a system with that horizon.
    #[must_use]
    pub fn run_until_decided(&self, seed: Seed) -> SystemFigures {
        self.run_until_decided_with_progress(seed, &Progress::new()).unwrap_or_default()
    }

    /// Runs the system like [`run_until_decided`](Self::run_until_decided) and reports its progress; returns `None` if
    /// it was cancelled.
    #[must_use]
    pub fn run_until_decided_with_progress(&self, seed: Seed, progress: &Progress) -> Option<SystemFigures> {
        let first = self.horizon.max(self.min_horizon());
        let mut figures = self.until(first)?.run_with_progress(seed, progress)?;
        while figures.verdict() == Verdict::NotDecided {
            let next = figures.horizon.saturating_mul(2).min(first.saturating_mul(Self::LONGEST_RUN));
            if next <= figures.horizon {
                break;
            }
            // A run of too many requests is not made.
            let Some(longer) = self.until(next) else { break };
            figures = longer.run_with_progress(seed, progress)?;
        }
        Some(figures)
    }

    /// Returns the course of a run at its start.
    fn course(&self, window: Duration) -> Course {
        let settings = &self.settings;
        let entry = &settings.edges[self.graph.entry];
        let capacities: Vec<_> = self.layout().services.iter().map(|service| service.capacity).collect();
        let queues = settings.services.iter().zip(&capacities);
        let work = queues.map(|(service, capacity)| match service.backlog {
            Service::MAX_BACKLOG => 0.0,
            backlog => f64::from(backlog) / capacity,
        });
        let work = Duration::try_from_secs_f64(work.sum()).unwrap_or(Duration::MAX);
        Course::new(window, longest_call(&entry.policy, entry.timeout, Duration::ZERO), work, capacities)
    }

    /// Returns the system with another horizon; `None` if it would have too many requests.
    fn until(&self, horizon: Duration) -> Option<Cow<'_, Self>> {
        if horizon == self.horizon {
            return Some(Cow::Borrowed(self));
        }
        self.to_builder().horizon(horizon).build().ok().map(Cow::Owned)
    }
}

impl<'a> Simulation<'a> {
    fn new(system: &'a System, seed: Seed) -> Self {
        let settings = &system.settings;
        let (start, end) = system.fault();
        let fault = [nanos(start), nanos(end)];
        let horizon = nanos(system.horizon);
        let windows =
            JudgedWindows::new(settings.rate, fault.map(|at| at / 1_000), horizon / 1_000, system.good_percent());
        let mut lanes = Lanes::default();
        let requests = lanes.add();
        debug_assert_eq!(requests, REQUESTS, "the first lane is that of the requests");
        let mut random = Random::new(seed);
        let next_gap = random.gap(settings.arrivals);
        let tiers = (0..settings.services.len()).map(|service| Tier::new(system, service, &mut lanes)).collect();
        let edges = 0..settings.edges.len();
        let links = edges.map(|edge| Link::new(system, edge, seed.for_call(7), &mut lanes)).collect();
        Self {
            queue: EventQueue::new(lanes.count()),
            tiers,
            links,
            calls: Slab::new(),
            attempts: Slab::new(),
            last_serial: 0,
            random,
            figures: SystemFigures {
                fault_start: start,
                fault_end: end,
                horizon: system.horizon,
                services: vec![ServiceFigures::default(); settings.services.len()],
                edges: vec![EdgeFigures::default(); settings.edges.len()],
                course: system.course(windows.width()),
                windows,
                ..SystemFigures::default()
            },
            horizon,
            fault,
            end: system.settled_at(),
            spike: 1.0,
            next_request: 0.0,
            next_gap,
            granted: 0,
            refused: 0,
            events: 0,
            system,
        }
    }

    fn run(&mut self, progress: &Progress) -> Result<(), Cancelled> {
        let mut progress = progress.start_run(self.end / SECOND);
        for trigger in &self.system.settings.triggers {
            for at in [trigger.at, trigger.at + trigger.length] {
                self.queue.push(usize::MAX, nanos(at), EventKind::Change, APPLY_TRIGGERS, 0);
            }
        }
        self.queue.push(usize::MAX, 0, EventKind::Change, MEASURE_QUEUES, 0);
        self.schedule_request(0.0);
        while let Some(event) = self.next_event() {
            self.handle(event);
            self.events += 1;
            if self.events % REPORT_EVERY == 0 {
                progress.report(event.at / SECOND)?;
            }
        }
        progress.report(self.end / SECOND)
    }

    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        let calls = &self.calls;
        self.queue.pop(self.end, |timeout| calls[timeout.id()].serial != timeout.serial())
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        let now = event.at;
        match event.kind() {
            EventKind::Change if event.id() == APPLY_TRIGGERS => self.apply_triggers(now),
            EventKind::Change => self.measure_queues(now),
            EventKind::Answer => self.hear_answer(now, event.id()),
            EventKind::Served => self.finish_service(now, event.id()),
            EventKind::Timeout => self.time_out(now, event.id(), event.serial()),
            EventKind::Wake => self.take_up(now, event.id() as usize),
            EventKind::Send => self.send_later(now, event.id()),
            EventKind::Arrival => self.arrive(now, event.id()),
            EventKind::Request => self.request(now),
        }
    }

    /// Handles the arrival of a request of the users.
    fn request(&mut self, now: u64) {
        self.schedule_request(self.next_request);
        let marks = Marks {
            is_judged: (self.fault[0]..self.horizon).contains(&now),
            is_in_fault: (self.fault[0]..self.fault[1]).contains(&now),
            is_retry: false,
        };
        if now < self.horizon {
            self.figures.requests.add(now / 1_000);
            self.figures.windows.arrived(now / 1_000);
            self.figures.judged_requests += u64::from(marks.is_judged);
            self.figures.fault_requests += u64::from(marks.is_in_fault);
        }
        let owner = self.random.owners.below(u64::from(self.system.settings.processes)) as u32;
        if let Some(is_served) = self.start_call(now, self.system.graph.entry, None, owner, now, marks) {
            self.end_request(now, now, marks, is_served);
        }
    }

    /// Counts a request that ended at `now`.
    pub(super) fn end_request(&mut self, now: u64, born: u64, marks: Marks, is_served: bool) {
        if !is_served {
            return;
        }
        if now < self.horizon {
            self.figures.goodput.add(now / 1_000);
        }
        if born < self.horizon {
            self.figures.served.add(born / 1_000);
            self.figures.windows.served(born / 1_000);
            if marks.is_judged {
                self.figures.judged_served += 1;
                self.figures.latencies.add((now - born) / 1_000);
            }
            self.figures.fault_served += u64::from(marks.is_in_fault);
        }
    }

    /// Schedules the request that follows `last`.
    fn schedule_request(&mut self, last: f64) {
        let mean = SECOND as f64 / (self.system.settings.rate * self.spike);
        self.next_request = last + mean * self.next_gap;
        self.next_gap = self.random.gap(self.system.settings.arrivals);
        self.queue.push(REQUESTS, self.next_request.round() as u64, EventKind::Request, 0, 0);
    }

    /// Applies the triggers that are active at `now`, after one of them started or ended.
    fn apply_triggers(&mut self, now: u64) {
        let settings = &self.system.settings;
        for (service, tier) in self.tiers.iter_mut().enumerate() {
            let workers = settings.services[service].workers;
            let limit = core::mem::replace(&mut tier.limit, workers);
            (tier.rejects, tier.error, tier.start_factor, tier.arrival_factor) = (false, 0.0, 1.0, 1.0);
            let on_service = settings.triggers.iter().zip(&self.system.graph.targets);
            let active = on_service.filter(|&(trigger, &target)| target == service && is_active(trigger, now));
            for (trigger, _) in active {
                match trigger.fault {
                    Fault::Reject => tier.rejects = true,
                    Fault::Error(probability) => tier.error = 1.0 - (1.0 - tier.error) * (1.0 - probability),
                    Fault::Workers(workers) => tier.limit = tier.limit.min(workers),
                    Fault::SlowStart(factor) => tier.start_factor *= factor,
                    Fault::SlowArrival(factor) => tier.arrival_factor *= factor,
                    Fault::Share(_) | Fault::Spike(_) | Fault::Cold => {}
                }
            }
            if tier.limit > limit {
                self.queue.push(usize::MAX, now, EventKind::Wake, service as u32, 0);
            }
        }
        let colds = settings.triggers.iter().filter(|trigger| trigger.fault == Fault::Cold);
        if colds.into_iter().any(|trigger| nanos(trigger.at) == now) {
            self.links.iter_mut().filter_map(|link| link.cache.as_mut()).for_each(WarmKeys::clear);
        }
        let spikes =
            settings.triggers.iter().filter(|trigger| is_active(trigger, now)).map(|trigger| match trigger.fault {
                Fault::Spike(factor) => factor,
                _ => 1.0,
            });
        let spike: f64 = spikes.product();
        let has_changed = (spike - self.spike).abs() > 0.0;
        self.spike = spike;
        if has_changed && settings.arrivals == Arrivals::Poisson {
            self.queue.clear(REQUESTS);
            self.schedule_request(now as f64);
        }
    }

    fn measure_queues(&mut self, now: u64) {
        for (tier, figures) in self.tiers.iter().zip(&mut self.figures.services) {
            figures.occupancy.push(tier.occupancy);
        }
        if self.links.iter().any(|link| link.cache.is_some()) {
            let cold = self.links.iter().filter_map(|link| link.cache.as_ref()).map(WarmKeys::cold).sum();
            self.figures.course.cold_keys.push(cold);
        }
        if self.links.iter().any(|link| !link.guards.is_empty()) {
            self.figures.course.granted.push(self.granted);
            self.figures.course.refused.push(self.refused);
        }
        if now + SECOND <= self.horizon {
            self.queue.push(usize::MAX, now + SECOND, EventKind::Change, MEASURE_QUEUES, 0);
        }
    }

    /// Returns the one-way delay of a message over an edge.
    #[inline]
    pub(super) fn one_way(&mut self, edge: usize) -> u64 {
        match self.links[edge].one_way {
            [fixed, 0] => fixed,
            [least, range] => least + self.random.delays.below(range + 1),
        }
    }
}

impl System {
    /// Returns the share of the requests of a good window that are served, in percent.
    pub(super) fn good_percent(&self) -> u64 {
        let has_cache = self.settings.edges.iter().any(|edge| edge.cache.is_some());
        if has_cache { GOOD_PERCENT_WITH_CACHE } else { GOOD_PERCENT }
    }

    /// Returns the time at which the requests before the horizon are settled: at most after another horizon.
    fn settled_at(&self) -> u64 {
        let entry = &self.settings.edges[self.graph.entry];
        let longest = longest_call(&entry.policy, entry.timeout, Duration::ZERO);
        let horizon = self.horizon;
        nanos(horizon + longest.unwrap_or(horizon).min(horizon) + Duration::from_millis(1))
    }
}

impl Tier {
    fn new(system: &System, service: usize, lanes: &mut Lanes) -> Self {
        let settings = &system.settings;
        let Service { ref times, time, workers, .. } = settings.services[service];
        let on_service = settings.triggers.iter().zip(&system.graph.targets);
        let shares = on_service.filter_map(|(trigger, &target)| match trigger.fault {
            Fault::Share(share) if target == service => Some((nanos(trigger.at), until(trigger), share)),
            _ => None,
        });
        let slows = |fault| matches!(fault, Fault::Share(_) | Fault::SlowStart(_) | Fault::SlowArrival(_));
        let is_slowed = settings
            .triggers
            .iter()
            .zip(&system.graph.targets)
            .any(|(trigger, &target)| target == service && slows(trigger.fault));
        let is_even = *times == Times::Fixed && !is_slowed;
        Self {
            lane: if is_even { lanes.for_length(nanos(time)) } else { lanes.add() },
            limit: workers,
            speed: Speed::new(&shares.collect::<Vec<_>>()),
            start_factor: 1.0,
            arrival_factor: 1.0,
            ..Self::default()
        }
    }
}

impl Random {
    fn new(seed: Seed) -> Self {
        let streams = |purpose| Stream::new(seed.for_call(purpose));
        Self {
            gaps: streams(0),
            owners: streams(1),
            keys: streams(2),
            service_times: streams(3),
            errors: streams(4),
            delays: streams(5),
            calls: streams(6),
        }
    }

    /// Returns the time between two requests, in means.
    fn gap(&mut self, arrivals: Arrivals) -> f64 {
        match arrivals {
            Arrivals::Poisson => exponential(self.gaps.bits()),
            Arrivals::Fixed => 1.0,
        }
    }
}

impl Link {
    fn new(system: &System, edge: usize, seeds: Seed, lanes: &mut Lanes) -> Self {
        let (settings, to) = (&system.settings, system.graph.to[edge]);
        let edges = &settings.edges[edge];
        let owners = system.owners(edge);
        let seeds = seeds.for_call(edge as u64);
        let guards = edges.guards.iter();
        let (timeout, one_way) = (nanos(edges.timeout), edges.one_way.map(nanos));
        Self {
            guards: guards.flat_map(|new| (0..owners).map(|owner| new(seeds.for_call(u64::from(owner))))).collect(),
            cache: edges.cache.map(|cache| WarmKeys::new(cache.keys)),
            timeout,
            one_way: [one_way[0], one_way[1] - one_way[0]],
            to,
            message_lane: if one_way[0] == one_way[1] { lanes.for_length(one_way[0]) } else { lanes.add() },
            timeout_lane: lanes.for_length(timeout),
        }
    }
}

fn until(trigger: &Trigger) -> u64 {
    nanos(trigger.at + trigger.length)
}

fn is_active(trigger: &Trigger, now: u64) -> bool {
    (nanos(trigger.at)..until(trigger)).contains(&now)
}
