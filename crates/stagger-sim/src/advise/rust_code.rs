use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, schedule::Backoff};

/// Returns the policy as Rust code: an invocation of the macro `policy!`. Returns `None` if the policy has settings
/// that the macro does not support.
///
/// ```
/// use stagger_core::policy;
/// use stagger_sim::advise::rust_code;
///
/// let policy = policy!(exponential(ms(500), secs(30)).spread(secs(20)).unlimited_attempts());
/// assert_eq!(
///     rust_code(&policy).as_deref(),
///     Some("policy!(exponential(ms(500), secs(30)).spread(secs(20)).unlimited_attempts())")
/// );
/// assert_eq!(rust_code(&policy!(uniform(secs(1), secs(5)))).as_deref(), Some("policy!(uniform(secs(1), secs(5)).max_attempts(4))"));
/// ```
#[must_use]
pub fn rust_code(policy: &Policy) -> Option<String> {
    let (plain, start) = match (*policy.backoff(), policy.cap()) {
        (Backoff::Uniform { min, max }, None) => {
            (Policy::uniform(min, max), format!("uniform({}, {})", length(min), length(max)))
        }
        (Backoff::Exponential { base, .. }, Some(cap)) if policy.jitter() == Jitter::Decorrelated => {
            (Policy::decorrelated(base, cap), format!("decorrelated({}, {})", length(base), length(cap)))
        }
        (Backoff::Exponential { base, .. }, Some(cap)) => {
            (Policy::exponential(base, cap), format!("exponential({}, {})", length(base), length(cap)))
        }
        _ => return None,
    };
    let mut expression = Expression { text: start, builder: plain };
    let plain = plain.build().ok()?;
    if let (&Backoff::Exponential { multiplier, .. }, Backoff::Exponential { multiplier: usual, .. }) =
        (policy.backoff(), plain.backoff())
    {
        if multiplier.total_cmp(usual).is_ne() {
            expression.append(&format!(".multiplier({multiplier:?})"), |it| it.multiplier(multiplier));
        }
    }
    if policy.jitter() != plain.jitter() {
        expression.append(&format!(".jitter({})", jitter(policy.jitter())?), |it| it.jitter(policy.jitter()));
    }
    if policy.floor() != plain.floor() {
        expression.append(&format!(".floor({})", length(policy.floor())), |it| it.floor(policy.floor()));
    }
    if policy.spread() != plain.spread() {
        expression.append(&format!(".spread({})", length(policy.spread())), |it| it.spread(policy.spread()));
    }
    // Written even if it is the default, so that readers need not know the default.
    match policy.max_attempts() {
        Some(most) => expression.append(&format!(".max_attempts({most})"), |it| it.max_attempts(most.get())),
        None => expression.append(".unlimited_attempts()", PolicyBuilder::unlimited_attempts),
    }
    if let Some(limit) = policy.max_elapsed() {
        expression.append(&format!(".max_elapsed({})", length(limit)), |it| it.max_elapsed(limit));
    }
    match policy.max_hint() {
        same if same == plain.max_hint() => {}
        Some(longest) => expression.append(&format!(".max_hint({})", length(longest)), |it| it.max_hint(longest)),
        None => expression.append(".unlimited_hint()", PolicyBuilder::unlimited_hint),
    }
    if let Some(lived) = policy.stable_after() {
        expression.append(&format!(".stable_after({})", length(lived)), |it| it.stable_after(lived));
    }
    (expression.builder.build().ok()? == *policy).then(|| format!("policy!({})", expression.text))
}

/// Code under construction, and the builder it evaluates to.
struct Expression {
    text: String,
    builder: PolicyBuilder,
}

impl Expression {
    fn append(&mut self, words: &str, set: impl FnOnce(PolicyBuilder) -> PolicyBuilder) {
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
