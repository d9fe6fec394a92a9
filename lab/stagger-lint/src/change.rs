use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, PolicyProblem};

/// A key of the policy language, and its value.
pub(super) type Setting = (&'static str, String);

/// A change of a policy, in the policy language.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Settings(Vec<Setting>),
    /// Replaces the policy.
    Whole(Box<Policy>),
}

impl<const N: usize> From<[Setting; N]> for Change {
    fn from(settings: [Setting; N]) -> Self {
        Self::Settings(settings.into())
    }
}

impl From<Policy> for Change {
    fn from(policy: Policy) -> Self {
        Self::Whole(Box::new(policy))
    }
}

pub(super) fn duration(key: &'static str, duration: Duration) -> Setting {
    (key, Compact(duration).to_string())
}

/// Creates the setting of a delay list; one second if the list is empty.
pub(super) fn delays(list: impl Iterator<Item = Duration>) -> Setting {
    let texts: Vec<String> = list.map(|delay| Compact(delay).to_string()).collect();
    ("delays", if texts.is_empty() { "1s".to_owned() } else { texts.join(",") })
}

pub(super) fn value(key: &'static str, value: impl fmt::Display) -> Setting {
    (key, value.to_string())
}

/// Maximum number of other settings that a change may have to adjust.
const MOST_REPAIRS: usize = 6;

impl Change {
    /// Applies the change. Returns the changed policy, and the change extended by the settings that must be adjusted
    /// with it; `None` if no adjustment makes the policy valid.
    pub(super) fn applied_to(mut self, policy: &Policy) -> Option<(Self, Policy)> {
        for _ in 0..MOST_REPAIRS {
            let settings = match &mut self {
                Self::Whole(policy) => {
                    let policy = **policy;
                    return Some((self, policy));
                }
                Self::Settings(settings) => settings,
            };
            let mut builder = policy.to_builder();
            for (key, value) in settings.iter() {
                builder = builder.set(key, value).ok()?;
            }
            match builder.build() {
                Ok(changed) => return Some((self, changed)),
                Err(error) => {
                    let problem = error.problems().next()?;
                    let repair = repair(problem, settings, policy)?;
                    // The same repair would not help a second time.
                    if settings.contains(&repair) {
                        return None;
                    }
                    settings.retain(|(key, _)| *key != repair.0);
                    settings.push(repair);
                }
            }
        }
        None
    }
}

/// Returns the setting that resolves a problem of the changed policy, if there is one.
fn repair(problem: PolicyProblem, settings: &[Setting], policy: &Policy) -> Option<Setting> {
    let asked = |key: &str| {
        let (_, value) = settings.iter().find(|(name, _)| *name == key)?;
        stagger_core::text::parse_duration(value).ok()?
    };
    let base = asked("base").unwrap_or(policy.base());
    let spread = asked("spread").unwrap_or(policy.spread());
    Some(match problem {
        PolicyProblem::CapBelowBase => duration("cap", base.saturating_mul(10)),
        PolicyProblem::FloorAboveCap => duration("floor", Duration::ZERO),
        PolicyProblem::ThrottledBase => duration("throttled-base", base),
        PolicyProblem::LocalBase => duration("local-base", base),
        PolicyProblem::SpreadAboveElapsed if asked("spread").is_some() => {
            duration("max-elapsed", spread.saturating_add(policy.max_elapsed()?))
        }
        PolicyProblem::SpreadAboveElapsed => duration("spread", Duration::ZERO),
        PolicyProblem::ElapsedBelowBase => value("max-attempts", 1),
        _ => return None,
    })
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(policy) => policy.fmt(f),
            Self::Settings(settings) => {
                let texts: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
                f.write_str(&texts.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(policy: &str, change: impl Into<Change>) -> Option<(String, String)> {
        let (change, policy) = change.into().applied_to(&policy.parse().unwrap())?;
        Some((change.to_string(), policy.to_string()))
    }

    #[test]
    fn a_change_adjusts_the_settings_it_conflicts_with() {
        let seconds = |key, seconds| duration(key, Duration::from_secs(seconds));
        for (policy, change, want) in [
            ("exponential base=1s cap=5s", vec![seconds("base", 9)], "base=9s cap=1m30s"),
            (
                "exponential base=1s cap=30s throttled-base=20s floor=15s",
                vec![seconds("cap", 10)],
                "cap=10s floor=0s throttled-base=1s",
            ),
            ("exponential base=1s cap=30s", vec![seconds("base", 9), seconds("cap", 5)], "base=9s cap=1m30s"),
            ("exponential base=1s cap=30s max-elapsed=10s", vec![seconds("spread", 20)], "spread=20s max-elapsed=30s"),
            (
                "exponential base=1s cap=30s spread=5s max-elapsed=10s",
                vec![seconds("max-elapsed", 2)],
                "max-elapsed=2s spread=0s",
            ),
        ] {
            let (changed, _) = changed(policy, Change::Settings(change)).unwrap();
            assert_eq!(changed, want, "{policy}");
        }
    }

    #[test]
    fn an_invalid_policy_that_no_setting_repairs_gives_no_change() {
        assert_eq!(changed("zero", [value("jitter", "full")]), None);
        assert_eq!(changed("stop", [value("base", "1s")]), None);
    }

    #[test]
    fn a_replacement_policy_is_displayed_in_full() {
        let policy: Policy = "constant base=1s".parse().unwrap();
        let text = policy.to_string();
        assert_eq!(changed("zero", policy), Some((text.clone(), text)));
    }
}
