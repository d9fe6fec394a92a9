//! No policy dominates one of our own profiles on its grid.

use core::time::Duration;

use stagger::profile::{self, Profile};
use stagger::{Jitter, Policy, Ratio, Seed};

use super::draws::Draws;
use super::grid::{Figures, Grid, Kind};
use super::law::{Law, Verdict};

/// No profile of the registry, no random policy and no neighbor is better than a profile of ours.
pub(crate) const PROFILES: Law = Law {
    name: "profiles",
    statement: "no profile of the registry and no policy of the search family dominates a profile of ours on its grid",
    share: 57,
    case,
};

/// Our profiles with the grids on which they are chosen.
pub(crate) const OURS: [(&Profile, Kind); 5] = [
    (&profile::WEB_SOCKET, Kind::Connections),
    (&profile::BACKGROUND_JOB, Kind::Jobs),
    (&profile::DEFAULT, Kind::Calls),
    (&profile::SERVERLESS, Kind::Calls),
    (&profile::INTERACTIVE, Kind::Calls),
];

/// The jitters of the search family. Narrower ones do not separate clients that something else has put in step.
const JITTERS: [Jitter; 4] = [Jitter::Full, Jitter::Equal, Jitter::Factor(Ratio::percent(50)), Jitter::Decorrelated];

/// The number of draws until one is a valid policy.
const DRAWS: u32 = 100;

/// The number of runs of each policy that is not clearly worse.
const RUNS: u64 = 5;

/// A figure that differs by less counts as equal; one has to be smaller by so much to count as better. A profile has
/// round numbers, which cost a little.
const EQUAL: f64 = 0.02;
const BETTER: f64 = 0.05;

/// The same for the share that is lost, which is compared by difference.
const EQUAL_LOST: f64 = 0.005;
const BETTER_LOST: f64 = 0.01;

/// A figure that is larger by so much in a single run is worse.
const CLEARLY: f64 = 0.3;

fn case(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    let Some((ours, kind)) = draws.one_of(&OURS) else { return Verdict::Silent("there are no profiles") };
    let Some((word, rival)) = (0..DRAWS).find_map(|_| rival(&ours.policy(), kind, &mut draws)) else {
        return Verdict::Silent("no draw is a valid policy");
    };
    let grid = match Grid::new(kind) {
        Ok(grid) => grid,
        Err(error) => return Verdict::Broken(format!("the grid is not valid: {error}")),
    };
    match dominates(&grid, &rival, &ours.policy(), draws.seed()) {
        Some(how) => Verdict::Broken(format!("{word} dominates {}: {rival}: {how}", ours.name())),
        None => Verdict::Held(word),
    }
}

/// Draws a policy to compare with a profile of ours.
fn rival(ours: &Policy, kind: Kind, draws: &mut Draws) -> Option<(&'static str, Policy)> {
    let which = draws.share();
    if which < 0.2 {
        let all: Vec<&Profile> = Profile::all().collect();
        return Some(("a profile of the registry", draws.one_of(&all)?.policy()));
    }
    let is_neighbor = which < 0.6;
    let base = ours.base().as_secs_f64();
    let cap = ours.cap().map_or(base, |cap| cap.as_secs_f64());
    // Neighbors vary each setting by up to a third.
    let near = |value: f64, draws: &mut Draws| value * draws.between(0.7, 1.4);
    let base = if is_neighbor { near(base, draws) } else { base * draws.between(0.05, 20.0) };
    let cap = if is_neighbor { near(cap, draws) } else { base * draws.between(1.0, 100.0) };
    let multiplier = if is_neighbor { draws.between(1.4, 2.8) } else { draws.between(1.1, 10.0) };
    let jitter = if is_neighbor && draws.is(0.6) { ours.jitter() } else { draws.one_of(&JITTERS)? };
    let seconds = |value: f64| Duration::from_secs_f64((value * 1e4).round() / 1e4);
    let (base, cap) = (seconds(base), seconds(cap.max(base)));
    let builder = match jitter {
        Jitter::Decorrelated => Policy::decorrelated(base, cap),
        jitter => Policy::exponential(base, cap).multiplier((multiplier * 10.0).round() / 10.0).jitter(jitter),
    };
    let builder = if kind == Kind::Connections {
        let spread = ours.spread().as_secs_f64();
        let spread = if is_neighbor { near(spread, draws) } else { spread * draws.between(0.05, 5.0) };
        builder.unlimited_attempts().spread(seconds(spread)).stable_after(Duration::from_secs(10))
    } else {
        let attempts = ours.max_attempts().map_or(10, |most| most.get());
        let attempts = if is_neighbor { attempts } else { draws.one_of(&[2, 3, 4, 6, 10])? };
        builder.max_attempts(attempts)
    };
    // Without a range at the cap, the jitter has no effect.
    let policy = builder.build().ok()?;
    let (least, most) = policy.bounds(20)?;
    (most.saturating_sub(least) >= most / 3).then_some(())?;
    Some((if is_neighbor { "a neighbor" } else { "a random policy" }, policy))
}

/// Returns how one policy dominates another one on a grid, if it does: no figure is larger, beyond a small difference
/// and three standard errors, and one is smaller by more than both.
pub(crate) fn dominates(grid: &Grid, one: &Policy, other: &Policy, seed: Seed) -> Option<String> {
    let is_worse = |one: &Figures, other: &Figures| {
        differences(one, other).into_iter().enumerate().any(|(at, difference)| difference > equal(at))
    };
    if is_worse(&grid.computed(one), &grid.computed(other)) {
        return None;
    }
    let pair = |run: u64| [one, other].map(|policy| grid.figures(policy, seed.for_call(run)));
    let [first, its_other] = pair(0);
    if differences(&first, &its_other).into_iter().any(|difference| difference > CLEARLY) {
        return None;
    }
    let pairs: Vec<[Figures; 2]> = (1..=RUNS).map(pair).collect();
    let mut better = None;
    for at in 0..first.all().len() {
        let each: Vec<f64> = pairs.iter().map(|[one, other]| differences(one, other)[at]).collect();
        let (mean, error) = mean_and_error(&each);
        if mean > equal(at).max(3.0 * error).min(CLEARLY) {
            return None;
        }
        let enough = if at == LOST { BETTER_LOST } else { BETTER };
        if -mean > enough.max(3.0 * error) {
            better = Some(format!("{:?} against {:?}", pairs[0][0], pairs[0][1]));
        }
    }
    better
}

/// The place of the lost share among the figures.
const LOST: usize = 3;

fn equal(at: usize) -> f64 {
    if at == LOST { EQUAL_LOST } else { EQUAL }
}

/// Returns the logarithms of the ratios of the figures, and the difference of the lost shares.
fn differences(one: &Figures, other: &Figures) -> Vec<f64> {
    let pairs = one.all().into_iter().zip(other.all()).enumerate();
    // The shortest time is a tenth of a millisecond.
    pairs
        .map(|(at, (one, other))| if at == LOST { one - other } else { (one.max(1e-4) / other.max(1e-4)).ln() })
        .collect()
}

/// Returns the mean, and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}
