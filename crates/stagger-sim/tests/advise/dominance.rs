//! Compares the advice with random policies that answer the same question, simulated with seeds of its own.

use core::time::Duration;

use stagger_core::{Jitter, Policy, Ratio, Seed};
use stagger_sim::advise::{Advice, Answers, advise};
use stagger_sim::lint::{DeploymentContext, Purpose, Rate};
use stagger_sim::reconnect::{FirstAttempt, ReconnectScenario};
use stagger_sim::{Progress, Sweep};

/// Number of random policies for each question.
const RIVALS: u64 = 500;

/// Numbered random draws.
struct Draws(Seed, u64);

impl Draws {
    fn share(&mut self) -> f64 {
        self.1 += 1;
        (self.0.draw(self.1) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[((self.share() * all.len() as f64) as usize).min(all.len() - 1)]
    }
}

fn length(seconds: f64) -> Duration {
    Duration::from_millis((seconds * 1_000.0).round() as u64)
}

/// A question to `advise`.
#[derive(Debug)]
struct Asked {
    purpose: Option<Purpose>,
    clients: u64,
    rate: f64,
    outage: Option<u64>,
    deadline: Option<u64>,
}

/// Peak, seconds from the end of the outage until 99 % are back, attempts, share that is lost: the worst of all
/// outages, and the mean number of attempts.
type Figures = [f64; 4];

impl Asked {
    fn random(draws: &mut Draws) -> Self {
        let purposes = [
            None,
            Some(Purpose::Interactive),
            Some(Purpose::Serverless),
            Some(Purpose::Near),
            Some(Purpose::Far),
            Some(Purpose::Background),
            Some(Purpose::Reconnecting),
            Some(Purpose::Reconnecting),
        ];
        let purpose = draws.one_of(&purposes);
        let clients = draws.between(300.0, 1_500.0).round();
        let rate = (clients / draws.between(0.5, 40.0)).ceil();
        let outage = draws.one_of(&[None, Some(0), Some(0), Some(5), Some(20)]);
        // A background job or a connection has no deadline here.
        let is_call = !matches!(purpose, Some(Purpose::Background | Purpose::Reconnecting));
        let deadline = draws.one_of(&[None, None, Some(5), Some(30)]).filter(|_| is_call);
        Self { purpose, clients: clients as u64, rate, outage, deadline }
    }

    fn advice(&self) -> Advice {
        let mut fleet = DeploymentContext::default()
            .clients(self.clients.try_into().unwrap())
            .capacity(Rate::per_second(self.rate).unwrap());
        if let Some(purpose) = self.purpose {
            fleet = fleet.purpose(purpose);
        }
        if let Some(deadline) = self.deadline {
            fleet = fleet.deadline(Duration::from_secs(deadline));
        }
        let answers = Answers::from_context(fleet);
        let answers = self.outage.map_or(answers, |outage| answers.outage(Duration::from_secs(outage)));
        advise(&answers, Seed::new(1), &Progress::new()).unwrap()
    }

    /// Returns how many attempts a call may make, and the shortest base; `None` for connections and jobs.
    fn of_call(&self) -> Option<(u32, f64)> {
        match self.purpose {
            Some(Purpose::Interactive) => Some((3, 0.02)),
            Some(Purpose::Serverless) => Some((3, 0.05)),
            Some(Purpose::Near) => Some((4, 0.01)),
            Some(Purpose::Far) => Some((4, 0.1)),
            None => Some((4, 0.05)),
            _ => None,
        }
    }

    /// Draws a policy that answers the question: the same kind of limits as the advised one, and any base, cap,
    /// multiplier, jitter and spread.
    fn rival(&self, advised: &Policy, draws: &mut Draws) -> Option<Policy> {
        let accepts = self.clients as f64 / self.rate;
        let outage = self.outage.unwrap_or(600).min(60) as f64;
        let jitters = [
            Jitter::Full,
            Jitter::Equal,
            Jitter::Decorrelated,
            Jitter::Factor(Ratio::percent(20)),
            Jitter::Factor(Ratio::percent(50)),
        ];
        let (jitter, multiplier) = (draws.one_of(&jitters), draws.between(1.5, 10.0));
        let start = |base: f64, cap: f64| match jitter {
            Jitter::Decorrelated => Policy::decorrelated(length(base), length(cap)),
            jitter => Policy::exponential(length(base), length(cap)).multiplier(multiplier).jitter(jitter),
        };
        let Some((most, shortest)) = self.of_call() else {
            let base = draws.between(0.5, accepts.max(5.0));
            let cap = draws.between(base, (4.0 * accepts).max(60.0));
            let spread = draws.between(accepts, 3.0 * (accepts + outage));
            let builder = start(base, cap).spread(length(spread)).unlimited_attempts();
            return builder.stable_after(Duration::from_secs(10)).build().ok();
        };
        let patience = match self.purpose {
            Some(Purpose::Interactive | Purpose::Serverless | Purpose::Near) => 10,
            _ => 30,
        };
        let patience = self.deadline.unwrap_or(patience) as f64;
        let base = draws.between(shortest, (accepts + outage).min(patience).max(2.0 * shortest));
        let cap = draws.between(base, patience.max(1.01 * base));
        let attempts = draws.one_of(&[2, 3, 4]).min(most);
        let builder = start(base, cap).max_attempts(attempts);
        let policy = match advised.max_elapsed() {
            Some(limit) => builder.max_elapsed(limit),
            None => builder,
        };
        let policy = policy.build().ok()?;
        let (_, longest) = policy.elapsed_bounds(attempts - 1)?;
        (self.deadline.is_some() || longest.as_secs_f64() <= patience).then_some(policy)
    }

    fn figures(&self, outages: &[Duration], policies: &[Policy], seeds: &[Seed]) -> Vec<Vec<Figures>> {
        let first = match self.purpose {
            Some(Purpose::Reconnecting) => FirstAttempt::AfterDelay,
            _ => FirstAttempt::Immediate,
        };
        let scenario = |outage: &Duration| {
            let builder = ReconnectScenario::builder(self.clients).rate(self.rate).first_attempt(first);
            let builder = builder.backlog((self.rate / 2.0).ceil() as u32).down_for(*outage);
            (*outage, builder.horizon(Duration::from_secs(20_000)).build().unwrap())
        };
        let scenarios: Vec<_> = outages.iter().map(scenario).collect();
        let each = Sweep::new().run(policies, seeds, &Progress::new(), |policy, seed, _| {
            let mut worst = [0.0_f64; 4];
            for (outage, scenario) in &scenarios {
                let run = scenario.run(policy, seed);
                let recovery = run.t99.map_or(1e9, |time| time.saturating_sub(*outage).as_secs_f64());
                worst[0] = worst[0].max(run.peak_second() as f64);
                worst[1] = worst[1].max(recovery);
                worst[2] += run.attempts_per_client() / scenarios.len() as f64;
                worst[3] = worst[3].max(1.0 - run.connected as f64 / run.clients as f64);
            }
            Some(worst)
        });
        each.into_iter().map(|runs| runs.into_iter().flatten().collect()).collect()
    }

    /// Returns a random policy that is better in peak, T99, attempts and served clients, by more than three standard
    /// errors in each figure in which they differ at all.
    fn better_policy(&self, draws: &mut Draws) -> Option<String> {
        let advice = self.advice();
        let (advised, outages) = (*advice.policy().unwrap(), &advice.front().unwrap().outages);
        let rivals: Vec<Policy> = (0..RIVALS).filter_map(|_| self.rival(&advised, draws)).collect();
        assert!(rivals.len() > 100, "{self:?}: {} policies", rivals.len());
        let seeds = |numbers: core::ops::Range<u64>| numbers.map(Seed::new).collect::<Vec<_>>();
        let once = seeds(500..501);
        let ours = mean(&self.figures(outages, &[advised], &once)[0]);
        let quick = self.figures(outages, &rivals, &once);
        let is_near = |runs: &Vec<Figures>| (0..4).all(|at| runs[0][at] <= 1.02 * ours[at] + 1e-9);
        let near = rivals.iter().zip(quick).filter(|(_, runs)| is_near(runs));
        let near: Vec<Policy> = near.map(|(policy, _)| *policy).collect();
        let many = seeds(900..916);
        let ours = &self.figures(outages, &[advised], &many)[0];
        let theirs = self.figures(outages, &near, &many);
        let found = near.iter().zip(theirs).find(|(_, theirs)| dominates(theirs, ours));
        found.map(|(policy, theirs)| {
            format!("{self:?}: {policy} has {:?}, {advised} has {:?}", mean(&theirs), mean(ours))
        })
    }
}

fn dominates(theirs: &[Figures], ours: &[Figures]) -> bool {
    let gain = |at: usize| mean(ours)[at] - mean(theirs)[at];
    let error = |at: usize| ((variance(ours, at) + variance(theirs, at)) / ours.len() as f64).sqrt();
    let differing: Vec<usize> = (0..4).filter(|&at| gain(at).abs() > 1e-9).collect();
    !differing.is_empty() && differing.into_iter().all(|at| gain(at) > 3.0 * error(at))
}

fn mean(runs: &[Figures]) -> Figures {
    let mut mean = [0.0; 4];
    for run in runs {
        (0..4).for_each(|at| mean[at] += run[at] / runs.len() as f64);
    }
    mean
}

fn variance(runs: &[Figures], at: usize) -> f64 {
    let mean = mean(runs)[at];
    runs.iter().map(|run| (run[at] - mean).powi(2)).sum::<f64>() / (runs.len() as f64 - 1.0)
}

#[track_caller]
fn assert_none_is_dominated(numbers: core::ops::Range<u64>) {
    let better = numbers.filter_map(|number| {
        let mut draws = Draws(Seed::new(number), 0);
        Asked::random(&mut draws).better_policy(&mut draws)
    });
    let better: Vec<String> = better.collect();
    assert!(better.is_empty(), "{} questions: {better:#?}", better.len());
}

#[test]
fn no_random_policy_dominates_the_advice() {
    assert_none_is_dominated(0..4);
}

#[test]
#[ignore = "takes minutes: more questions than every run needs"]
fn no_random_policy_dominates_the_advice_in_many_questions() {
    assert_none_is_dominated(100..160);
}
