//! The settings of the policy language: their names and their values.

use core::fmt;
use core::time::Duration;

use crate::numbers::ratio::Ratio;
use crate::policy::Policy;
use crate::policy::backoff::{Backoff, DelayList};
use crate::policy::builder::{DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_HINT, PolicyBuilder, Settings};
use crate::policy::hint_mode::HintMode;
use crate::policy::jitter::Jitter;
use crate::text::{Compact, ParseError, Problem, nearest, parse_duration};

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
                let same = ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, ours)| *ours);
                Err(ParseError::new(Problem::Key(same.or_else(|| nearest(name, names))), name))
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
                parse_duration(value)?.map_or(Value::Unlimited("inf"), Value::Length)
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

impl Settings {
    fn printed(&self, key: Key) -> Option<Value> {
        let backoff = &self.backoff;
        let grows = matches!(backoff, Backoff::Linear { .. } | Backoff::Exponential { .. });
        let has_delays = !matches!(backoff, Backoff::Zero | Backoff::Stop);
        let longer_than_none = |length: Duration| if length.is_zero() { None } else { Some(Value::Length(length)) };
        match (key, backoff) {
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
            (Key::Cap, _) => match self.cap {
                Some(cap) => Some(Value::Length(cap)),
                None => grows.then_some(Value::Unlimited("none")),
            },
            (Key::Floor, _) => longer_than_none(self.floor),
            (Key::Jitter, _) => has_delays.then_some(Value::Jitter(self.jitter())),
            (Key::Spread, _) => longer_than_none(self.spread),
            (Key::MaxAttempts, Backoff::Stop) if self.max_attempts == Some(DEFAULT_MAX_ATTEMPTS) => None,
            (Key::MaxAttempts, _) => Some(self.max_attempts.map_or(Value::Unlimited("inf"), Value::Count)),
            (Key::MaxElapsed, _) => self.max_elapsed.map(Value::Length),
            (Key::MaxHint, _) if self.max_hint == Some(DEFAULT_MAX_HINT) => None,
            (Key::MaxHint, _) => Some(self.max_hint.map_or(Value::Unlimited("inf"), Value::Length)),
            (Key::Hint, _) => (self.hint_mode != HintMode::AtLeast).then_some(Value::Mode(self.hint_mode)),
            (Key::HintSpread, _) => self.hint_spread.map(Value::Share),
            (Key::ThrottledBase, _) => self.throttled_base.map(Value::Length),
            (Key::LocalBase, _) => self.local_base.map(Value::Length),
            (Key::StableAfter, _) => self.stable_after.map(Value::Length),
        }
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
