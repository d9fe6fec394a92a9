use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, Ratio, schedule::Backoff};

use crate::analysis::{PolicyAnalysis, brief, round_up};
use crate::change::{Change, Setting, delays, duration, value};
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static NO_EFFECT: Rule = Rule {
    code: "S018",
    name: "no-effect",
    severity: Severity::Note,
    title: "a setting has no effect",
    rationale: "the setting was made for a reason, and it does not do what it says",
    details: "Settings that contradict each other are rejected when a policy is built. This rule reports valid \
              settings that cancel each other out: a cap, multiplier, step, floor or jitter without which every \
              delay would be the same; settings for retries of a policy without retries; attempts for which \
              `max-elapsed` leaves no time, or a time limit that most calls exceed before their first retry; listed \
              delays after the last attempt; hint settings if every hint ends the call or changes nothing; \
              `stable-after` if there is nothing to reset; a base for throttling or local exhaustion that equals its \
              default. The best known example is systemd's `RestartMaxDelaySec` without `RestartSteps`.",
    check: no_effect,
};

/// A setting without effect, and how to give it one.
#[derive(Default)]
struct UnusedSetting {
    fact: String,
    /// Alternative settings that give it an effect or remove it, the best first.
    settings: Vec<Setting>,
    /// Keys to remove from the text of the policy.
    dropped: Vec<&'static str>,
}

impl UnusedSetting {
    fn new(fact: impl Into<String>) -> Self {
        Self { fact: fact.into(), ..Self::default() }
    }

    fn or(mut self, setting: Setting) -> Self {
        self.settings.push(setting);
        self
    }
}

type Check = fn(&PolicyAnalysis<'_>) -> Option<UnusedSetting>;

const CHECKS: [Check; 11] =
    [growth, floor, jitter, without_retry, attempts, elapsed, list, hints, stable_after, throttled_base, local_base];

fn no_effect(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let unused: Vec<UnusedSetting> = CHECKS.into_iter().filter_map(|check| check(analysis)).collect();
    let ways = unused.iter().map(|unused| unused.settings.len().max(1)).max()?;
    Some(Diagnosis {
        facts: unused.iter().map(|unused| unused.fact.clone()).collect(),
        changes: (0..ways).filter_map(|way| change(analysis.policy, &unused, way)).collect(),
        ..Diagnosis::default()
    })
}

/// Builds the change that applies alternative `way` of each setting.
fn change(policy: &Policy, unused: &[UnusedSetting], way: usize) -> Option<Change> {
    let mut settings: Vec<Setting> = Vec::new();
    for setting in unused.iter().filter_map(|unused| unused.settings.get(way).or(unused.settings.last())) {
        settings.retain(|(key, _)| *key != setting.0);
        settings.push(setting.clone());
    }
    let dropped: Vec<&str> = unused.iter().flat_map(|unused| unused.dropped.iter().copied()).collect();
    if dropped.is_empty() {
        return Some(Change::Settings(settings));
    }
    let (_, policy) = Change::Settings(settings).applied_to(policy)?;
    let text = policy.to_string();
    let kept = text.split(' ').filter(|word| !dropped.iter().any(|key| is_set(word, key)));
    kept.collect::<Vec<_>>().join(" ").parse::<Policy>().ok().map(Change::from)
}

fn is_set(word: &str, key: &str) -> bool {
    matches!(word.split_once('='), Some((name, _)) if name == key)
}

/// Returns whether a change leaves every delay the same, with any number of attempts.
fn changes_nothing(policy: &Policy, change: impl FnOnce(PolicyBuilder) -> PolicyBuilder) -> bool {
    const RETRIES: u32 = 64;
    let endless = policy.to_builder().unlimited_attempts().unlimited_elapsed();
    match (endless.build(), change(endless).build()) {
        (Ok(now), Ok(then)) => (1..=RETRIES).all(|n| now.bounds(n) == then.bounds(n)),
        _ => false,
    }
}

fn growth(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let policy = analysis.policy;
    let longer_cap = duration("cap", policy.base().saturating_mul(10));
    match *policy.backoff() {
        Backoff::Exponential { .. } | Backoff::Linear { .. } if !analysis.grows() => {
            let cap = policy.cap()?;
            if !changes_nothing(policy, PolicyBuilder::uncapped) {
                return None;
            }
            let fact = format!("cap={}: the delays do not grow, so the cap is never reached", Compact(cap));
            Some(UnusedSetting::new(fact).or(value("cap", "none")))
        }
        // The default multiplier is not reported.
        Backoff::Exponential { multiplier, .. } if multiplier.to_bits() != 2.0_f64.to_bits() => {
            for other in [2.0, multiplier * 2.0] {
                if !changes_nothing(policy, |builder| builder.multiplier(other)) {
                    return None;
                }
            }
            let fact = format!("multiplier={multiplier}: any other multiplier gives the same delays");
            Some(UnusedSetting::new(fact).or(longer_cap).or(value("multiplier", 2)))
        }
        Backoff::Linear { step, .. } => {
            if !changes_nothing(policy, |builder| builder.step(step.saturating_mul(2))) {
                return None;
            }
            let fact = format!("step={}: the cap leaves no room for it", Compact(step));
            Some(UnusedSetting::new(fact).or(longer_cap))
        }
        _ => None,
    }
}

fn floor(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let floor = analysis.policy.floor();
    if floor.is_zero() || !changes_nothing(analysis.policy, |builder| builder.floor(Duration::ZERO)) {
        return None;
    }
    let fact = format!("floor={}: no delay would be shorter without it", Compact(floor));
    Some(UnusedSetting::new(fact).or(value("floor", "0s")))
}

fn jitter(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let (policy, jitter) = (analysis.policy, analysis.policy.jitter());
    let has_none =
        jitter == Jitter::None || matches!(policy.backoff(), Backoff::Zero | Backoff::Stop | Backoff::Uniform { .. });
    if has_none || !changes_nothing(policy, |builder| builder.jitter(Jitter::None)) {
        return None;
    }
    let mut found = UnusedSetting::new(format!("jitter={jitter}: every interval has a single length"));
    if !policy.floor().is_zero() {
        found = found.or(value("floor", "0s"));
    }
    let longer_cap = duration("cap", policy.base().saturating_mul(10));
    Some(found.or(value("jitter", "full")).or(longer_cap).or(value("jitter", "none")))
}

/// Finds settings for retries of a policy without retries.
fn without_retry(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let policy = analysis.policy;
    let stops = matches!(policy.backoff(), Backoff::Stop);
    if policy.allows_retries() && !stops {
        return None;
    }
    let mut dropped = vec!["max-elapsed", "max-hint", "hint", "hint-spread", "throttled-base", "local-base"];
    if stops {
        // `stop` implies one attempt, so a limit of attempts is redundant.
        dropped.push("max-attempts");
    }
    dropped.retain(|key| is_in_text(policy, key));
    if dropped.is_empty() {
        return None;
    }
    let fact = format!("{}: the policy makes no retry", dropped.join(", "));
    Some(UnusedSetting { dropped, ..UnusedSetting::new(fact) })
}

fn attempts(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let (limit, attempts) = (analysis.policy.max_elapsed()?, analysis.attempts()?);
    let made = analysis.known_retries() + 1;
    let (least, _) = analysis.policy.elapsed_bounds(made)?;
    if made >= attempts || least <= limit {
        return None;
    }
    let fact = format!("max-attempts={attempts}: max-elapsed {} leaves time for at most {made}", brief(limit));
    Some(UnusedSetting::new(fact).or(value("max-attempts", made)))
}

fn elapsed(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let policy = analysis.policy;
    let limit = policy.max_elapsed()?;
    let half = policy.elapsed_quantile(1, 0.5)?;
    if !policy.allows_retries() || half <= limit {
        return None;
    }
    let fact = format!(
        "max-attempts: half of the calls exceed max-elapsed {} before their first retry, which comes after {}",
        brief(limit),
        brief(half)
    );
    let enough = policy.elapsed_bounds(1).map_or(half, |(_, most)| most);
    Some(
        UnusedSetting::new(fact)
            .or(value("spread", "0s"))
            .or(duration("max-elapsed", round_up(enough)))
            .or(value("max-elapsed", "none")),
    )
}

fn list(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let (Backoff::List(list), Some(attempts)) = (analysis.policy.backoff(), analysis.attempts()) else { return None };
    let retries = usize::try_from(attempts - 1).unwrap_or(usize::MAX);
    if !analysis.policy.allows_retries() || retries >= list.len() {
        return None;
    }
    let fact = format!("delays: {} are listed, but {attempts} attempts use only {retries}", list.len());
    Some(UnusedSetting::new(fact).or(delays(list.iter().take(retries))))
}

fn hints(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let policy = analysis.policy;
    if !analysis.retries() {
        return None;
    }
    if policy.hint_mode() == HintMode::Clamp(Duration::ZERO) {
        let fact = "hint=clamp:0s: a hint changes no delay";
        return Some(UnusedSetting::new(fact).or(value("hint", "at-least")));
    }
    let is_set = policy.hint_mode() != HintMode::AtLeast || policy.hint_spread() != Ratio::percent(50);
    if !is_set || policy.max_hint() != Some(Duration::ZERO) {
        return None;
    }
    let usual = Policy::DEFAULT.max_hint().unwrap_or(Duration::from_secs(300));
    let fact = "hint, hint-spread: with max-hint 0s every hint ends the call";
    Some(UnusedSetting::new(fact).or(duration("max-hint", usual)))
}

fn stable_after(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let lived = analysis.policy.stable_after()?;
    if analysis.restarts_anything() {
        return None;
    }
    let fact = format!("stable-after={}: neither growing delays nor a limit could be reset", Compact(lived));
    Some(UnusedSetting::new(fact).or(value("stable-after", "none")))
}

fn throttled_base(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let policy = analysis.policy;
    base_of_kind(policy, "throttled-base", policy.throttled_base(), policy.base())
}

fn local_base(analysis: &PolicyAnalysis<'_>) -> Option<UnusedSetting> {
    let policy = analysis.policy;
    let default = Policy::constant(policy.base()).build().ok()?.local_base();
    base_of_kind(policy, "local-base", policy.local_base(), default)
}

fn base_of_kind(policy: &Policy, key: &'static str, set: Duration, default: Duration) -> Option<UnusedSetting> {
    if !policy.allows_retries() || set != default || !is_in_text(policy, key) {
        return None;
    }
    let fact = format!("{key}={}: this is the default", Compact(set));
    Some(UnusedSetting { dropped: vec![key], ..UnusedSetting::new(fact) })
}

/// Returns whether the policy's text contains the setting: it differs from its default, or was set to it explicitly.
fn is_in_text(policy: &Policy, key: &str) -> bool {
    policy.to_string().split(' ').any(|word| is_set(word, key))
}
