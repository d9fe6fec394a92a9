use core::time::Duration;

use super::definition::System;
use super::figures::{EdgeFigures, ServiceFigures, SystemFigures};
use crate::engine::time::micros;
use crate::outage::judged::JudgedWindows;

/// Computes [`SystemFigures`] from the traces of real requests to one service, with the same definitions as the simulation.
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
    /// Creates a recorder for requests to the first service of a system, over its first edge. Its rate, triggers and horizon
    /// are those of the recorded run.
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
    /// `arrived` is its arrival, `attempts` are the times at which its attempts were sent, and `served` is when it succeeded,
    /// if it did. A request from after the horizon counts only for what happened before it.
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

    use super::*;
    use crate::system::{Arrivals, Edge, Service, Trigger};

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
            figures
        };
        assert_eq!(without_parts(recorded), without_parts(simulated));
    }
}
