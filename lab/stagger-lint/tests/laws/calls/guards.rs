use core::time::Duration;

use stagger::breaker::{CircuitBreaker, Window as BreakerWindow};
use stagger::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger::{Guard, Policy, Ratio, Retrier, Seed};
use stagger_sim::outage::ProcessGuards;

use super::super::draws::Draws;

/// The guards of a client process, which the simulator and a retrier are given alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuardSettings {
    budget: Option<BudgetSettings>,
    breaker: Option<BreakerSettings>,
}

#[derive(Clone, Copy, Debug)]
enum BudgetSettings {
    Tokens { capacity: u32, reward: Ratio, refill: Option<u32>, throttled_cost: u32 },
    Window { ratio: Ratio, min_per_second: u32, ttl: Duration },
    Lifetime { ratio: Ratio, bootstrap: u32 },
    Throttle { max_tokens: u32, token_ratio: Ratio },
    SuccessRate { ratio: Ratio, last: u32 },
    Concurrent { ratio: Ratio, floor: u32 },
    Adaptive { multiplier: Ratio, window: Duration },
}

#[derive(Clone, Copy, Debug)]
struct BreakerSettings {
    consecutive: Option<u32>,
    failure_ratio: Ratio,
    window: BreakerWindow,
    slow_after: Option<Duration>,
    open: Duration,
    probes: u32,
}

impl GuardSettings {
    pub(crate) fn draw(draws: &mut Draws) -> Self {
        Self {
            budget: draws.is(0.6).then(|| BudgetSettings::draw(draws)),
            breaker: draws.is(0.3).then(|| BreakerSettings::draw(draws)),
        }
    }

    /// Returns what the guards are: a word for the count of the cases.
    pub(crate) const fn kind(&self) -> &'static str {
        match (self.budget, self.breaker) {
            (None, None) => "without guards",
            (Some(_), None) => "with a budget",
            (None, Some(_)) => "with a breaker",
            (Some(_), Some(_)) => "with both guards",
        }
    }

    /// Returns the guards of a simulated process.
    pub(crate) fn process(self, seed: Seed) -> ProcessGuards {
        let guards = match self.budget {
            Some(budget) => budget.guard(ProcessGuards::none(), seed.for_call(0)),
            None => ProcessGuards::none(),
        };
        match self.breaker.and_then(|breaker| breaker.build(seed.for_call(1))) {
            Some(breaker) => guards.breaker(breaker),
            None => guards,
        }
    }

    /// Adds the guards of a process to its retrier.
    pub(crate) fn retrier(self, retrier: Retrier, seed: Seed) -> Retrier {
        let retrier = match self.budget {
            Some(budget) => budget.guard(retrier, seed.for_call(0)),
            None => retrier,
        };
        match self.breaker.and_then(|breaker| breaker.build(seed.for_call(1))) {
            Some(breaker) => retrier.breaker(breaker),
            None => retrier,
        }
    }
}

/// What takes a budget.
trait Guarded: Sized {
    fn with(self, budget: impl Guard + 'static) -> Self;
}

impl Guarded for ProcessGuards {
    fn with(self, budget: impl Guard + 'static) -> Self {
        self.budget(budget)
    }
}

impl Guarded for Retrier {
    fn with(self, budget: impl Guard + 'static) -> Self {
        self.budget(budget)
    }
}

impl BudgetSettings {
    fn draw(draws: &mut Draws) -> Self {
        let percent = |draws: &mut Draws, least: f64, most: f64| Ratio::percent(draws.between(least, most) as u32);
        let count = |draws: &mut Draws, most: f64| draws.between(1.0, most) as u32;
        let seconds = |draws: &mut Draws| draws.duration(1.0, 20.0);
        match (draws.share() * 7.0) as u32 {
            0 => Self::Tokens {
                capacity: count(draws, 500.0),
                reward: percent(draws, 1.0, 100.0),
                refill: draws.is(0.3).then(|| count(draws, 20.0)),
                throttled_cost: count(draws, 30.0),
            },
            1 => Self::Window {
                ratio: percent(draws, 1.0, 50.0),
                min_per_second: count(draws, 20.0) - 1,
                ttl: Duration::from_secs(count(draws, 20.0).into()),
            },
            2 => Self::Lifetime { ratio: percent(draws, 1.0, 60.0), bootstrap: count(draws, 100.0) },
            3 => Self::Throttle { max_tokens: 2 + count(draws, 100.0), token_ratio: percent(draws, 1.0, 100.0) },
            4 => Self::SuccessRate { ratio: percent(draws, 10.0, 95.0), last: 2 + count(draws, 100.0) },
            5 => Self::Concurrent { ratio: percent(draws, 5.0, 100.0), floor: count(draws, 20.0) },
            _ => Self::Adaptive { multiplier: percent(draws, 110.0, 300.0), window: seconds(draws) },
        }
    }

    /// Adds the budget; settings that are not valid add none.
    fn guard<G: Guarded>(self, guarded: G, seed: Seed) -> G {
        fn add<G: Guarded, E>(guarded: G, budget: Result<impl Guard + 'static, E>) -> G {
            match budget {
                Ok(budget) => guarded.with(budget),
                Err(_) => guarded,
            }
        }
        match self {
            Self::Tokens { capacity, reward, refill, throttled_cost } => {
                let builder = Tokens::builder().capacity(capacity).fractional_reward(reward);
                let builder = builder.throttled_cost(throttled_cost);
                let refilled = refill.map_or(builder, |tokens| builder.refill(tokens, Duration::from_secs(1)));
                add(guarded, refilled.build())
            }
            Self::Window { ratio, min_per_second, ttl } => {
                add(guarded, Window::builder().ratio(ratio).min_per_second(min_per_second).ttl(ttl).build())
            }
            Self::Lifetime { ratio, bootstrap } => add(guarded, Lifetime::with(ratio, bootstrap)),
            Self::Throttle { max_tokens, token_ratio } => add(guarded, Throttle::new(max_tokens, token_ratio)),
            Self::SuccessRate { ratio, last } => add(guarded, SuccessRate::with(ratio, last)),
            Self::Concurrent { ratio, floor } => add(guarded, Concurrent::with(ratio, floor)),
            Self::Adaptive { multiplier, window } => {
                add(guarded, Adaptive::builder(seed).multiplier(multiplier).window(window).build())
            }
        }
    }
}

impl BreakerSettings {
    fn draw(draws: &mut Draws) -> Self {
        let window = match draws.is(0.5) {
            true => BreakerWindow::Calls(draws.between(20.0, 200.0) as u32),
            false => BreakerWindow::Time(Duration::from_secs(draws.between(1.0, 20.0) as u64)),
        };
        Self {
            consecutive: draws.is(0.5).then(|| draws.between(2.0, 30.0) as u32),
            failure_ratio: Ratio::percent(draws.between(5.0, 90.0) as u32),
            window,
            slow_after: draws.is(0.3).then(|| draws.duration(0.05, 1.0)),
            open: draws.duration(0.2, 10.0),
            probes: draws.between(1.0, 8.0) as u32,
        }
    }

    /// Returns the breaker; `None` if the settings are not valid.
    fn build(self, seed: Seed) -> Option<CircuitBreaker> {
        let open = Policy::exponential(self.open, self.open * 8).jitter(stagger::Jitter::Equal).build().ok()?;
        let builder = CircuitBreaker::builder(seed).failure_ratio(self.failure_ratio).window(self.window);
        let builder = self.consecutive.map_or(builder, |calls| builder.consecutive(calls));
        let builder = self.slow_after.map_or(builder, |after| builder.slow_ratio(after, Ratio::percent(50)));
        builder.open(open).probes(self.probes).build().ok()
    }
}
