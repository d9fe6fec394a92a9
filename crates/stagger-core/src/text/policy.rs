//! The policy language: `exponential base=500ms cap=30s multiplier=2 jitter=full spread=30s max-attempts=8`.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::policy::Policy;
use crate::policy::builder::PolicyBuilder;
use crate::policy::jitter::Jitter;
use crate::profile::Profile;
use crate::text::setting::{KEYS, Key, Value, counts_retries};
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
                None => return Err(ParseError::new(draft.unnamed(word), word)),
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

    /// Returns what is wrong with a word that is not the first and has no `=`.
    fn unnamed(&self, word: &str) -> Problem {
        let backoff = self.start.map_or("", |(backoff, ..)| backoff);
        let key = match backoff {
            "uniform" => Key::Range,
            "list" => Key::Delays,
            _ => Key::Base,
        };
        let name = KEYS.iter().find(|(other, ..)| *other == key).map(|(_, name, _)| *name);
        match name {
            Some(name) if !backoff.is_empty() && key.parse(name, word).is_ok() => Problem::NoName(name),
            _ => Problem::NoValue,
        }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), ParseError> {
        if counts_retries(name) {
            let attempts = value.parse::<u32>().ok().and_then(|retries| retries.checked_add(1));
            return Err(ParseError::new(Problem::Retries(attempts), name));
        }
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
