//! The results of a run, from a simulation or from the traces of real requests.

use core::time::Duration;

use super::definition::System;
use crate::engine::{Histogram, TimeSeries, micros};
use crate::outage::{Course, JudgedWindows, Run, Verdict};

/// The results of one run of a system.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SystemFigures {
    /// Start of the first trigger, from which the system is judged.
    pub fault_start: Duration,
    /// End of the last trigger.
    pub fault_end: Duration,
    /// End of the simulation.
    pub horizon: Duration,
    /// Requests, by their arrival.
    pub requests: TimeSeries,
    /// Requests that were served, by their arrival; also those that were served after the horizon.
    pub served: TimeSeries,
    /// Requests that were served, by the time at which they were.
    pub goodput: TimeSeries,
    /// The figures of the services, in their order.
    pub services: Vec<ServiceFigures>,
    /// The figures of the edges, in their order.
    pub edges: Vec<EdgeFigures>,
    /// Number of requests from the start of the fault to the horizon.
    pub judged_requests: u64,
    /// How many of these were served.
    pub judged_served: u64,
    /// Number of requests during the fault.
    pub fault_requests: u64,
    /// How many of these were served.
    pub fault_served: u64,
    pub(super) windows: JudgedWindows,
    /// How long the judged requests that were served took, in microseconds.
    pub(super) latencies: Histogram,
    pub(super) course: Course,
}

/// The figures of a service.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServiceFigures {
    /// Number of attempts that a worker worked on, to the end of its own work.
    pub completed: u64,
    /// How many of these were answered in time and with success, before the horizon or after it.
    pub useful: u64,
    /// Number of attempts that were refused.
    pub refused: u64,
    /// Number of attempts that were dropped because their callers had given up.
    pub dropped: u64,
    /// The largest number of attempts at the service.
    pub peak: u32,
    /// The number of attempts at the service, at every whole second.
    pub occupancy: Vec<u32>,
}

/// The figures of an edge.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EdgeFigures {
    /// Attempts, by the time at which they were sent.
    pub attempts: TimeSeries,
    /// Number of attempts that were caused by requests from the start of the fault to the horizon.
    pub judged_attempts: u64,
    /// Number of attempts that were caused by requests during the fault.
    pub fault_attempts: u64,
    /// Number of attempts that ran out of their time limit.
    pub timed_out: u64,
    /// Number of calls that a cache served.
    pub cached: u64,
}

impl SystemFigures {
    /// Returns whether the system survived its triggers, as far as this run shows it:
    /// [`NotDecided`](Verdict::NotDecided) if a longer one could show something else.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let run = Run {
            course: &self.course,
            windows: &self.windows,
            fault_end: self.fault_end,
            horizon: self.horizon,
            requests: &self.requests,
            attempts: self.edges.iter().map(|edge| &edge.attempts).collect(),
            occupancies: self.services.iter().map(|service| &service.occupancy[..]).collect(),
        };
        run.verdict()
    }

    /// Returns what the windows up to the horizon say, as if nothing came after it. A system that recovers more slowly
    /// than that is down.
    #[must_use]
    pub fn state_at_horizon(&self) -> Verdict {
        self.windows.verdict()
    }

    /// Returns whether the system is down at the horizon, and stays down; false if that is [not
    /// decided](Verdict::NotDecided).
    #[must_use]
    pub fn is_metastable(&self) -> bool {
        self.verdict().is_down()
    }

    /// Returns the time from the end of the last trigger until the system is up for the rest of the simulation: 0 if it
    /// never fell, `None` if it is down at the horizon. Its resolution is the [width of a window](Self::window).
    #[must_use]
    pub fn recovery(&self) -> Option<Duration> {
        self.windows.recovery()
    }

    /// Returns the time at which the system fell first, from the start of the simulation; `None` if it never fell.
    #[must_use]
    pub fn fell_at(&self) -> Option<Duration> {
        self.windows.fell_at()
    }

    /// Returns whether the system was down when the first trigger came: random variation can overload a service, too.
    #[must_use]
    pub fn was_down_before_fault(&self) -> bool {
        self.windows.was_down_before()
    }

    /// Returns the width of the windows by which the system is judged: a second, or the time of a hundred expected
    /// requests if that is longer.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.windows.width()
    }

    /// Returns the shortest horizon at which the system can be seen to recover: the end of the last trigger and five
    /// windows.
    #[must_use]
    pub fn min_horizon(&self) -> Duration {
        self.windows.min_horizon()
    }

    /// Returns the share of the requests from the start of the fault to the horizon that were served.
    #[must_use]
    pub fn success_ratio(&self) -> f64 {
        ratio(self.judged_served, self.judged_requests)
    }

    /// Returns the share of all requests up to the horizon that were served in the end, also after the horizon.
    #[must_use]
    pub fn served_in_the_end_ratio(&self) -> f64 {
        ratio(self.served.total(), self.requests.total())
    }

    /// Returns how long requests took that were served, of those from the start of the fault to the horizon: the
    /// quantile at a share, in 0..=1, to a thousandth of it. `None` if none was served.
    #[must_use]
    pub fn latency(&self, share: f64) -> Option<Duration> {
        self.latencies.quantile(share, self.latencies.count()).map(Duration::from_micros)
    }

    /// Returns the share of the requests during the fault that were served.
    #[must_use]
    pub fn success_ratio_during_fault(&self) -> f64 {
        ratio(self.fault_served, self.fault_requests)
    }

    /// Returns the share of the requests of the last ten windows that were served.
    #[must_use]
    pub fn final_success_ratio(&self) -> f64 {
        self.windows.final_success_ratio()
    }

    /// Returns the number of attempts on an edge per request, of the requests from the start of the fault to the
    /// horizon.
    #[must_use]
    pub fn attempts_per_request(&self, edge: usize) -> f64 {
        ratio(self.edges.get(edge).map_or(0, |edge| edge.judged_attempts), self.judged_requests)
    }

    /// Returns the number of attempts on an edge per request, of the requests during the fault.
    #[must_use]
    pub fn attempts_per_request_during_fault(&self, edge: usize) -> f64 {
        ratio(self.edges.get(edge).map_or(0, |edge| edge.fault_attempts), self.fault_requests)
    }

    /// Returns the largest number of attempts on any edge per request.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        (0..self.edges.len()).map(|edge| self.attempts_per_request(edge)).fold(0.0, f64::max)
    }
}

impl ServiceFigures {
    /// Returns the share of the completed work whose answer nobody waited for, or that failed later on.
    #[must_use]
    pub fn wasted_ratio(&self) -> f64 {
        ratio(self.completed - self.useful.min(self.completed), self.completed)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / (whole as f64).max(1.0)
}

/// Computes [`SystemFigures`] from the traces of real requests to one service, with the same definitions as the
/// simulation.
///
/// ```
/// use core::time::Duration;
/// use stagger_sim::system::{Edge, Service, System, SystemRecorder, Trigger};
///
/// let ms = Duration::from_millis;
/// let system = System::builder(100.0)
///     .service(Service::new("server"))
///     .edge(Edge::from_users("server"))
///     .trigger(Trigger::stall().at(ms(1_000)).lasting(ms(500)))
///     .horizon(ms(3_000))
///     .build()?;
/// let mut recorder = SystemRecorder::new(&system);
/// recorder.record_request(ms(990), &[ms(990)], Some(ms(1_510)));
/// recorder.record_request(ms(1_000), &[ms(1_000), ms(1_250)], None);
///
/// let figures = recorder.figures();
/// assert_eq!((figures.success_ratio(), figures.attempts_per_request(0)), (0.0, 2.0));
/// assert_eq!((figures.requests.total(), figures.goodput.total()), (2, 1));
/// # Ok::<(), stagger_sim::system::SystemError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SystemRecorder {
    figures: SystemFigures,
}

impl SystemRecorder {
    /// Creates a recorder for requests to the first service of a system, over its first edge. Its rate, triggers and
    /// horizon are those of the recorded run.
    #[must_use]
    pub fn new(system: &System) -> Self {
        let ((fault_start, fault_end), horizon) = (system.fault(), system.horizon());
        let fault = [fault_start, fault_end].map(micros);
        let figures = SystemFigures {
            fault_start,
            fault_end,
            horizon,
            services: vec![ServiceFigures::default()],
            edges: vec![EdgeFigures::default()],
            windows: JudgedWindows::new(system.rate(), fault, micros(horizon), system.good_percent()),
            ..SystemFigures::default()
        };
        Self { figures }
    }

    /// Records a request. Times are measured from the start of the run.
    ///
    /// `arrived` is its arrival, `attempts` are the times at which its attempts were sent, and `served` is when it
    /// succeeded, if it did. A request from after the horizon counts only for what happened before it.
    pub fn record_request(&mut self, arrived: Duration, attempts: &[Duration], served: Option<Duration>) {
        let figures = &mut self.figures;
        let (is_early, horizon) = (arrived < figures.horizon, figures.horizon);
        let is_judged = is_early && arrived >= figures.fault_start;
        let is_in_fault = arrived >= figures.fault_start && arrived < figures.fault_end;
        let (judged, in_fault) = (u64::from(is_judged), u64::from(is_in_fault));
        if is_early {
            figures.requests.record(arrived);
            figures.windows.arrived(micros(arrived));
            figures.judged_requests += judged;
            figures.fault_requests += in_fault;
        }
        for edge in figures.edges.iter_mut().take(1) {
            attempts.iter().filter(|sent| **sent < horizon).for_each(|sent| edge.attempts.record(*sent));
            edge.judged_attempts += judged * attempts.len() as u64;
            edge.fault_attempts += in_fault * attempts.len() as u64;
        }
        let Some(served) = served else { return };
        if served < horizon {
            figures.goodput.record(served);
        }
        if is_early {
            figures.served.record(arrived);
            figures.windows.served(micros(arrived));
            if is_judged {
                figures.latencies.add(micros(served.saturating_sub(arrived)));
            }
            figures.judged_served += judged;
            figures.fault_served += in_fault;
        }
    }

    /// Returns the figures. Those of the service are 0: only the service knows them.
    #[must_use]
    pub fn figures(self) -> SystemFigures {
        self.figures
    }
}

#[cfg(test)]
mod tests {
    use stagger_core::{Seed, policy};

    use crate::system::{Arrivals, Edge, Service, Trigger};

    use super::*;

    /// A server without a queue in its way: every request is known without a simulation.
    #[test]
    fn recorded_requests_give_the_figures_of_their_simulation() {
        let ms = Duration::from_millis;
        let system = System::builder(100.0)
            .arrivals(Arrivals::Fixed)
            .service(Service::new("server").service_time(ms(1)).backlog(1_000))
            .edge(Edge::from_users("server").one_way(ms(1)).timeout(ms(100)).policy(policy!(zero().max_attempts(2))))
            .trigger(Trigger::reject().at(ms(2_000)).lasting(ms(1_000)))
            .horizon(ms(9_000))
            .build()
            .unwrap();
        let simulated = system.run(Seed::new(1));
        let mut recorder = SystemRecorder::new(&system);
        // The load goes on after the horizon. A refusal is known after a round trip, and is an arrival until its end.
        for nth in 1..=1_000 {
            let (at, refused) = (ms(10 * nth), |sent: Duration| (ms(2_000)..ms(3_000)).contains(&(sent + ms(1))));
            match (refused(at), refused(at + ms(2))) {
                (false, _) => recorder.record_request(at, &[at], Some(at + ms(3))),
                (true, false) => recorder.record_request(at, &[at, at + ms(2)], Some(at + ms(5))),
                (true, true) => recorder.record_request(at, &[at, at + ms(2)], None),
            }
        }
        let recorded = recorder.figures();
        let without_parts = |mut figures: SystemFigures| {
            figures.services.clear();
            // A recorder knows nothing but the requests.
            figures.course = Course::default();
            figures
        };
        assert_eq!(without_parts(recorded), without_parts(simulated));
    }
}
