use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, PolicyProblem};

/// A change of a policy, in words of the policy language.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// These settings have these values.
    Settings(Vec<(&'static str, String)>),
    /// It is another policy altogether.
    Whole(Box<Policy>),
}

impl<const N: usize> From<[(&'static str, String); N]> for Change {
    fn from(settings: [(&'static str, String); N]) -> Self {
        Self::Settings(settings.into())
    }
}

impl From<Policy> for Change {
    fn from(policy: Policy) -> Self {
        Self::Whole(Box::new(policy))
    }
}

/// A setting that is a length of time.
pub(super) fn length(key: &'static str, length: Duration) -> (&'static str, String) {
    (key, Compact(length).to_string())
}

/// The delays of a list; a second where there are none.
pub(super) fn delays(list: impl Iterator<Item = Duration>) -> (&'static str, String) {
    let told: Vec<String> = list.map(|delay| Compact(delay).to_string()).collect();
    ("delays", if told.is_empty() { "1s".to_owned() } else { told.join(",") })
}

/// A setting that is a word or a number.
pub(super) fn word(key: &'static str, value: impl fmt::Display) -> (&'static str, String) {
    (key, value.to_string())
}

/// How many of the other settings a change may have to take along.
const MOST_REPAIRS: usize = 6;

impl Change {
    /// The policy with this change, and the change with what it has to take along to make sense. `None` if it never
    /// does.
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
                    let fault = error.problems().next()?;
                    let repair = repair(fault, settings, policy)?;
                    // What has been repaired already is no help a second time.
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

/// What another setting has to be for a change to make sense; `None` if that is not a matter of one setting.
fn repair(
    fault: PolicyProblem,
    settings: &[(&'static str, String)],
    policy: &Policy,
) -> Option<(&'static str, String)> {
    let asked = |key: &str| {
        let (_, value) = settings.iter().find(|(name, _)| *name == key)?;
        stagger_core::text::parse_duration(value).ok()?
    };
    let base = asked("base").unwrap_or(policy.base());
    let spread = asked("spread").unwrap_or(policy.spread());
    Some(match fault {
        PolicyProblem::CapBelowBase => length("cap", base.saturating_mul(10)),
        PolicyProblem::FloorAboveCap => length("floor", Duration::ZERO),
        PolicyProblem::ThrottledBase => length("throttled-base", base),
        PolicyProblem::LocalBase => length("local-base", base),
        PolicyProblem::SpreadAboveElapsed if asked("spread").is_some() => {
            length("max-elapsed", spread.saturating_add(policy.max_elapsed()?))
        }
        PolicyProblem::SpreadAboveElapsed => length("spread", Duration::ZERO),
        PolicyProblem::ElapsedBelowBase => word("max-attempts", 1),
        _ => return None,
    })
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(policy) => policy.fmt(f),
            Self::Settings(settings) => settings
                .iter()
                .enumerate()
                .try_for_each(|(at, (key, value))| write!(f, "{}{key}={value}", if at == 0 { "" } else { " " })),
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
    fn a_change_takes_along_what_it_needs_to_make_sense() {
        for (policy, change, want) in [
            ("exponential base=1s cap=5s", vec![length("base", Duration::from_secs(9))], "base=9s cap=1m30s"),
            (
                "exponential base=1s cap=30s throttled-base=20s floor=15s",
                vec![length("cap", Duration::from_secs(10))],
                "cap=10s floor=0s throttled-base=1s",
            ),
            (
                "exponential base=1s cap=30s",
                vec![length("base", Duration::from_secs(9)), length("cap", Duration::from_secs(5))],
                "base=9s cap=1m30s",
            ),
            (
                "exponential base=1s cap=30s max-elapsed=10s",
                vec![length("spread", Duration::from_secs(20))],
                "spread=20s max-elapsed=30s",
            ),
            (
                "exponential base=1s cap=30s spread=5s max-elapsed=10s",
                vec![length("max-elapsed", Duration::from_secs(2))],
                "max-elapsed=2s spread=0s",
            ),
        ] {
            assert_eq!(
                changed(policy, Change::Settings(change)).map(|(change, _)| change).as_deref(),
                Some(want),
                "{policy}"
            );
        }
    }

    #[test]
    fn what_no_setting_can_repair_is_no_change() {
        assert_eq!(changed("zero", [word("jitter", "full")]), None);
        assert_eq!(changed("stop", [word("base", "1s")]), None);
    }

    #[test]
    fn another_policy_is_told_in_full() {
        let policy: Policy = "constant base=1s".parse().unwrap();
        let text = policy.to_string();
        assert_eq!(changed("zero", policy), Some((text.clone(), text)));
    }
}
