//! The policy language: `exponential base=500ms cap=30s multiplier=2 jitter=full spread=30s max-attempts=8`.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::{Compact, ParseError, Problem, nearest, parse_duration};
use crate::numbers::ratio::Ratio;
use crate::policy::settings::{DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_HINT};
use crate::policy::{Backoff, DelayList, HintMode, Jitter, Policy, PolicyBuilder, PolicySettings};
use crate::profile::Profile;

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
/// minute, not of 30 s. `1s..5s` is short for `uniform range=1s..5s`, and `decorrelated base=1s cap=30s` is short for
/// `exponential base=1s cap=30s jitter=decorrelated`.
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

/// Returns the names of the backoffs, for completions.
pub fn backoff_names() -> impl Iterator<Item = &'static str> {
    BACKOFFS.iter().map(|(name, ..)| *name)
}
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
        if let Some(backoff) = BACKOFFS.iter().find(|(backoff, ..)| *backoff == name) {
            self.start = Some(*backoff);
            return Ok(());
        }
        if let Some(profile) = Profile::named(name) {
            self.start = Some((profile.name(), profile.policy().to_builder(), None));
            return Ok(());
        }
        let names = backoff_names().chain(Profile::all().map(Profile::name));
        Err(ParseError::new(Problem::Backoff(nearest(name, names)), name))
    }

    /// Returns what is wrong with a word that is not the first and has no `=`.
    fn unnamed(&self, word: &str) -> Problem {
        let Some((backoff, ..)) = self.start else { return Problem::NoValue };
        let (key, name) = match backoff {
            "uniform" => (Key::Range, "range"),
            "list" => (Key::Delays, "delays"),
            _ => (Key::Base, "base"),
        };
        if key.parse(name, word).is_ok() { Problem::NoName(name) } else { Problem::NoValue }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), ParseError> {
        if counts_retries(name) {
            let attempts = match value.parse::<u32>() {
                Ok(retries) => retries.checked_add(1),
                Err(_) => None,
            };
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
        match required {
            Some((key, example)) if self.value(key).is_none() => {
                return Err(ParseError::new(Problem::Missing(example), backoff));
            }
            _ => {}
        }
        // `build` knows decorrelated as a jitter only, and would accept another jitter in its place.
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
        // `KEYS` has an entry for each variant, so the index is in range.
        self.values[key as usize]
    }
}

/// The name of every setting, and other spellings that are accepted and never printed.
pub(super) const KEYS: [(Key, &str, &[&str]); 17] = [
    (Key::Base, "base", &["delay"]),
    (Key::Step, "step", &[]),
    (Key::Range, "range", &[]),
    (Key::Cap, "cap", &["max", "max-delay"]),
    (Key::Floor, "floor", &[]),
    (Key::Multiplier, "multiplier", &["factor"]),
    (Key::Delays, "delays", &[]),
    (Key::Jitter, "jitter", &[]),
    (Key::Spread, "spread", &[]),
    (Key::MaxAttempts, "max-attempts", &["attempts"]),
    (Key::MaxElapsed, "max-elapsed", &["deadline"]),
    (Key::MaxHint, "max-hint", &[]),
    (Key::Hint, "hint", &[]),
    (Key::HintSpread, "hint-spread", &[]),
    (Key::ThrottledBase, "throttled-base", &[]),
    (Key::LocalBase, "local-base", &[]),
    (Key::StableAfter, "stable-after", &["reset-after"]),
];

/// Names that other libraries give to a setting: not accepted, because their meaning may differ, but suggested.
const ELSEWHERE: [(&str, &str); 11] = [
    ("initial", "base"),
    ("initial-delay", "base"),
    ("initial-interval", "base"),
    ("initial-backoff", "base"),
    ("interval", "base"),
    ("min-delay", "base"),
    ("max-interval", "cap"),
    ("max-backoff", "cap"),
    ("max-wait", "cap"),
    ("exponent", "multiplier"),
    ("tries", "max-attempts"),
];

/// Returns whether a setting of this name would count retries, where ours counts attempts.
pub(super) fn counts_retries(name: &str) -> bool {
    matches!(name, "retries" | "retry" | "max-retries" | "max_retries" | "max-retry" | "retry-count" | "retry-limit")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Base,
    Step,
    Range,
    Cap,
    Floor,
    Multiplier,
    Delays,
    Jitter,
    Spread,
    MaxAttempts,
    MaxElapsed,
    MaxHint,
    Hint,
    HintSpread,
    ThrottledBase,
    LocalBase,
    StableAfter,
}

/// The value of a setting, as it is printed and as configuration files hold it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Length(Duration),
    Range(Duration, Duration),
    Count(u32),
    Number(f64),
    List(DelayList),
    Jitter(Jitter),
    Mode(HintMode),
    Share(Ratio),
    /// No limit, in the word for this setting.
    Unlimited(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => Compact(*length).fmt(f),
            Self::Range(min, max) => write!(f, "{}..{}", Compact(*min), Compact(*max)),
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::List(list) => list.fmt(f),
            Self::Jitter(jitter) => jitter.fmt(f),
            Self::Mode(mode) => mode.fmt(f),
            Self::Share(share) => share.fmt(f),
            Self::Unlimited(word) => f.write_str(word),
        }
    }
}

impl Key {
    /// Returns the setting with this name, and the name that is printed.
    pub(super) fn named(name: &str) -> Result<(Self, &'static str), ParseError> {
        match KEYS.iter().find(|(_, key, others)| *key == name || others.contains(&name)) {
            Some(&(key, name, _)) => Ok((key, name)),
            None => {
                let names = KEYS.iter().flat_map(|(_, name, others)| [*name].into_iter().chain(others.iter().copied()));
                let meant = match ELSEWHERE.iter().find(|(other, _)| *other == name) {
                    Some((_, ours)) => Some(*ours),
                    None => nearest(name, names),
                };
                Err(ParseError::new(Problem::Key(meant), name))
            }
        }
    }

    /// Parses a value of this setting.
    pub(super) fn parse(self, name: &str, value: &str) -> Result<Value, ParseError> {
        if value.is_empty() {
            return Err(ParseError::new(Problem::NoValue, name));
        }
        if value.ends_with(',') {
            return Err(ParseError::new(Problem::Comma, value));
        }
        Ok(match self {
            Self::Base | Self::Step | Self::Floor | Self::Spread | Self::ThrottledBase | Self::LocalBase => {
                Value::Length(parse_duration(value)?.ok_or(ParseError::new(Problem::Limitless, name))?)
            }
            Self::Cap | Self::MaxElapsed | Self::MaxHint | Self::StableAfter => {
                length_or("inf", parse_duration(value)?)
            }
            Self::MaxAttempts if matches!(value, "inf" | "none" | "infinite" | "unlimited") => Value::Unlimited("inf"),
            Self::MaxAttempts => Value::Count(value.parse().map_err(|_| ParseError::new(Problem::Number, value))?),
            Self::Multiplier => Value::Number(value.parse().map_err(|_| ParseError::new(Problem::Multiplier, value))?),
            Self::Range => range(value)?,
            Self::Delays => list(value)?,
            Self::Jitter => Value::Jitter(value.parse()?),
            Self::Hint => Value::Mode(value.parse()?),
            Self::HintSpread => Value::Share(value.parse()?),
        })
    }
}

impl PolicyBuilder {
    /// Sets a value that was parsed for this setting; `None` if the backoff does not have the setting.
    pub(super) const fn with(mut self, key: Key, value: Value) -> Option<Self> {
        let backoff = &mut self.settings.backoff;
        Some(match (key, value, backoff) {
            (
                Key::Base,
                Value::Length(base),
                Backoff::Constant { .. } | Backoff::Linear { .. } | Backoff::Exponential { .. },
            ) => self.base(base),
            (Key::Step, Value::Length(step), Backoff::Linear { .. }) => self.step(step),
            (Key::Range, Value::Range(min, max), Backoff::Uniform { .. }) => self.range(min, max),
            (Key::Multiplier, Value::Number(factor), Backoff::Exponential { .. }) => self.multiplier(factor),
            (Key::Delays, Value::List(list), Backoff::List(delays)) => {
                *delays = list;
                self
            }
            (Key::Cap, Value::Length(cap), _) => self.cap(cap),
            (Key::Cap, ..) => self.uncapped(),
            (Key::Floor, Value::Length(floor), _) => self.floor(floor),
            (Key::Jitter, Value::Jitter(jitter), _) => self.jitter(jitter),
            (Key::Spread, Value::Length(spread), _) => self.spread(spread),
            (Key::MaxAttempts, Value::Count(attempts), _) => self.max_attempts(attempts),
            (Key::MaxAttempts, ..) => self.unlimited_attempts(),
            (Key::MaxElapsed, Value::Length(limit), _) => self.max_elapsed(limit),
            (Key::MaxElapsed, ..) => self.unlimited_elapsed(),
            (Key::MaxHint, Value::Length(longest), _) => self.max_hint(longest),
            (Key::MaxHint, ..) => self.unlimited_hint(),
            (Key::Hint, Value::Mode(mode), _) => self.hint_mode(mode),
            (Key::HintSpread, Value::Share(share), _) => self.hint_spread(share),
            (Key::ThrottledBase, Value::Length(base), _) => self.throttled_base(base),
            (Key::LocalBase, Value::Length(base), _) => self.local_base(base),
            (Key::StableAfter, Value::Length(lived), _) => self.stable_after(lived),
            (Key::StableAfter, ..) => self.never_stable(),
            _ => return None,
        })
    }
}

impl Policy {
    /// Returns every setting that is printed, in print order. Settings at their default are left out, except for those
    /// that characterize the policy.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        KEYS.iter().filter_map(|&(key, name, _)| Some((name, self.settings.printed(key)?)))
    }
}

impl PolicySettings {
    fn printed(&self, key: Key) -> Option<Value> {
        let backoff = &self.backoff;
        let grows = matches!(backoff, Backoff::Linear { .. } | Backoff::Exponential { .. });
        let has_delays = !matches!(backoff, Backoff::Zero | Backoff::Stop);
        let longer_than_none = |length: Duration| if length.is_zero() { None } else { Some(Value::Length(length)) };
        match (key, backoff) {
            // The parts of a backoff, each of which only some backoffs have.
            (Key::Base, Backoff::Constant { .. } | Backoff::Linear { .. } | Backoff::Exponential { .. }) => {
                Some(Value::Length(self.base()))
            }
            (Key::Step, Backoff::Linear { step, .. }) => Some(Value::Length(*step)),
            (Key::Range, Backoff::Uniform { min, max }) => Some(Value::Range(*min, *max)),
            (Key::Multiplier, Backoff::Exponential { multiplier, .. }) if self.jitter() != Jitter::Decorrelated => {
                Some(Value::Number(*multiplier))
            }
            (Key::Delays, Backoff::List(list)) => Some(Value::List(*list)),
            (Key::Base | Key::Step | Key::Range | Key::Multiplier | Key::Delays, _)
            | (Key::Jitter, Backoff::Uniform { .. }) => None,
            // `cap=none` is printed, because the policies that grow have a cap by default.
            (Key::Cap, _) if self.cap.is_none() && !grows => None,
            (Key::Cap, _) => Some(length_or("none", self.cap)),
            (Key::Floor, _) => longer_than_none(self.floor),
            (Key::Jitter, _) if !has_delays => None,
            (Key::Jitter, _) => Some(Value::Jitter(self.jitter())),
            (Key::Spread, _) => longer_than_none(self.spread),
            (Key::MaxAttempts, Backoff::Stop) if self.max_attempts == Some(DEFAULT_MAX_ATTEMPTS) => None,
            (Key::MaxAttempts, _) => match self.max_attempts {
                Some(attempts) => Some(Value::Count(attempts)),
                None => Some(Value::Unlimited("inf")),
            },
            (Key::MaxElapsed, _) => self.max_elapsed.map(Value::Length),
            (Key::MaxHint, _) if self.max_hint == Some(DEFAULT_MAX_HINT) => None,
            (Key::MaxHint, _) => Some(length_or("inf", self.max_hint)),
            (Key::Hint, _) if self.hint_mode == HintMode::AtLeast => None,
            (Key::Hint, _) => Some(Value::Mode(self.hint_mode)),
            (Key::HintSpread, _) => self.hint_spread.map(Value::Share),
            (Key::ThrottledBase, _) => self.throttled_base.map(Value::Length),
            (Key::LocalBase, _) => self.local_base.map(Value::Length),
            (Key::StableAfter, _) => self.stable_after.map(Value::Length),
        }
    }
}

/// Returns the value of a setting without a limit that is written as `unlimited`, if there is no length.
fn length_or(unlimited: &'static str, length: Option<Duration>) -> Value {
    match length {
        Some(length) => Value::Length(length),
        None => Value::Unlimited(unlimited),
    }
}

/// Writes `1s,2s,5s`.
impl fmt::Display for DelayList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, delay) in self.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { "," }, Compact(delay))?;
        }
        Ok(())
    }
}

/// Parses `1s..5s`.
fn range(value: &str) -> Result<Value, ParseError> {
    let (min, max) = value.split_once("..").ok_or(ParseError::new(Problem::Range, value))?;
    let length = |text: &str| match text.trim() {
        "" => Err(ParseError::new(Problem::Range, value)),
        text => parse_duration(text)?.ok_or(ParseError::new(Problem::Limitless, "range")),
    };
    Ok(Value::Range(length(min)?, length(max)?))
}

fn list(value: &str) -> Result<Value, ParseError> {
    let mut delays = [Duration::ZERO; DelayList::MAX_LEN];
    let mut len = 0;
    for text in value.split(',') {
        if text.trim().is_empty() {
            return Err(ParseError::new(Problem::Comma, value));
        }
        let slot = delays.get_mut(len).ok_or(ParseError::new(Problem::TooLong, value))?;
        *slot = parse_duration(text)?.ok_or(ParseError::new(Problem::Limitless, text))?;
        len += 1;
    }
    DelayList::new(&delays[..len]).map(Value::List).ok_or(ParseError::new(Problem::NoUnit, value))
}
