use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, schedule::Backoff};

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
    let (plain, begun) = match *policy.backoff() {
        Backoff::Exponential { base, .. } if policy.jitter() == Jitter::Decorrelated => {
            (Policy::decorrelated(base, cap), format!("decorrelated({}, {})", length(base), length(cap)))
        }
        Backoff::Exponential { base, .. } => {
            (Policy::exponential(base, cap), format!("exponential({}, {})", length(base), length(cap)))
        }
        _ => return None,
    };
    let mut said = Said { text: begun, builder: plain };
    let plain = plain.build().ok()?;
    if let (&Backoff::Exponential { multiplier, .. }, Backoff::Exponential { multiplier: usual, .. }) =
        (policy.backoff(), plain.backoff())
    {
        if multiplier.total_cmp(usual).is_ne() {
            said.say(&format!(".multiplier({multiplier:?})"), |it| it.multiplier(multiplier));
        }
    }
    if policy.jitter() != plain.jitter() {
        said.say(&format!(".jitter({})", jitter(policy.jitter())?), |it| it.jitter(policy.jitter()));
    }
    if policy.floor() != plain.floor() {
        said.say(&format!(".floor({})", length(policy.floor())), |it| it.floor(policy.floor()));
    }
    if policy.spread() != plain.spread() {
        said.say(&format!(".spread({})", length(policy.spread())), |it| it.spread(policy.spread()));
    }
    // Said even if it is the usual one: nobody should have to know it.
    match policy.max_attempts() {
        Some(most) => said.say(&format!(".max_attempts({most})"), |it| it.max_attempts(most.get())),
        None => said.say(".unlimited_attempts()", PolicyBuilder::unlimited_attempts),
    }
    if let Some(limit) = policy.max_elapsed() {
        said.say(&format!(".max_elapsed({})", length(limit)), |it| it.max_elapsed(limit));
    }
    match policy.max_hint() {
        same if same == plain.max_hint() => {}
        Some(longest) => said.say(&format!(".max_hint({})", length(longest)), |it| it.max_hint(longest)),
        None => said.say(".unlimited_hint()", PolicyBuilder::unlimited_hint),
    }
    if let Some(lived) = policy.stable_after() {
        said.say(&format!(".stable_after({})", length(lived)), |it| it.stable_after(lived));
    }
    (said.builder.build().ok()? == *policy).then(|| format!("policy!({})", said.text))
}

/// A text, and what it says.
struct Said {
    text: String,
    builder: PolicyBuilder,
}

impl Said {
    fn say(&mut self, words: &str, set: impl FnOnce(PolicyBuilder) -> PolicyBuilder) {
        self.text.push_str(words);
        self.builder = set(self.builder);
    }
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
    match length.as_nanos() {
        nanos if nanos % 1_000_000_000 == 0 => format!("secs({})", length.as_secs()),
        nanos if nanos % 1_000_000 == 0 => format!("ms({})", length.as_millis()),
        nanos => format!("core::time::Duration::from_nanos({nanos})"),
    }
}
