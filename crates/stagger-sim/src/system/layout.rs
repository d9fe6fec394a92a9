//! What can be said about a system without a run.

use core::time::Duration;

use stagger_core::Policy;

use super::definition::{Arrivals, System};
use super::edge::{CallOrder, NestedCalls};
use super::service::{Occupancy, Service, StaleWork};

/// What can be said about a system without a run: loads, and attempts in the worst case.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SystemLayout {
    /// The services, in their order.
    pub services: Vec<ServiceLayout>,
    /// The edges, in their order.
    pub edges: Vec<EdgeLayout>,
}

/// A service of a [`SystemLayout`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServiceLayout {
    /// The name.
    pub name: String,
    /// The number of workers.
    pub workers: u32,
    /// The mean service time.
    pub service_time: Duration,
    /// Maximum number of attempts at the service; `None` for a queue without a bound.
    pub backlog: Option<u32>,
    /// Whether work is done whose caller has given up.
    pub does_stale_work: bool,
    /// How long a worker is held for the calls of an attempt, on average, when all is well: zero if workers are free
    /// after their own work.
    pub held_for_calls: Duration,
    /// How long an attempt waits for a worker, on average, when all is well: zero if the load exceeds the capacity, and
    /// nothing is well.
    pub queueing: Duration,
    /// Number of attempts that its workers serve in a second when all is well, held for calls as they are.
    pub capacity: f64,
    /// Number of attempts per second when all is well.
    pub load: f64,
    /// Number of attempts per second when no call succeeds and every attempt is made: infinite without a limit of
    /// attempts.
    pub worst_load: f64,
    /// The longest chain of calls that leads to it from the users: 1 for the service that they call.
    pub depth: usize,
}

/// An edge of a [`SystemLayout`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EdgeLayout {
    /// The service that calls; `None` for the users.
    pub from: Option<usize>,
    /// The service that is called.
    pub to: usize,
    /// Number of calls for each attempt of the service that calls.
    pub calls: u32,
    /// Whether the calls are made all at once.
    pub is_parallel: bool,
    /// Time limit of an attempt.
    pub timeout: Duration,
    /// The time within which about nine of ten attempts are answered when all is well.
    pub usual_time: Duration,
    /// Longest one-way delay of a message.
    pub one_way: Duration,
    /// The policy.
    pub policy: Policy,
    /// Whether calls retry inside an attempt of another call.
    pub nested: NestedCalls,
    /// Whether it has guards.
    pub has_guards: bool,
    /// Whether an attempt is given the deadline of the attempt that it is made for.
    pub hands_on_deadline: bool,
    /// The share of the calls that a warm cache serves.
    pub cached: f64,
    /// Number of calls per request of the users when all is well.
    pub calls_per_request: f64,
    /// Number of attempts per request of the users when no call succeeds and every attempt is made: the product of
    /// attempts and calls along the chain. Guards are not considered. Infinite without a limit of attempts.
    pub worst_attempts_per_request: f64,
}

/// Attempts per request in the worst case: those of which no attempt above is a retry, and the others.
#[derive(Clone, Copy, Default)]
struct Attempts {
    first: f64,
    retried: f64,
}

impl System {
    /// Computes loads, and attempts in the worst case.
    #[must_use]
    pub fn layout(&self) -> SystemLayout {
        let settings = &self.settings;
        let mut depths = vec![0_usize; settings.services.len()];
        let mut arriving = vec![0.0_f64; settings.services.len()];
        let mut worst = vec![Attempts::default(); settings.services.len()];
        let mut per_edge = vec![(0.0, 0.0); settings.edges.len()];
        for edge in self.edges_from_the_users() {
            let of = &settings.edges[edge];
            let from = self.graph.caller(edge);
            let (arrived, above, depth) = match from {
                Some(from) => (arriving[from], worst[from], depths[from]),
                None => (1.0, Attempts { first: 1.0, retried: 0.0 }, 0),
            };
            let calls = f64::from(of.calls) * arrived;
            let attempts = of.policy.max_attempts().map_or(f64::INFINITY, |most| f64::from(most.get()));
            let nested = if from.is_some() { of.nested } else { NestedCalls::Multiply };
            let made = above.times(f64::from(of.calls)).retried(nested, attempts);
            per_edge[edge] = (calls, made.first + made.retried);
            let to = self.graph.to[edge];
            arriving[to] += calls * (1.0 - of.cache.map_or(0.0, |cache| cache.hot));
            worst[to] = Attempts { first: worst[to].first + made.first, retried: worst[to].retried + made.retried };
            depths[to] = depths[to].max(depth + 1);
        }
        let loads: Vec<_> = arriving.iter().map(|arriving| settings.rate * arriving).collect();
        let times = self.times_when_all_is_well(&loads);
        let services = settings.services.iter().enumerate().map(|(nth, service)| ServiceLayout {
            name: service.name.clone(),
            workers: service.workers,
            service_time: service.time,
            backlog: if service.backlog < Service::MAX_BACKLOG { Some(service.backlog) } else { None },
            does_stale_work: service.stale == StaleWork::Done,
            held_for_calls: seconds(times[nth].held_for_calls),
            queueing: seconds(times[nth].queueing),
            capacity: times[nth].capacity,
            load: loads[nth],
            worst_load: settings.rate * (worst[nth].first + worst[nth].retried),
            depth: depths[nth],
        });
        let edges = settings.edges.iter().enumerate().map(|(nth, edge)| EdgeLayout {
            from: self.graph.caller(nth),
            to: self.graph.to[nth],
            calls: edge.calls,
            is_parallel: edge.order == CallOrder::Parallel,
            timeout: edge.timeout,
            usual_time: {
                let answer = times[self.graph.to[nth]].answer.over(edge.one_way);
                seconds(answer.mean + NINE_OF_TEN * answer.variance.sqrt())
            },
            one_way: edge.one_way[1],
            policy: edge.policy,
            nested: edge.nested,
            has_guards: edge.guards.is_some(),
            hands_on_deadline: edge.hands_on_deadline,
            cached: edge.cache.map_or(0.0, |cache| cache.hot),
            calls_per_request: per_edge[nth].0,
            worst_attempts_per_request: per_edge[nth].1,
        });
        SystemLayout { services: services.collect(), edges: edges.collect() }
    }

    /// Returns the times at each service with these loads, in which no attempt fails.
    fn times_when_all_is_well(&self, loads: &[f64]) -> Vec<Times> {
        let settings = &self.settings;
        let mut times = vec![Times::default(); settings.services.len()];
        // Those at the end of chains first: the last edge into a service follows all edges into its callers.
        for &edge in self.edges_from_the_users().iter().rev() {
            let nth = self.graph.to[edge];
            let service = &settings.services[nth];
            let own = service.time.as_secs_f64();
            let own = Spread { mean: own, variance: own * own * service.times.squared_variation() };
            let mut calls = Spread::default();
            for &below in &self.graph.out[nth] {
                let of = &settings.edges[below];
                let answer = times[self.graph.to[below]].answer.over(of.one_way);
                calls = calls.and(answer.of_calls(of.calls, of.order, of.cache.map_or(0.0, |cache| cache.hot)));
            }
            let held = if service.occupancy == Occupancy::UntilAnswered { own.and(calls) } else { own };
            let workers = f64::from(service.workers);
            let capacity = workers / held.mean;
            let busy = loads[nth] / capacity;
            // Sakasegawa's approximation for several workers (1977), with both variations as of Kingman and Allen.
            let arrivals = if settings.arrivals == Arrivals::Poisson { 1.0 } else { 0.0 };
            let variation = (arrivals + held.variance / (held.mean * held.mean)) / 2.0;
            let queueing = if busy < 1.0 {
                held.mean * variation * busy.powf((2.0 * (workers + 1.0)).sqrt() - 1.0) / (workers * (1.0 - busy))
            } else {
                0.0
            };
            // Most find a free worker; the waits of the others are about exponential.
            let queue = Spread { mean: queueing, variance: queueing * queueing * (2.0 / busy.clamp(0.1, 1.0) - 1.0) };
            let held_for_calls = held.mean - own.mean;
            times[nth] = Times { held_for_calls, queueing, capacity, answer: queue.and(own).and(calls) };
        }
        times
    }

    /// Returns the edges in an order in which every edge into a service is before those out of it.
    fn edges_from_the_users(&self) -> Vec<usize> {
        let mut callers = vec![0_usize; self.settings.services.len()];
        self.graph.to.iter().for_each(|&to| callers[to] += 1);
        let (mut order, mut at) = (vec![self.graph.entry], 0);
        while let Some(&edge) = order.get(at) {
            at += 1;
            let to = self.graph.to[edge];
            callers[to] -= 1;
            if callers[to] == 0 {
                order.extend(&self.graph.out[to]);
            }
        }
        order
    }
}

/// The times at a service when all is well, in seconds.
#[derive(Clone, Copy, Default)]
struct Times {
    held_for_calls: f64,
    queueing: f64,
    capacity: f64,
    /// From the arrival of an attempt to its answer.
    answer: Spread,
}

/// A time that varies: its mean in seconds, and its variance.
#[derive(Clone, Copy, Default)]
struct Spread {
    mean: f64,
    variance: f64,
}

/// How many standard deviations above its mean an exponential time is at most in nine of ten cases.
const NINE_OF_TEN: f64 = 1.3;

impl Spread {
    fn and(self, other: Self) -> Self {
        Self { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }

    /// Returns the time with the way to the service and back.
    fn over(self, one_way: [Duration; 2]) -> Self {
        Self { mean: self.mean + (one_way[0] + one_way[1]).as_secs_f64(), ..self }
    }

    /// Returns the time of calls that take this long each, of which a cache serves a share at once.
    fn of_calls(self, calls: u32, order: CallOrder, cached: f64) -> Self {
        let calls = f64::from(calls) * (1.0 - cached);
        match order {
            CallOrder::Sequence => Self { mean: self.mean * calls, variance: self.variance * calls },
            // The last of several answers: for exponential times, its mean grows with the harmonic numbers.
            CallOrder::Parallel => {
                let last = if calls > 1.0 { calls.ln() } else { 0.0 };
                let mean = self.mean + last * self.variance.sqrt();
                Self { mean: mean * calls.min(1.0), variance: self.variance * calls.min(1.0) }
            }
        }
    }
}

fn seconds(length: f64) -> Duration {
    Duration::try_from_secs_f64(length).unwrap_or(Duration::MAX)
}

impl Attempts {
    fn times(self, calls: f64) -> Self {
        Self { first: self.first * calls, retried: self.retried * calls }
    }

    /// Returns the attempts of as many calls, if every attempt is made.
    fn retried(self, nested: NestedCalls, attempts: f64) -> Self {
        let again = |calls: f64, attempts: f64| if calls > 0.0 { calls * attempts } else { 0.0 };
        match nested {
            NestedCalls::StandDown => self,
            NestedCalls::Multiply => {
                Self { first: self.first, retried: again(self.first, attempts - 1.0) + again(self.retried, attempts) }
            }
            NestedCalls::FirstOnly => {
                Self { first: self.first, retried: again(self.first, attempts - 1.0) + self.retried }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::system::{Edge, ServiceTimes, SystemBuilder};

    use super::*;

    fn chain(nested: NestedCalls, calls: u32) -> System {
        let attempts = stagger_core::policy!(zero().max_attempts(3));
        let add = |system: SystemBuilder, edge: Edge| system.edge(edge.policy(attempts).nested(nested));
        let services = ["a", "b", "c"].into_iter().map(Service::new);
        let system = services.fold(System::builder(50.0), SystemBuilder::service);
        let system = add(add(system, Edge::from_users("a")), Edge::between("a", "b"));
        add(system, Edge::between("b", "c").calls(calls)).build().unwrap()
    }

    #[test]
    fn attempts_multiply_along_a_chain_unless_they_stand_down() {
        for (nested, calls, want) in [
            (NestedCalls::Multiply, 1, [3.0, 9.0, 27.0]),
            (NestedCalls::Multiply, 2, [3.0, 9.0, 54.0]),
            (NestedCalls::StandDown, 1, [3.0, 3.0, 3.0]),
            (NestedCalls::FirstOnly, 1, [3.0, 5.0, 7.0]),
        ] {
            let layout = chain(nested, calls).layout();
            let got: Vec<_> = layout.edges.iter().map(|edge| edge.worst_attempts_per_request).collect();
            assert_eq!(got, want, "{nested:?}, {calls}");
            let last = &layout.services[2];
            assert!(
                (last.worst_load - 50.0 * want[2]).abs() < 1e-9 && (last.load - 50.0 * f64::from(calls)).abs() < 1e-9
            );
            assert_eq!(last.depth, 3);
        }
    }

    /// Two workers at 19 ms of their own and two calls, each of 5 ms and 10 ms on the way, serve 2 / 49 ms.
    #[test]
    fn workers_that_wait_for_calls_have_the_capacity_that_waiting_leaves() {
        let ms = Duration::from_millis;
        let front = Service::new("front").workers(2).service_time(ms(19));
        let system = |front: Service, order| {
            System::builder(20.0)
                .arrivals(Arrivals::Fixed)
                .service(front)
                .service(Service::new("back").service_time(ms(5)))
                .edge(Edge::from_users("front"))
                .edge(Edge::between("front", "back").calls(2).order(order))
                .build()
                .unwrap()
                .layout()
        };
        let held = system(front.clone().hold_workers(), CallOrder::Sequence);
        assert!((held.services[0].capacity - 2.0 / 0.049).abs() < 1e-6, "{held:?}");
        assert_eq!(held.services[0].held_for_calls, ms(30));
        let parallel = system(front.clone().hold_workers(), CallOrder::Parallel);
        assert!((parallel.services[0].capacity - 2.0 / 0.034).abs() < 1e-6, "{parallel:?}");
        let free = system(front, CallOrder::Sequence);
        assert!((free.services[0].capacity - 2.0 / 0.019).abs() < 1e-6, "{free:?}");
        // 10 ms on the way, 19 ms of work, and two calls, when nothing varies.
        assert_eq!(held.edges[0].usual_time, ms(59));
    }

    /// M/M/1 at half of its capacity: an attempt waits as long as one takes, and an exponential time of twice that is
    /// 2.3 of its means in nine of ten cases.
    #[test]
    fn the_usual_time_is_that_of_nine_of_ten_attempts() {
        let second = Duration::from_secs(1);
        let service = Service::new("a").service_time(second).service_times(ServiceTimes::Exponential);
        let edge = Edge::from_users("a").one_way(Duration::ZERO);
        let layout = System::builder(0.5).service(service).edge(edge).build().unwrap().layout();
        assert!((layout.services[0].queueing.as_secs_f64() - 1.0).abs() < 1e-9, "{layout:?}");
        assert!((layout.edges[0].usual_time.as_secs_f64() - 4.6).abs() < 0.05, "{layout:?}");
    }

    #[test]
    fn the_paths_to_a_service_are_added() {
        let services = ["a", "b", "c"].into_iter().map(Service::new);
        let system = services.fold(System::builder(1.0), SystemBuilder::service);
        let twice = Edge::between("a", "c").policy("zero max-attempts=inf".parse().unwrap());
        let system = system.edge(Edge::between("b", "c").calls(5)).edge(twice).edge(Edge::from_users("a"));
        let layout = system.edge(Edge::between("a", "b").calls(2)).build().unwrap().layout();
        assert!((layout.services[2].load - 11.0).abs() < 1e-9, "{layout:?}");
        assert!(layout.services[2].worst_load.is_infinite() && layout.services[1].worst_load.is_finite());
        assert_eq!(layout.services[2].depth, 3);
    }
}
