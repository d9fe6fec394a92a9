//! The policy language: `exponential base=500ms cap=30s multiplier=2 jitter=full spread=30s max-attempts=8`.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::policy::Policy;
use crate::policy::builder::PolicyBuilder;
use crate::policy::jitter::Jitter;
use crate::profile::Profile;
use crate::text::setting::{KEYS, Key, Value};
use crate::text::{ParseError, Problem, nearest};

/// Writes the policy in one line; [`FromStr`] parses it to the same policy.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.settings.backoff.name())?;
        self.settings().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// Parses a policy in one line: the name of a backoff (`exponential`, if it is left out) or of a [`Profile`], then
/// settings as `name=value` in any order, each at most once. A setting that is left out is at its default, or as in the
/// profile, and yields to those that are given ([`PolicyBuilder`] has the rules): `exponential base=1m` has a cap of a
/// minute, not of 30 s. `1s..5s` is short for `uniform range=1s..5s`, and `decorrelated base=1s cap=30s` is short for `exponential base=1s cap=30s jitter=decorrelated`.
impl FromStr for Policy {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut draft = Draft::default();
        for (at, word) in text.split_whitespace().enumerate() {
            match word.split_once('=') {
                Some((key, value)) => draft.set(key, value)?,
                None if at == 0 => draft.backoff(word)?,
                None => return Err(ParseError::new(Problem::NoValue, word)),
            }
        }
        draft.finish()
    }
}

impl PolicyBuilder {
    /// Sets one setting by its name in the policy language: `set("base", "500ms")`.
    ///
    /// # Errors
    /// [`ParseError`] if there is no such setting, the value cannot be parsed, or the backoff does not have the
    /// setting.
    pub fn set(self, key: &str, value: &str) -> Result<Self, ParseError> {
        let mut draft = Draft::default();
        draft.set(key, value)?;
        draft.apply_to(self)
    }
}

/// The name of a backoff or profile, its settings, and the setting that has no default, with an example.
type Start = (&'static str, PolicyBuilder, Option<(Key, &'static str)>);

const BASE: Duration = Policy::DEFAULT.base();
const CAP: Duration = match Policy::DEFAULT.cap() {
    Some(cap) => cap,
    None => Duration::MAX,
};
static BACKOFFS: [Start; 8] = [
    ("exponential", Policy::exponential(BASE, CAP), None),
    ("linear", Policy::linear(BASE, BASE, CAP), None),
    ("constant", Policy::constant(Duration::ZERO), Some((Key::Base, "base, like base=5s"))),
    ("uniform", Policy::uniform(Duration::ZERO, Duration::ZERO), Some((Key::Range, "range, like range=1s..5s"))),
    (DECORRELATED, Policy::decorrelated(BASE, CAP), None),
    ("list", Policy::list(&[]), Some((Key::Delays, "delays, like delays=1s,2s,5s"))),
    ("zero", Policy::zero(), None),
    ("stop", Policy::stop(), None),
];
/// Exponential with decorrelated jitter, as [`Policy::decorrelated`] is.
const DECORRELATED: &str = "decorrelated";

/// Settings that were parsed, in any order.
#[derive(Default)]
pub(super) struct Draft {
    /// The source of every setting that is not set; exponential backoff if it is not named.
    start: Option<Start>,
    values: [Option<Value>; KEYS.len()],
}

impl Draft {
    /// Sets the backoff or the profile by its name.
    pub(super) fn backoff(&mut self, name: &str) -> Result<(), ParseError> {
        if self.start.is_some() {
            return Err(ParseError::new(Problem::Twice, "backoff"));
        }
        if name.ends_with(',') {
            return Err(ParseError::new(Problem::Comma, name));
        }
        if name.contains("..") {
            self.backoff("uniform")?;
            return self.set("range", name);
        }
        let profile = || Profile::named(name).map(|profile| (profile.name(), profile.policy().to_builder(), None));
        self.start = BACKOFFS.iter().find(|(backoff, ..)| *backoff == name).copied().or_else(profile);
        if self.start.is_none() {
            let names = BACKOFFS.iter().map(|(backoff, ..)| *backoff).chain(Profile::all().map(Profile::name));
            return Err(ParseError::new(Problem::Backoff(nearest(name, names)), name));
        }
        Ok(())
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), ParseError> {
        let (key, name) = Key::named(name)?;
        if self.value(key).is_some() {
            return Err(ParseError::new(Problem::Twice, name));
        }
        self.values[key as usize] = Some(key.parse(name, value)?);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Policy, ParseError> {
        let (backoff, builder, required) = self.start.unwrap_or(BACKOFFS[0]);
        let missing = required.filter(|(key, _)| self.value(*key).is_none());
        if let Some((_, example)) = missing {
            return Err(ParseError::new(Problem::Missing(example), backoff));
        }
        if backoff == DECORRELATED {
            for (key, name) in [(Key::Multiplier, "multiplier"), (Key::Jitter, "jitter")] {
                if !matches!(self.value(key), None | Some(Value::Jitter(Jitter::Decorrelated))) {
                    return Err(ParseError::new(Problem::NotForBackoff(backoff), name));
                }
            }
        }
        Ok(self.apply_to(builder.as_defaults())?.build()?)
    }

    fn apply_to(&self, to: PolicyBuilder) -> Result<PolicyBuilder, ParseError> {
        KEYS.iter().try_fold(to, |to, &(key, name, _)| {
            let Some(value) = self.value(key) else { return Ok(to) };
            let backoff = to.settings.backoff.name();
            to.with(key, value).ok_or(ParseError::new(Problem::NotForBackoff(backoff), name))
        })
    }

    const fn value(&self, key: Key) -> Option<Value> {
        self.values[key as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;
    use crate::policy::macros::units::secs;

    #[test]
    fn the_one_line_form_round_trips() {
        for text in [
            "exponential base=500ms cap=30s multiplier=2 jitter=full spread=30s max-attempts=8 max-elapsed=5m",
            "exponential base=100ms cap=none multiplier=1.5 jitter=±20% max-attempts=inf",
            "exponential base=1s cap=1m jitter=decorrelated max-attempts=10",
            "exponential base=1s cap=1m floor=250ms multiplier=3 jitter=equal max-attempts=2 max-hint=inf \
             hint=clamp:5s throttled-base=20s local-base=30s stable-after=10s",
            "linear base=1s step=500ms cap=10s jitter=none max-attempts=4",
            "constant base=5s jitter=equal max-attempts=4 max-hint=1h hint-spread=25%",
            "list delays=1s,2s,5s jitter=none max-attempts=4",
            "uniform range=1s..5s max-attempts=4",
            "uniform range=0s..1m30s spread=2s max-attempts=inf throttled-base=2m",
            "zero max-attempts=3",
            "stop",
        ] {
            let policy: Policy = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(policy.to_string(), text.split_whitespace().collect::<Vec<_>>().join(" "));
            assert_eq!(policy.to_builder().build(), Ok(policy));
        }
    }

    #[test]
    fn other_spellings_are_accepted_and_never_printed() {
        let policy: Policy = "exponential delay=500ms max-delay=30s factor=3 attempts=8 deadline=5m".parse().unwrap();
        assert_eq!(
            policy.to_string(),
            "exponential base=500ms cap=30s multiplier=3 jitter=full max-attempts=8 max-elapsed=5m"
        );
        assert_eq!("".parse(), Ok(Policy::DEFAULT));
        assert_eq!("base=100ms max=30s".parse(), Ok(Policy::DEFAULT));
        assert_eq!(
            "decorrelated base=1s cap=1m".parse(),
            Policy::decorrelated(secs(1), secs(60)).build().map_err(ParseError::from)
        );
        assert_eq!(
            "decorrelated base=1s cap=30s jitter=decorrelated"
                .parse::<Policy>()
                .map(|policy| policy.to_string())
                .as_deref(),
            Ok("exponential base=1s cap=30s jitter=decorrelated max-attempts=4")
        );
        assert_eq!("1s..5s max-attempts=2".parse(), "uniform range=1s..5s max-attempts=2".parse::<Policy>());
        assert_eq!("linear base=2s cap=9s".parse(), "linear base=2s step=2s cap=9s".parse::<Policy>());
    }

    #[test]
    fn errors_name_the_word_and_the_fix() {
        for (text, want) in [
            ("exponental", "`exponental` is not a backoff or a profile; did you mean `exponential`?"),
            ("fibonacci", "`fibonacci` is not a backoff; begin with exponential, linear"),
            ("tenacty", "`tenacty` is not a backoff or a profile; did you mean `tenacity`?"),
            ("constent base=1s", "did you mean `constant`?"),
            ("exponential, base=1s", "`exponential,` has a stray comma"),
            ("exponential base=1s, cap=9s", "`1s,` has a stray comma"),
            ("list delays=1s,2s,", "`1s,2s,` has a stray comma"),
            ("list delays=1s,,2s", "`1s,,2s` has a stray comma"),
            ("exponential base=-1s", "`-1s` is negative"),
            ("exponential base=", "`base` has no value"),
            ("exponential tries=3", "`tries` is not a setting; use base, cap"),
            ("decorrelated jitter=full", "`jitter` has no meaning for decorrelated backoff"),
            ("decorrelated multiplier=2", "`multiplier` has no meaning for decorrelated backoff"),
            ("exponential bse=1s", "`bse` is not a setting; did you mean `base`?"),
            ("exponential max-atempts=1", "did you mean `max-attempts`?"),
            ("exponential base", "`base` has no value; write it as name=value"),
            ("exponential base=1s delay=2s", "`base` is set twice"),
            ("exponential base=inf", "`base` must have a length"),
            ("exponential base=5x", "`5x` has a unit that is not known"),
            ("exponential max-attempts=0", "max-attempts is 0, but the first call counts: use 1"),
            ("exponential max-attempts=-1", "`-1` is not a whole number"),
            ("exponential multiplier=two", "`two` is not a number"),
            ("exponential multiplier=nan", "multiplier NaN is not a finite number of at least 1"),
            ("exponential jitter=150%", "`150%` is not a share"),
            ("exponential base=1s cap=50ms", "cap 50ms is below base 1s: raise cap or lower base"),
            ("exponential hint=perhaps", "use at-least, exact or clamp:5s"),
            ("constant", "a constant backoff needs base, like base=5s"),
            ("uniform", "a uniform backoff needs range, like range=1s..5s"),
            ("uniform range=1s", "`1s` is not a range; write it as 1s..5s"),
            ("uniform range=1s..", "`1s..` is not a range; write it as 1s..5s"),
            ("uniform range=1s..inf", "`range` must have a length"),
            ("1s..5x", "`5x` has a unit that is not known"),
            ("5s..1s", "range 5s..1s has no delay: write the shorter delay first, and end above 0s"),
            ("0s..0s", "range 0s..0s has no delay"),
            ("1s..5s range=1s..5s", "`range` is set twice"),
            ("1s..5s base=1s", "`base` has no meaning for uniform backoff"),
            ("exponential range=1s..5s", "`range` has no meaning for exponential backoff"),
            ("1s..5s jitter=none", "a uniform backoff draws from its range: drop jitter"),
            ("1s..5s jitter=polly-v8", "a uniform backoff draws from its range: drop jitter"),
            ("1s..5s cap=2s", "cap and floor are for delays that grow"),
            ("1s..5s throttled-base=2s", "throttled-base 2s is not between base 5s and cap"),
            ("1s..5s max-elapsed=500ms", "max-elapsed 500ms ends before the first retry can start"),
            ("list", "a list backoff needs delays, like delays=1s,2s,5s"),
            ("constant base=1s multiplier=2", "`multiplier` has no meaning for constant backoff"),
            ("list delays=1ns,1h", "have no common unit"),
            ("list delays=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "more than 16 delays"),
        ] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let error =
            "exponential base=1s cap=50ms max-attempts=0 spread=1m max-elapsed=10s".parse::<Policy>().unwrap_err();
        assert_eq!(error.policy_error().unwrap().problems().count(), 3);
        assert_eq!(error.to_string().matches("; ").count(), 2, "{error}");
    }
}
