use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, Ratio, schedule::Backoff};

use super::super::change::{Change, delays, length, word};
use super::super::rule::{Found, Rule, Severity};
use super::super::subject::{Subject, brief, round_up};

pub(in crate::lint) static NO_EFFECT: Rule = Rule {
    code: "S018",
    name: "no-effect",
    severity: Severity::Note,
    title: "a setting has no effect",
    why: "somebody has set it for a reason, and it does not do what it says",
    more: "Settings that exclude each other cannot be built at all; this rule finds those that can, and take each \
           other's effect away: a cap, a multiplier, a step, a floor or a jitter without which every delay is the \
           same, however long it goes on; what is said about retries where there is none; attempts that `max-elapsed` \
           never leaves time for, or a limit of time that most calls use up before their first retry; delays of a list \
           that come after the last attempt; settings of hints where every hint ends the call, or changes nothing; a \
           `stable-after` with nothing that starts again; a base for throttling or local exhaustion that is what it \
           would be anyway. systemd's `RestartMaxDelaySec` without steps is the best known of its kind.",
    judge: no_effect,
};

/// A setting without effect.
#[derive(Default)]
struct Effectless {
    fact: String,
    /// What may give it an effect, or takes it out: one after the other.
    settings: Vec<(&'static str, String)>,
    /// Settings that are to be left out.
    dropped: Vec<&'static str>,
}

impl Effectless {
    fn new(fact: impl Into<String>) -> Self {
        Self { fact: fact.into(), ..Self::default() }
    }

    fn or(mut self, setting: (&'static str, String)) -> Self {
        self.settings.push(setting);
        self
    }
}

fn no_effect(subject: &Subject<'_>) -> Option<Found> {
    let effectless: Vec<Effectless> = [
        growth,
        floor,
        jitter,
        without_retry,
        attempts,
        elapsed,
        list,
        hints,
        stable_after,
        throttled_base,
        local_base,
    ]
    .into_iter()
    .filter_map(|look| look(subject))
    .collect();
    let (first, rest) = effectless.split_first()?;
    let found = rest.iter().fold(Found::fact(&first.fact), |found, effectless| found.and(&effectless.fact));
    let ways = effectless.iter().map(|effectless| effectless.settings.len()).max().unwrap_or(0).max(1);
    Some((0..ways).fold(found, |found, way| match change(subject.policy, &effectless, way) {
        Some(change) => found.mend(change),
        None => found,
    }))
}

/// Gives each setting an effect, in the same way of several.
fn change(policy: &Policy, effectless: &[Effectless], way: usize) -> Option<Change> {
    let mut settings: Vec<(&'static str, String)> = Vec::new();
    for setting in
        effectless.iter().filter_map(|effectless| effectless.settings.get(way).or(effectless.settings.last()))
    {
        settings.retain(|(key, _)| *key != setting.0);
        settings.push(setting.clone());
    }
    let dropped: Vec<&str> = effectless.iter().flat_map(|effectless| effectless.dropped.iter().copied()).collect();
    if dropped.is_empty() {
        return Some(Change::Settings(settings));
    }
    let (_, policy) = Change::Settings(settings).applied_to(policy)?;
    let text = policy.to_string();
    let kept = text.split(' ').filter(|word| !dropped.iter().any(|key| is_set(word, key)));
    kept.collect::<Vec<_>>().join(" ").parse::<Policy>().ok().map(Change::from)
}

fn is_set(word: &str, key: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name == key)
}

/// Whether every delay stays the same with a change, however long it goes on.
fn changes_nothing(policy: &Policy, change: impl FnOnce(PolicyBuilder) -> PolicyBuilder) -> bool {
    const RETRIES: u32 = 64;
    let endless = policy.to_builder().unlimited_attempts().unlimited_elapsed();
    match (endless.build(), change(endless).build()) {
        (Ok(now), Ok(then)) => (1..=RETRIES).all(|n| now.bounds(n) == then.bounds(n)),
        _ => false,
    }
}

fn growth(subject: &Subject<'_>) -> Option<Effectless> {
    let policy = subject.policy;
    let times = |n: u32| length("cap", policy.base().saturating_mul(n));
    match *policy.backoff() {
        Backoff::Exponential { .. } | Backoff::Linear { .. } if !subject.grows() => {
            let cap = policy.cap()?;
            changes_nothing(policy, PolicyBuilder::uncapped).then(|| {
                let fact = format!("cap={}: nothing grows, so nothing reaches it", Compact(cap));
                Effectless::new(fact).or(word("cap", "none"))
            })
        }
        // The multiplier that was never touched is silent.
        Backoff::Exponential { multiplier, .. } if multiplier.to_bits() != 2.0_f64.to_bits() => {
            changes_nothing(policy, |builder| builder.multiplier(multiplier * 2.0)).then(|| {
                Effectless::new(format!("multiplier={multiplier}: the delays are the same with any other"))
                    .or(times(10))
                    .or(word("multiplier", 2))
            })
        }
        Backoff::Linear { step, .. } => changes_nothing(policy, |builder| builder.step(step.saturating_mul(2)))
            .then(|| Effectless::new(format!("step={}: the cap leaves no room for it", Compact(step))).or(times(10))),
        _ => None,
    }
}

fn floor(subject: &Subject<'_>) -> Option<Effectless> {
    let floor = subject.policy.floor();
    let idle = !floor.is_zero() && changes_nothing(subject.policy, |builder| builder.floor(Duration::ZERO));
    idle.then(|| {
        Effectless::new(format!("floor={}: no delay is drawn below it anyway", Compact(floor)))
            .or(length("floor", Duration::ZERO))
    })
}

fn jitter(subject: &Subject<'_>) -> Option<Effectless> {
    let (policy, jitter) = (subject.policy, subject.policy.jitter());
    let idle = jitter != Jitter::None
        && !matches!(policy.backoff(), Backoff::Zero | Backoff::Stop)
        && changes_nothing(policy, |builder| builder.jitter(Jitter::None));
    idle.then(|| {
        let found = Effectless::new(format!("jitter={jitter}: every interval is a single length"));
        let found = if policy.floor().is_zero() { found } else { found.or(length("floor", Duration::ZERO)) };
        found.or(word("jitter", "full")).or(length("cap", policy.base().saturating_mul(10))).or(word("jitter", "none"))
    })
}

/// What is said about retries where there is none.
fn without_retry(subject: &Subject<'_>) -> Option<Effectless> {
    const OF_RETRIES: [&str; 6] = ["max-elapsed", "max-hint", "hint", "hint-spread", "throttled-base", "local-base"];
    let policy = subject.policy;
    let stops = matches!(policy.backoff(), Backoff::Stop);
    if policy.allows_retries() && !stops {
        return None;
    }
    // Without a retry, `stop` is what needs no number.
    let of_stop = stops.then_some("max-attempts");
    let dropped: Vec<&str> = OF_RETRIES.into_iter().chain(of_stop).filter(|key| is_told(policy, key)).collect();
    (!dropped.is_empty()).then(|| {
        let fact = format!("{}: there is no retry that it could apply to", dropped.join(", "));
        Effectless { dropped, ..Effectless::new(fact) }
    })
}

fn attempts(subject: &Subject<'_>) -> Option<Effectless> {
    let (limit, attempts) = (subject.policy.max_elapsed()?, subject.attempts()?);
    let made = u32::try_from(subject.delays.len()).unwrap_or(u32::MAX) + 1;
    let (least, _) = subject.policy.elapsed_bounds(made)?;
    (made < attempts && least > limit).then(|| {
        let fact = format!("max-attempts={attempts}: max-elapsed {} leaves time for {made} at most", brief(limit));
        Effectless::new(fact).or(word("max-attempts", made))
    })
}

fn elapsed(subject: &Subject<'_>) -> Option<Effectless> {
    let policy = subject.policy;
    let limit = policy.max_elapsed()?;
    let half = policy.elapsed_quantile(1, 0.5)?;
    (policy.allows_retries() && half > limit).then(|| {
        let fact = format!(
            "max-attempts: max-elapsed {} is over for half of the calls before their first retry, which is after {}",
            brief(limit),
            brief(half)
        );
        let enough = policy.elapsed_bounds(1).map_or(half, |(_, most)| most);
        Effectless::new(fact)
            .or(length("spread", Duration::ZERO))
            .or(length("max-elapsed", round_up(enough)))
            .or(word("max-elapsed", "none"))
    })
}

fn list(subject: &Subject<'_>) -> Option<Effectless> {
    let (Backoff::List(list), Some(attempts)) = (subject.policy.backoff(), subject.attempts()) else { return None };
    let retries = usize::try_from(attempts - 1).unwrap_or(usize::MAX);
    (subject.policy.allows_retries() && retries < list.len()).then(|| {
        let fact = format!("delays: {} are given, and {attempts} attempts have {retries} between them", list.len());
        Effectless::new(fact).or(delays(list.iter().take(retries)))
    })
}

fn hints(subject: &Subject<'_>) -> Option<Effectless> {
    let policy = subject.policy;
    if !subject.retries() {
        return None;
    }
    if policy.hint_mode() == HintMode::Clamp(Duration::ZERO) {
        let fact = "hint=clamp:0s: a hint changes no delay";
        return Some(Effectless::new(fact).or(word("hint", "at-least")));
    }
    let set = policy.hint_mode() != HintMode::AtLeast || policy.hint_spread() != Ratio::percent(50);
    (set && policy.max_hint() == Some(Duration::ZERO)).then(|| {
        Effectless::new("hint, hint-spread: with max-hint 0s every hint ends the call")
            .or(length("max-hint", Policy::DEFAULT.max_hint().unwrap_or(Duration::from_secs(300))))
    })
}

fn stable_after(subject: &Subject<'_>) -> Option<Effectless> {
    let lived = subject.policy.stable_after()?;
    (!subject.restarts_anything()).then(|| {
        let fact = format!("stable-after={}: there is neither growth nor limit that could start again", Compact(lived));
        Effectless::new(fact).or(word("stable-after", "none"))
    })
}

fn throttled_base(subject: &Subject<'_>) -> Option<Effectless> {
    let policy = subject.policy;
    base_of_kind(policy, "throttled-base", policy.throttled_base(), policy.base())
}

fn local_base(subject: &Subject<'_>) -> Option<Effectless> {
    let policy = subject.policy;
    let default = Policy::constant(policy.base()).build().ok()?.local_base();
    base_of_kind(policy, "local-base", policy.local_base(), default)
}

fn base_of_kind(policy: &Policy, key: &'static str, set: Duration, default: Duration) -> Option<Effectless> {
    (policy.allows_retries() && is_told(policy, key) && set == default).then(|| {
        let fact = format!("{key}={}: it would be that without", Compact(set));
        Effectless { dropped: vec![key], ..Effectless::new(fact) }
    })
}

/// Whether a setting is not at its default, or was set to it where that can be told: the text has it then.
fn is_told(policy: &Policy, key: &str) -> bool {
    policy.to_string().split(' ').any(|word| is_set(word, key))
}
