//! Random policies.

use core::time::Duration;

use stagger::{Jitter, Policy, PolicyBuilder, Ratio, profile::Profile};

use super::draws::Draws;

/// The range of the first delays, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// The shortest.
    pub(crate) shortest: f64,
    /// The longest; caps are up to a hundred times as long.
    pub(crate) longest: f64,
}

/// Draws a policy of any kind: a profile of the registry with other settings, or one of each backoff with any jitter.
pub(crate) fn any(draws: &mut Draws, delays: Delays) -> Policy {
    loop {
        // Settings may contradict each other; most do not.
        if let Some(policy) = attempt(draws, delays) {
            return policy;
        }
    }
}

fn attempt(draws: &mut Draws, delays: Delays) -> Option<Policy> {
    let base = draws.duration(delays.shortest, delays.longest);
    let times = draws.between(1.0, 100.0);
    let cap = Duration::from_millis((base.as_secs_f64() * times * 1e3).min(900_000.0) as u64).max(base);
    let builder = match draws.share() {
        0.0..0.25 => {
            let all: Vec<&Profile> = Profile::all().collect();
            let builder = draws.one_of(&all)?.policy().to_builder();
            let builder = if draws.is(0.3) { builder.set("base", &text(base)).ok()? } else { builder };
            if draws.is(0.3) { builder.set("cap", &text(cap)).ok()? } else { builder }
        }
        0.25..0.65 => Policy::exponential(base, cap).multiplier(draws.one_of(&[2.0, 2.0, 1.5, 3.0, 10.0])?),
        0.65..0.75 => Policy::linear(base, draws.duration(delays.shortest, delays.longest), cap),
        0.75..0.85 => Policy::constant(base),
        0.85..0.92 => Policy::decorrelated(base, cap),
        _ => list(draws, base),
    };
    let builder = jittered(draws, builder)?;
    limited(draws, builder, delays)?.build().ok()
}

fn list(draws: &mut Draws, base: Duration) -> PolicyBuilder {
    let many = 1 + (draws.share() * 6.0) as u32;
    let times = draws.one_of(&[1_u32, 2, 3]).unwrap_or(2);
    let delays: Vec<Duration> = (0..many).map(|n| base * times.pow(n)).collect();
    Policy::list(&delays)
}

fn jittered(draws: &mut Draws, builder: PolicyBuilder) -> Option<PolicyBuilder> {
    if !draws.is(0.8) {
        return Some(builder);
    }
    let all = [Jitter::Full, Jitter::Full, Jitter::Equal, Jitter::None, Jitter::Factor(Ratio::percent(1))];
    let more = [Jitter::Factor(Ratio::percent(20)), Jitter::Factor(Ratio::percent(50)), Jitter::Decorrelated];
    Some(builder.jitter(draws.one_of(&[&all[..], &more[..]].concat())?))
}

fn limited(draws: &mut Draws, builder: PolicyBuilder, delays: Delays) -> Option<PolicyBuilder> {
    let builder = match draws.share() {
        0.0..0.3 => builder.unlimited_attempts(),
        0.3..0.8 => builder.max_attempts(draws.between(1.0, 20.0) as u32),
        _ => builder,
    };
    let builder = if draws.is(0.4) { builder.spread(draws.duration(delays.shortest, delays.longest)) } else { builder };
    let longest = (delays.longest * 20.0, delays.longest);
    Some(if draws.is(0.2) { builder.max_elapsed(draws.duration(longest.1, longest.0)) } else { builder })
}

fn text(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}
