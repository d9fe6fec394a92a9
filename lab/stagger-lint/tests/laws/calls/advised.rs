use core::num::NonZeroU64;
use core::time::Duration;

use stagger::Seed;
use stagger_core::text::Rate;
use stagger_lint::advise::{Answers, Prediction, Transience, advise};
use stagger_lint::{DeploymentContext, Idempotency, Purpose};
use stagger_sim::Progress;

use super::super::draws::Draws;
use super::super::law::{Law, Verdict};
use super::comparison::{Difference, Measure, STANDARD_ERRORS};
use super::fleet::{Fleet, Kind};

/// What the advisor says about calls.
pub(crate) const ADVISED: Law = Law {
    name: "advised",
    statement: "the figures that `advise` prints for calls are those of tasks that call retry()",
    share: 3,
    case,
};

/// The figures of a [`Prediction`], the last one in seconds.
const FIGURES: [Measure; 4] = [
    Measure { name: "peak of a second", tolerance: [0.5, 0.005] },
    Measure { name: "attempts per client", tolerance: [0.0, 0.005] },
    Measure { name: "share served", tolerance: [0.0, 0.002] },
    Measure { name: "99 % served after the outage", tolerance: [0.002, 0.002] },
];

/// The number of times that a difference must be found, each time in another advice and other runs.
const ROUNDS: u32 = 3;
/// The number of simulations and of runs of tasks that tell how much a figure varies.
const RUNS: [u64; 2] = [16, 8];

/// Below this share of served calls, the time until 99 % are served is not reached in every run.
const NEARLY_ALL: f64 = 0.995;

fn case(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    let clients = draws.between(100.0, 2_000.0) as u64;
    let capacity = clients as f64 / draws.between(0.3, 15.0);
    let outage = if draws.is(0.4) { Duration::ZERO } else { draws.duration(0.5, 10.0) };
    let purpose = draws.one_of(&[Purpose::Interactive, Purpose::Serverless, Purpose::Background, Purpose::Far]);
    let deadline = draws.is(0.5).then(|| draws.duration(2.0, 60.0));
    let (Some(purpose), Some(count), Some(rate)) = (purpose, NonZeroU64::new(clients), Rate::per_second(capacity))
    else {
        return Verdict::Silent("not a question");
    };
    let context = DeploymentContext::default().purpose(purpose).clients(count).capacity(rate);
    let context = deadline.map_or(context, |deadline| context.deadline(deadline)).idempotency(Idempotency::Yes);
    let answers = Answers::from_context(context).outage(outage).transience(Transience::Transient);

    let mut suspects: Vec<usize> = (0..FIGURES.len()).collect();
    let (mut report, mut word) = (String::new(), "all served");
    for _ in 0..ROUNDS {
        let advice = advise(&answers, draws.seed(), &Progress::new());
        let Some(front) = advice.ok().and_then(|advice| advice.front().cloned()) else {
            return Verdict::Silent("nothing to simulate");
        };
        let best = front.best();
        let Some((_, predicted)) = best.by_outage.iter().find(|(judged, _)| *judged == outage).copied() else {
            return Verdict::Broken(format!("not judged on {outage:?}"));
        };
        // The fleet of the documentation: the defaults of the scenario, with a backlog of half a second.
        let fleet = Fleet {
            kind: Kind::Calls,
            policy: best.policy,
            clients,
            rate: capacity,
            backlog: (0.5 * capacity).ceil().max(1.0) as u32,
            one_way: [10_000, 40_000],
            disconnect_window: 300_000,
            up_at: outage.as_micros() as u64,
            horizon: 3_600_000_000 + outage.as_micros() as u64,
            hint: None,
            crash_loop: None,
        };
        let Some(scenario) = fleet.scenario() else {
            return Verdict::Broken(format!("not a scenario: {fleet}"));
        };
        let [simulations, real_runs] = RUNS;
        let simulated: Vec<_> = (0..simulations)
            .map(|_| of_prediction(&fleet.figures(&scenario.run(&fleet.policy, draws.seed())), outage))
            .collect();
        let real: Vec<_> = (0..real_runs).map(|_| of_prediction(&fleet.run_tasks(draws.seed()), outage)).collect();
        let said = of_advice(&predicted);
        let is_nearly_all = real.iter().all(|run| run[2] > NEARLY_ALL) && predicted.recovery.is_some();
        if predicted.recovered_ratio < NEARLY_ALL {
            word = "not all served";
        }
        report.clear();
        suspects.retain(|&figure| {
            let [one, other] = [&simulated, &real].map(|runs| runs.iter().map(|run| run[figure]).collect::<Vec<_>>());
            let found = Difference::of_mean(said[figure], front.runs, &one, &other);
            let is_found = found.exceeds(STANDARD_ERRORS, &FIGURES[figure]) && (figure != 3 || is_nearly_all);
            if is_found {
                report.push_str(&format!("; {}: {found}", FIGURES[figure].name));
            }
            is_found
        });
        if suspects.is_empty() {
            return Verdict::Held(word);
        }
        report = format!("{fleet}{report}");
    }
    Verdict::Broken(report)
}

/// Returns the figures that a prediction has too, of the figures of a fleet.
fn of_prediction(figures: &[f64; 9], outage: Duration) -> [f64; 4] {
    let [peak, _, attempts, connected, _, _, t99, _, _] = *figures;
    [peak, attempts, connected, (t99 - outage.as_secs_f64()).max(0.0)]
}

fn of_advice(prediction: &Prediction) -> [f64; 4] {
    let recovery = prediction.recovery.map_or(f64::NAN, |recovery| recovery.as_secs_f64());
    [prediction.peak_second, prediction.attempts_per_client, prediction.recovered_ratio, recovery]
}
