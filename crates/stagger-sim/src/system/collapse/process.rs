use core::time::Duration;

use stagger_core::Seed;

use super::splitting::Process;
use crate::outage::judged::JudgedWindows;
use crate::outage::verdict::GOOD_WINDOWS;
use crate::system::definition::System;
use crate::system::simulation::{Simulation, nanos};

/// A system without triggers, from a start with empty queues.
pub(super) struct Health<'a> {
    simulation: Simulation<'a>,
    /// For each service, the share of the shortest time limit of its callers that it needs for one attempt.
    weights: Vec<f64>,
    window: u64,
    window_end: u64,
    /// The share of the requests of a good window that are served, in percent.
    percent: u64,
    /// Requests that had failed and that had been served at the end of the last whole window.
    before: [u64; 2],
    /// Bad windows up to the last whole one, without a good one between them.
    bad: usize,
    now: u64,
}

impl<'a> Health<'a> {
    pub(super) fn new(system: &'a System, seed: Seed) -> Self {
        let settings = &system.settings;
        let weights = settings.services.iter().enumerate().map(|(nth, service)| {
            let callers = settings.edges.iter().zip(&system.graph.to).filter(|&(_, &to)| to == nth);
            let timeout = callers.map(|(edge, _)| edge.timeout).min().unwrap_or(Duration::MAX);
            1.0 / (service.capacity() * timeout.as_secs_f64())
        });
        let window = nanos(Self::window(system));
        Self {
            weights: weights.collect(),
            window,
            window_end: window,
            percent: system.good_percent(),
            before: [0; 2],
            bad: 0,
            now: 0,
            simulation: Simulation::start_endless(system, seed),
        }
    }

    /// Returns the width of a window.
    fn window(system: &System) -> Duration {
        JudgedWindows::new(system.rate(), [0, 0], 0, system.good_percent()).width()
    }

    /// Returns how long a collapse has lasted when it is noticed.
    pub(super) fn delay(system: &System) -> Duration {
        Self::window(system) * GOOD_WINDOWS as u32
    }

    /// Judges the window that ended before `now`, by the requests that ended in it.
    #[cold]
    fn judge(&mut self, now: u64, ended: [u64; 2]) {
        let [failed, served] = [0, 1].map(|way| ended[way] - self.before[way]);
        let is_bad = 100 * served < self.percent * (failed + served);
        let next = now - now % self.window;
        // A window in which nothing ends is good: if there was one after it, or this is one.
        self.bad = if is_bad && next == self.window_end { self.bad + 1 } else { 0 };
        (self.before, self.window_end) = (ended, next + self.window);
    }
}

impl Process for Health<'_> {
    fn fork(&self, seed: Seed) -> Self {
        Self { simulation: self.simulation.fork(seed), weights: self.weights.clone(), ..*self }
    }

    fn step(&mut self) {
        let ended = self.simulation.ended;
        self.now = self.simulation.step();
        if self.now >= self.window_end {
            self.judge(self.now, ended);
        }
    }

    fn now(&self) -> f64 {
        self.now as f64 * 1e-9
    }

    /// Returns the time that an attempt would wait now at the busiest service, as a share of the time limit of its callers.
    fn level(&self) -> f64 {
        let tiers = self.simulation.tiers.iter().zip(&self.weights);
        tiers.map(|(tier, weight)| f64::from(tier.occupancy) * weight).fold(0.0, f64::max)
    }

    fn has_collapsed(&self) -> bool {
        self.bad >= GOOD_WINDOWS
    }
}
