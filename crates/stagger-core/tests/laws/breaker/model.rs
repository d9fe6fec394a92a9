//! Compares the breaker with a model that has explicit states, keeps every result, and uses no atomics.

use core::time::Duration;
use std::collections::VecDeque;

use proptest::prelude::*;
use stagger_core::breaker::{BreakerState, CircuitBreaker, CircuitBreakerBuilder, Window};
use stagger_core::guard::{Answer, End, Permit, ServerHealth};
use stagger_core::{FailureKind, Guard, Instant, Jitter, Outcome, Policy, Ratio, Seed};

use crate::laws::support::{Start, at, cases, ms};

#[derive(Clone, Copy, Debug)]
struct Settings {
    consecutive: Option<u64>,
    failure_percent: Option<u32>,
    slow: Option<(u64, u32)>,
    window: Window,
    min_calls: u32,
    probes: usize,
    healthy: usize,
    probe_wait: u64,
    stable_after: Option<u64>,
    seed: u64,
}

impl Settings {
    fn open(&self) -> Policy {
        let policy = Policy::exponential(ms(1_000), ms(5_000)).jitter(Jitter::Equal);
        match self.stable_after {
            Some(length) => policy.stable_after(ms(length)),
            None => policy,
        }
        .build()
        .unwrap()
    }

    fn builder(&self) -> CircuitBreakerBuilder {
        let mut builder = CircuitBreaker::builder(Seed::new(self.seed))
            .open(self.open())
            .probes(self.probes as u32)
            .healthy_probes(self.healthy as u32)
            .probe_wait(ms(self.probe_wait));
        if let Some(n) = self.consecutive {
            builder = builder.consecutive(n as u32);
        }
        if let Some(percent) = self.failure_percent {
            builder = builder.failure_ratio(Ratio::percent(percent));
        }
        if let Some((after, percent)) = self.slow {
            builder = builder.slow_ratio(ms(after), Ratio::percent(percent));
        }
        if self.failure_percent.is_some() || self.slow.is_some() {
            builder = builder.window(self.window).min_calls(self.min_calls);
        }
        builder
    }
}

/// All times are in nanoseconds.
#[derive(Debug)]
enum State {
    Closed { since: Option<u64>, streak: u64, results: VecDeque<(u64, bool, bool)> },
    Open { until: u64 },
    HalfOpen { in_flight: Vec<u64>, healthy: usize, ailing: usize, last_probe: u64 },
    ForcedOpen,
    ForcedClosed,
}

#[derive(Debug)]
struct Model {
    settings: Settings,
    state: State,
    /// Number of state transitions; a permit belongs to one epoch.
    epoch: u64,
    number: u32,
    episode: u64,
    open_for: u64,
    last: u64,
}

/// The model's data of a permit.
#[derive(Clone, Copy, Debug)]
struct ModelPermit {
    id: u64,
    epoch: Option<u64>,
    start: u64,
}

impl Model {
    fn new(settings: Settings) -> Self {
        let state = State::Closed { since: None, streak: 0, results: VecDeque::new() };
        Self { settings, state, epoch: 0, number: 0, episode: 0, open_for: 0, last: 0 }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.epoch += 1;
    }

    fn length(&self, number: u32) -> u64 {
        let seed = Seed::new(self.settings.seed).for_call(self.episode);
        self.settings.open().delay(number, seed).unwrap().as_nanos() as u64
    }

    fn trip(&mut self, at: u64) {
        if let State::Closed { since: Some(since), .. } = self.state {
            let stable = self.settings.stable_after.map_or(self.open_for, |length| length * 1_000_000);
            if self.number > 0 && at - since >= stable {
                (self.number, self.episode) = (0, self.episode + 1);
            }
        }
        self.number += 1;
        self.open_for = self.length(self.number);
        self.enter(State::Open { until: at + self.open_for });
    }

    fn probe_wait(&self) -> u64 {
        self.settings.probe_wait * 1_000_000
    }

    fn permit(&mut self, epoch: Option<u64>, start: u64) -> ModelPermit {
        self.last += 1;
        if let State::HalfOpen { in_flight, last_probe, .. } = &mut self.state {
            in_flight.push(self.last);
            *last_probe = start;
        }
        ModelPermit { id: self.last, epoch, start }
    }

    fn admit(&mut self, now: u64) -> Result<ModelPermit, u64> {
        let wait = self.probe_wait();
        if let State::HalfOpen { in_flight, healthy, ailing, last_probe } = &self.state {
            if in_flight.len() + healthy + ailing == self.settings.probes && now >= last_probe + wait {
                let due = last_probe + wait;
                self.trip(due);
            }
        }
        match self.state {
            State::Open { until } if now >= until => {
                self.enter(State::HalfOpen { in_flight: vec![], healthy: 0, ailing: 0, last_probe: now });
            }
            _ => {}
        }
        match self.retry_in(now) {
            0 if matches!(self.state, State::ForcedClosed) => Ok(self.permit(None, now)),
            0 => Ok(self.permit(Some(self.epoch), now)),
            left => Err(left),
        }
    }

    fn retry_in(&self, now: u64) -> u64 {
        match &self.state {
            State::Closed { .. } | State::ForcedClosed => 0,
            State::ForcedOpen => 1_000_000_000,
            State::Open { until } => until.saturating_sub(now),
            State::HalfOpen { in_flight, healthy, ailing, last_probe } => {
                let due = last_probe + self.probe_wait();
                if in_flight.len() + healthy + ailing < self.settings.probes {
                    0
                } else if now < due {
                    (now - last_probe).max(1_000_000).min(due - now)
                } else {
                    (due + self.length(self.number + 1)).saturating_sub(now)
                }
            }
        }
    }

    fn record(&mut self, permit: ModelPermit, outcome: Outcome, now: u64) {
        if permit.epoch != Some(self.epoch) {
            return;
        }
        let settings = self.settings;
        let slow = settings.slow.is_some_and(|(after, _)| now - permit.start > after * 1_000_000);
        let health = outcome.verdict();
        match &mut self.state {
            State::Closed { streak, results, .. } => {
                let failed = match health {
                    ServerHealth::Ailing => true,
                    ServerHealth::Healthy => false,
                    ServerHealth::Unknown => return,
                };
                *streak = if failed { *streak + 1 } else { 0 };
                results.push_back((now, failed, slow));
                if settings.consecutive.is_some_and(|max| *streak >= max) || self.ratio_trips(now) {
                    self.trip(now);
                }
            }
            State::HalfOpen { in_flight, healthy, ailing, .. } => {
                in_flight.retain(|&id| id != permit.id);
                match health {
                    ServerHealth::Unknown => {}
                    ServerHealth::Healthy if !slow => *healthy += 1,
                    _ => *ailing += 1,
                }
                if *healthy == settings.healthy {
                    self.enter(State::Closed { since: Some(now), streak: 0, results: VecDeque::new() });
                } else if *ailing > settings.probes - settings.healthy {
                    self.trip(now);
                }
            }
            _ => {}
        }
    }

    /// Returns the calls, failures and slow calls in the window.
    fn seen(&self, now: u64) -> [u64; 3] {
        let State::Closed { results, .. } = &self.state else { return [0; 3] };
        let count = |results: &mut dyn Iterator<Item = &(u64, bool, bool)>| {
            results.fold([0; 3], |[calls, failures, slow], (_, failed, was_slow)| {
                [calls + 1, failures + u64::from(*failed), slow + u64::from(*was_slow)]
            })
        };
        match self.settings.window {
            Window::Calls(n) => count(&mut results.iter().rev().take(n as usize)),
            Window::Time(length) => {
                let bucket = length.as_nanos() as u64 / 10;
                count(&mut results.iter().filter(|(at, ..)| at / bucket + 10 > now / bucket))
            }
            _ => unreachable!("no other kind of window exists"),
        }
    }

    fn ratio_trips(&self, now: u64) -> bool {
        let [calls, failures, slow] = self.seen(now);
        let reaches = |part: u64, percent: u32| part * 100 >= calls * u64::from(percent);
        calls >= u64::from(self.settings.min_calls)
            && (self.settings.failure_percent.is_some_and(|percent| reaches(failures, percent))
                || self.settings.slow.is_some_and(|(_, percent)| reaches(slow, percent)))
    }

    fn name(&self) -> BreakerState {
        match self.state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::HalfOpen { .. } => BreakerState::HalfOpen,
            State::ForcedOpen => BreakerState::ForcedOpen,
            State::ForcedClosed => BreakerState::ForcedClosed,
        }
    }

    fn command(&mut self, state: State) {
        (self.number, self.episode) = (0, self.episode + 1);
        self.enter(state);
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Admit,
    /// Records the outcome of the outstanding permit with this index.
    Record(usize, Outcome),
    Advance(u64),
    ForceOpen,
    ForceClosed,
    Reset,
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Success),
        5 => Just(Outcome::TRANSIENT),
        1 => Just(Outcome::throttled(None)),
        1 => Just(Outcome::Permanent),
        1 => Just(Outcome::Cancelled),
        1 => Just(Outcome::NotProcessed),
        1 => Just(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }),
    ];
    prop_oneof![
        40 => Just(Event::Admit),
        40 => (0_usize..8, outcome).prop_map(|(which, outcome)| Event::Record(which, outcome)),
        10 => (0_u64..400).prop_map(Event::Advance),
        3 => (0_u64..8_000).prop_map(Event::Advance),
        1 => prop_oneof![2 => Just(Event::Reset), 1 => Just(Event::ForceOpen), 1 => Just(Event::ForceClosed)],
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let window = prop_oneof![
        (1_u32..40).prop_map(Window::Calls),
        (100_u64..3_000).prop_map(|length| Window::Time(Duration::from_millis(length))),
    ];
    let rules = (
        prop::option::of(1_u64..6),
        prop::option::of(1_u32..=100),
        prop::option::weighted(0.3, (1_u64..500, 1_u32..=100)),
    );
    let rest = (1_usize..5, 0.0..1.0, 1_u64..4_000, prop::option::of(0_u64..5_000), any::<u64>());
    (rules, window, 0.0..1.0, rest).prop_map(|((consecutive, failure_percent, slow), window, min_share, rest)| {
        let (probes, healthy, probe_wait, stable_after, seed) = rest;
        let max = match window {
            Window::Calls(calls) => calls,
            _ => 20,
        };
        let share = |share: f64, of: f64| 1 + (share * of) as u32;
        Settings {
            consecutive: if failure_percent.is_none() && slow.is_none() {
                consecutive.or(Some(2))
            } else {
                consecutive
            },
            failure_percent,
            slow,
            window,
            min_calls: share(min_share, f64::from(max)).min(max),
            probes,
            healthy: share(healthy, probes as f64).min(probes as u32) as usize,
            probe_wait,
            stable_after,
            seed,
        }
    })
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn it_matches_the_model(settings in settings(), events in prop::collection::vec(event(), 1..300)) {
        let breaker = settings.builder().build().unwrap();
        let mut model = Model::new(settings);
        let mut now: Instant = at(ms(1_000_000));
        let mut outstanding: Vec<(Permit, ModelPermit)> = Vec::new();
        for event in events {
            let nanos = now.as_nanos();
            match event {
                Event::Admit => match (breaker.first(&now), model.admit(nanos)) {
                    (Answer::Go(permit), Ok(expected)) => outstanding.push((permit, expected)),
                    (Answer::No { retry_in }, Err(left)) => prop_assert_eq!(retry_in, Duration::from_nanos(left)),
                    (got, want) => prop_assert!(false, "got {:?}, expected {:?}: {:?}", got, want, model),
                },
                Event::Record(which, outcome) if !outstanding.is_empty() => {
                    let (permit, expected) = outstanding.swap_remove(which % outstanding.len());
                    breaker.settle(permit, End::Made(&outcome), &now);
                    model.record(expected, outcome, nanos);
                }
                Event::Record(..) => {}
                Event::Advance(length) => now = now.saturating_add(ms(length)),
                Event::Reset => {
                    breaker.reset(&now);
                    model.command(State::Closed { since: Some(nanos), streak: 0, results: VecDeque::new() });
                }
                Event::ForceOpen => {
                    breaker.force_open(&now);
                    model.command(State::ForcedOpen);
                }
                Event::ForceClosed => {
                    breaker.force_closed(&now);
                    model.command(State::ForcedClosed);
                }
            }
            let nanos = now.as_nanos();
            prop_assert_eq!(breaker.state(), model.name(), "{:?}", model);
            prop_assert_eq!(breaker.retry_in(&now), Duration::from_nanos(model.retry_in(nanos)), "{:?}", model);
            prop_assert_eq!(breaker.transitions(), model.epoch);
            let snapshot = breaker.snapshot(&now);
            if model.name() == BreakerState::Closed && (settings.failure_percent.is_some() || settings.slow.is_some()) {
                prop_assert_eq!([snapshot.calls, snapshot.failures, snapshot.slow], model.seen(nanos), "{:?}", model);
            }
            if let State::HalfOpen { in_flight, healthy, ailing, .. } = &model.state {
                prop_assert_eq!(snapshot.probes, in_flight.len() as u64);
                prop_assert_eq!((snapshot.calls, snapshot.failures), ((healthy + ailing) as u64, *ailing as u64));
            }
            // With no other calls, `would_refuse` predicts the decision at that time.
            let left = breaker.retry_in(&now);
            if matches!(model.state, State::Open { .. }) && !left.is_zero() {
                prop_assert!(breaker.would_refuse(left - Duration::from_nanos(1), None, &now));
                prop_assert!(!breaker.would_refuse(left, None, &now));
            }
        }
    }
}
