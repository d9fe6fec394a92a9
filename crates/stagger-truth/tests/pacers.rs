//! The acceptance cases of the pacer, twenty seeds each, and what the comparison with other controllers shows.

use stagger::guard::{Limiter, LimiterPermit, Pacer, PacerState, Turn};
use stagger::{Instant, Outcome};
use stagger_truth::pacing::Nanos;
use stagger_truth::pacing::comparison::{CONTESTANTS, Contestant, shipped};
use stagger_truth::pacing::report::Figures;
use stagger_truth::pacing::rivals::{Gradient, Rival};
use stagger_truth::pacing::run::{Control, run};
use stagger_truth::pacing::scenarios::{HELD_OUT, KNOWN, RAISED, STEADY, TRIED, UNLIMITED};
use stagger_truth::pacing::server::{Answer, SECOND};

const SEEDS: u64 = 20;

fn contestant(name: &str) -> &'static Contestant {
    CONTESTANTS.iter().find(|contestant| contestant.name == name).expect("it is in the table")
}

#[test]
fn fifty_tasks_use_a_limit_of_3500_per_second_and_are_hardly_refused() {
    let scenario = STEADY.between(10 * SECOND, 30 * SECOND);
    for seed in 0..SEEDS {
        let figures = Figures::of(&scenario, &run(&scenario, shipped, seed));
        assert!(figures.goodput >= 0.95 && figures.refused <= 0.02, "{figures:?}, seed {seed}");
    }
}

#[test]
fn a_raised_limit_is_used_within_thirty_seconds() {
    let scenario = RAISED.between(10 * SECOND, 62 * SECOND);
    for seed in 0..SEEDS {
        let figures = Figures::of(&scenario, &run(&scenario, shipped, seed));
        assert!(figures.recovery.is_some_and(|seconds| seconds <= 30.0), "{figures:?}, seed {seed}");
    }
}

/// The server has errors and timeouts, which are not refusals.
#[test]
fn a_server_without_a_limit_is_never_paced() {
    for seed in 0..SEEDS {
        let scenario = UNLIMITED.between(0, 15 * SECOND);
        let log = run(&scenario, shipped, seed);
        assert_eq!((log.held, log.longest_hold), (0, 0), "seed {seed}");
    }
}

/// Netflix concurrency-limits #134: while the latency grows, the long mean follows it, so the gradient does not outweigh the
/// term for the queue, and the limit of requests in flight grows without end.
#[test]
fn the_rate_does_not_grow_without_end_and_gradient2_does() {
    let mut gradient = Gradient::new(f64::INFINITY);
    let latency = |second: Nanos| 10_000_000 * (100 + second * 5) / 100;
    let mut grown = Vec::new();
    for second in 0..2_000 {
        for n in 0..20 {
            let at = second * SECOND + n * 1_000_000;
            let in_flight = gradient.limit() as usize;
            gradient.answered(at.saturating_sub(latency(second)), at, Answer::Success, in_flight);
        }
        grown.push(gradient.limit());
    }
    assert!(grown[1_999] > 500.0, "{}", grown[1_999]);

    // Ten minutes of a demand without end: the pacer's rate stays at what is admitted.
    let scenario = TRIED.iter().find(|scenario| scenario.name.starts_with("300/s, 500 tasks")).expect("it is there");
    let scenario = scenario.between(10 * SECOND, 600 * SECOND);
    let log = run(&scenario, shipped, 1);
    let most = log.seconds[10..600].iter().map(|second| second.requests).max();
    assert!(most.is_some_and(|most| most <= 450), "{most:?} requests in a second, of 300 that are admitted");
}

#[test]
fn the_floor_holds_when_everything_is_refused() {
    let pacer = Pacer::new();
    let (mut asked, mut permit) = (0, LimiterPermit::NONE);
    let mut at = 0;
    while at < 600 * SECOND {
        let now = Instant::from_nanos(at);
        match pacer.admit(permit, None, &now) {
            Turn::Now(admitted) => {
                pacer.record(admitted, &Outcome::throttled(None), &now);
                asked += u32::from(at > 60 * SECOND);
                permit = LimiterPermit::NONE;
            }
            Turn::Wait { after, permit: place } => {
                permit = place;
                at += after.as_nanos() as Nanos;
            }
            turn @ Turn::Rejected { .. } => panic!("{turn:?}"),
        }
        at += 1_000_000;
    }
    assert_eq!(pacer.snapshot().state, PacerState::Exhausted);
    assert!((530..=541).contains(&asked), "{asked} in 540 s");
}

#[test]
fn a_controller_without_an_end_of_its_line_serves_every_task() {
    for contestant in CONTESTANTS {
        let log = contestant.run(&STEADY.between(SECOND, 3 * SECOND), 1);
        assert!(log.processes.iter().all(|&served| served > 0), "{}", contestant.name);
    }
    assert!(matches!(shipped(), Control::Shipped(_)));
}

/// In each scenario that the pacer was never changed after: of the controllers that are refused no more than 2 points more
/// often, none has 5 points more goodput.
#[test]
fn no_controller_beats_the_pacer_in_goodput_at_its_share_of_refusals() {
    let pacer = contestant("pacer");
    for scenario in HELD_OUT {
        let ours = pacer.figures(scenario, 1);
        for rival in CONTESTANTS {
            let theirs = rival.figures(scenario, 1);
            let is_better = theirs.refused <= ours.refused + 0.02 && theirs.goodput >= ours.goodput + 0.05;
            assert!(!is_better, "{} in {}: {theirs:?}, and the pacer {ours:?}", rival.name, scenario.name);
        }
    }
}

/// Limits of the pacer that the guide states.
#[test]
fn what_it_does_worse_is_as_stated() {
    let pacer = contestant("pacer");
    let figures = |name: &str| {
        let scenario = TRIED.iter().find(|scenario| scenario.name == name).expect("it is there");
        pacer.figures(scenario, 2)
    };
    let concurrent = figures("20 at a time, 200 ms, 100 tasks");
    assert!((0.75..0.92).contains(&concurrent.goodput), "{concurrent:?}");
    let slow = figures("50/s, 20 processes of 2 tasks");
    assert!(slow.refused > 0.05 && slow.fairness.is_some_and(|fairness| fairness < 0.8), "{slow:?}");
    let turns = figures("900/s and 300/s by turns of 15 s");
    assert!((0.75..0.92).contains(&turns.goodput), "{turns:?}");
}

/// The figures of the pacer in the guide, within what the seeds differ by.
#[test]
fn the_guide_has_the_figures_of_the_pacer() {
    let page = include_str!("../../../docs/guide/pacing.md");
    let pacer = contestant("pacer");
    for scenario in [KNOWN, TRIED, HELD_OUT].concat() {
        let row = page.lines().find_map(|line| line.strip_prefix(&format!("| {} | ", scenario.name)));
        let cell = row.and_then(|row| row.split([' ', ',']).next().zip(row.split([' ', ',']).nth(2)));
        let Some((goodput, refused)) = cell else { panic!("no row for {}", scenario.name) };
        let (goodput, refused): (f64, f64) = (goodput.parse().unwrap(), refused.parse().unwrap());
        let figures = pacer.figures(&scenario, 1);
        let differs =
            (figures.goodput * 100.0 - goodput).abs() > 3.0 || (figures.refused * 100.0 - refused).abs() > 2.0;
        assert!(!differs, "{}: {figures:?}, and the guide has {goodput} / {refused}", scenario.name);
    }
}
