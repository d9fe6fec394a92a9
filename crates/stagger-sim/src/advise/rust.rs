use core::fmt::Write as _;
use core::time::Duration;

use stagger_core::{Backoff, Jitter, Policy};

/// The policy as Rust: an invocation of the macro `policy!`. `None` where it has settings that only a file or a profile has.
///
/// ```
/// use stagger_core::policy;
/// use stagger_sim::advise::rust;
///
/// let policy = policy!(exponential(ms(500), secs(30)).spread(secs(20)).unlimited_attempts());
/// assert_eq!(
///     rust(&policy).as_deref(),
///     Some("policy!(exponential(ms(500), secs(30)).spread(secs(20)).unlimited_attempts())")
/// );
/// ```
#[must_use]
pub fn rust(policy: &Policy) -> Option<String> {
    let cap = policy.cap()?;
    let (plain, mut out) = match *policy.backoff() {
        Backoff::Exponential { base, .. } if policy.jitter() == Jitter::Decorrelated => {
            (Policy::decorrelated(base, cap), format!("decorrelated({}, {})", length(base), length(cap)))
        }
        Backoff::Exponential { base, .. } => {
            (Policy::exponential(base, cap), format!("exponential({}, {})", length(base), length(cap)))
        }
        _ => return None,
    };
    let plain = plain.build().ok()?;
    if let (Backoff::Exponential { multiplier, .. }, Backoff::Exponential { multiplier: usual, .. }) =
        (policy.backoff(), plain.backoff())
    {
        if multiplier.total_cmp(usual).is_ne() {
            let _ = write!(out, ".multiplier({multiplier:?})");
        }
    }
    if policy.jitter() != plain.jitter() {
        let _ = write!(out, ".jitter({})", jitter(policy.jitter())?);
    }
    for (name, ours, usual) in [("floor", policy.floor(), plain.floor()), ("spread", policy.spread(), plain.spread())] {
        if ours != usual {
            let _ = write!(out, ".{name}({})", length(ours));
        }
    }
    // Said even if it is the usual one: nobody should have to know it.
    match policy.max_attempts() {
        Some(attempts) => {
            let _ = write!(out, ".max_attempts({attempts})");
        }
        None => out.push_str(".unlimited_attempts()"),
    }
    for (name, never, ours, usual) in [
        ("max_elapsed", "unlimited_elapsed", policy.max_elapsed(), plain.max_elapsed()),
        ("max_hint", "unlimited_hint", policy.max_hint(), plain.max_hint()),
        ("stable_after", "never_stable", policy.stable_after(), plain.stable_after()),
    ] {
        match ours {
            ours if ours == usual => {}
            Some(limit) => {
                let _ = write!(out, ".{name}({})", length(limit));
            }
            None => {
                let _ = write!(out, ".{never}()");
            }
        }
    }
    Some(format!("policy!({out})"))
}

fn jitter(jitter: Jitter) -> Option<String> {
    Some(match jitter {
        Jitter::None => "Jitter::None".to_owned(),
        Jitter::Full => "Jitter::Full".to_owned(),
        Jitter::Equal => "Jitter::Equal".to_owned(),
        _ => return None,
    })
}

fn length(length: Duration) -> String {
    match length.as_millis() {
        ms if ms % 1_000 == 0 => format!("secs({})", ms / 1_000),
        ms => format!("ms({ms})"),
    }
}
