use core::time::Duration;

use stagger::profile::Profile;
use stagger::{HintMode, Jitter, Policy, PolicyBuilder, Ratio};

use super::super::draws::Draws;

/// Draws a policy whose delays suit a recovery of this length, in seconds.
pub(crate) fn draw(draws: &mut Draws, recovery: f64) -> Policy {
    // A draw may be invalid: a cap below the base, for example.
    (0..100).find_map(|_| draw_once(draws, recovery)).unwrap_or(Policy::DEFAULT)
}

fn draw_once(draws: &mut Draws, recovery: f64) -> Option<Policy> {
    let mut builder = if draws.is(0.15) {
        let all: Vec<_> = Profile::all().collect();
        draws.one_of(&all)?.policy().to_builder()
    } else {
        let builder = shape(draws, recovery);
        if draws.is(0.8) { builder.jitter(jitter(draws, recovery)) } else { builder }
    };
    builder = if draws.is(0.5) {
        builder.max_attempts(draws.between(1.0, 16.0) as u32)
    } else {
        builder.unlimited_attempts()
    };
    if draws.is(0.3) {
        builder = builder.max_elapsed(draws.duration(0.2 * recovery, 5.0 * recovery));
    }
    if draws.is(0.3) {
        builder = builder.spread(draws.duration(0.05 * recovery, 2.0 * recovery));
    }
    if draws.is(0.3) {
        builder = builder.hint_mode(draws.one_of(&[HintMode::Exact, HintMode::Clamp(Duration::from_secs(2))])?);
    }
    if draws.is(0.3) {
        builder = builder.hint_spread(Ratio::percent((100.0 * draws.share()) as u32));
    }
    if draws.is(0.2) {
        builder = builder.max_hint(draws.duration(0.5, 20.0));
    }
    if draws.is(0.5) {
        builder = builder.throttled_base(draws.duration(0.05 * recovery, 2.0 * recovery));
    }
    if draws.is(0.3) {
        builder = builder.stable_after(draws.duration(0.5, 30.0));
    }
    builder.build().ok()
}

fn shape(draws: &mut Draws, recovery: f64) -> PolicyBuilder {
    let base = draws.duration(0.02 * recovery, recovery);
    // Whole milliseconds: tokio's timer turns the rest of a delay without jitter into a random one, which separates
    // clients that would stay in step.
    let cap = draws.duration(base.as_secs_f64(), 60.0 * base.as_secs_f64());
    match (draws.share() * 8.0) as u32 {
        0 => Policy::constant(base),
        1 => Policy::linear(base, base, cap),
        2 => Policy::uniform(base, cap),
        3 => Policy::list(&[base, cap, base + cap]),
        _ => Policy::exponential(base, cap).multiplier(draws.between(1.1, 5.0)),
    }
}

fn jitter(draws: &mut Draws, recovery: f64) -> Jitter {
    match (draws.share() * 6.0) as u32 {
        0 => Jitter::None,
        1 => Jitter::Equal,
        2 => Jitter::Decorrelated,
        3 => Jitter::Factor(Ratio::percent((100.0 * draws.share()) as u32)),
        4 => Jitter::Added(draws.duration(0.01 * recovery, recovery)),
        _ => Jitter::Full,
    }
}
