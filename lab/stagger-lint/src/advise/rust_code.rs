use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, schedule::Backoff};

/// Returns the policy as Rust code: an invocation of the macro `policy!`. Returns `None` if the policy has settings
/// that the macro does not support.
///
/// ```
/// use stagger_core::policy;
/// use stagger_lint::advise::rust_code;
///
/// let policy = policy!(exponential(ms(500), secs(30)).spread(secs(20)).unlimited_attempts());
/// assert_eq!(
///     rust_code(&policy).as_deref(),
///     Some("policy!(exponential(ms(500), secs(30)).spread(secs(20)).unlimited_attempts())")
/// );
/// assert_eq!(
///     rust_code(&policy!(uniform(secs(1), secs(5)))).as_deref(),
///     Some("policy!(uniform(secs(1), secs(5)).max_attempts(4))")
/// );
/// ```
#[must_use]
pub fn rust_code(policy: &Policy) -> Option<String> {
    let (mut builder, mut text) = match (*policy.backoff(), policy.cap()) {
        (Backoff::Constant { delay }, None) => (Policy::constant(delay), call("constant", &[delay])),
        (Backoff::Uniform { min, max }, None) => (Policy::uniform(min, max), call("uniform", &[min, max])),
        (Backoff::Exponential { base, .. }, Some(cap)) if policy.jitter() == Jitter::Decorrelated => {
            (Policy::decorrelated(base, cap), call("decorrelated", &[base, cap]))
        }
        (Backoff::Exponential { base, .. }, Some(cap)) => {
            (Policy::exponential(base, cap), call("exponential", &[base, cap]))
        }
        _ => return None,
    };
    let plain = builder.build().ok()?;
    let mut append = |code: String, set: &dyn Fn(PolicyBuilder) -> PolicyBuilder| {
        text = format!("{text}.{code}");
        builder = set(builder);
    };
    if let (&Backoff::Exponential { multiplier, .. }, Backoff::Exponential { multiplier: usual, .. }) =
        (policy.backoff(), plain.backoff())
    {
        if multiplier.total_cmp(usual).is_ne() {
            append(format!("multiplier({multiplier:?})"), &|it| it.multiplier(multiplier));
        }
    }
    let (jitter, floor, spread) = (policy.jitter(), policy.floor(), policy.spread());
    if jitter != plain.jitter() {
        let code = match jitter {
            Jitter::None | Jitter::Full | Jitter::Equal => format!("jitter(Jitter::{jitter:?})"),
            Jitter::Factor(ratio) if ratio.as_millionths() % A_PERCENT == 0 => {
                format!("jitter(Jitter::Factor(Ratio::percent({})))", ratio.as_millionths() / A_PERCENT)
            }
            _ => return None,
        };
        append(code, &|it| it.jitter(jitter));
    }
    if floor != plain.floor() {
        append(call("floor", &[floor]), &|it| it.floor(floor));
    }
    if spread != plain.spread() {
        append(call("spread", &[spread]), &|it| it.spread(spread));
    }
    // Written even if it is the default, so that readers need not know the default.
    match policy.max_attempts() {
        Some(most) => append(format!("max_attempts({most})"), &|it| it.max_attempts(most.get())),
        None => append("unlimited_attempts()".to_owned(), &PolicyBuilder::unlimited_attempts),
    }
    if let Some(limit) = policy.max_elapsed() {
        append(call("max_elapsed", &[limit]), &|it| it.max_elapsed(limit));
    }
    match policy.max_hint() {
        same if same == plain.max_hint() => {}
        Some(longest) => append(call("max_hint", &[longest]), &|it| it.max_hint(longest)),
        None => append("unlimited_hint()".to_owned(), &PolicyBuilder::unlimited_hint),
    }
    if let Some(lived) = policy.stable_after() {
        append(call("stable_after", &[lived]), &|it| it.stable_after(lived));
    }
    if builder.build().ok()? == *policy { Some(format!("policy!({text})")) } else { None }
}

/// In millionths.
const A_PERCENT: u32 = 10_000;

fn call(function: &str, arguments: &[Duration]) -> String {
    format!("{function}({})", arguments.iter().map(|&argument| length(argument)).collect::<Vec<_>>().join(", "))
}

fn length(length: Duration) -> String {
    match length.as_nanos() {
        nanos if nanos % 1_000_000_000 == 0 => format!("secs({})", length.as_secs()),
        nanos if nanos % 1_000_000 == 0 => format!("ms({})", length.as_millis()),
        nanos => format!("core::time::Duration::from_nanos({nanos})"),
    }
}
