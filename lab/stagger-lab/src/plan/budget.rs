use core::time::Duration;

use stagger_config::RetryBudget;
use stagger_core::text::{nearest, parse_duration, parse_number};

/// The budgets that a configuration of another system may have, with their settings, as `simulate --guards` has them.
const BUDGETS: [(&str, &[&str]); 5] = [
    ("none", &[]),
    ("concurrent", &["ratio", "floor"]),
    ("throttle", &["max-tokens", "token-ratio"]),
    ("window", &["ttl", "ratio", "min-per-second"]),
    ("tokens", &["capacity"]),
];

/// Parses a budget such as `throttle max-tokens=100 token-ratio=10%`. Settings that are left out have the defaults of
/// `simulate --guards`.
pub(super) fn parse(text: &str) -> Result<RetryBudget, String> {
    let mut words = text.split_whitespace();
    let keyword = words.next().unwrap_or_default();
    let Some((_, known)) = BUDGETS.iter().find(|(name, _)| *name == keyword) else {
        return Err(unknown(keyword, BUDGETS.iter().map(|(name, _)| *name), "a budget that a configuration can have"));
    };
    let mut settings = Vec::new();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` has no value; write {word}=VALUE"))?;
        if !known.contains(&name) {
            return Err(unknown(name, known.iter().copied(), &format!("a setting of {keyword}")));
        }
        if settings.iter().any(|(given, _)| *given == name) {
            return Err(format!("`{name}` is set twice; keep one of them"));
        }
        settings.push((name, value));
    }
    let value = |name: &str| settings.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
    let count = |name, default| value(name).map_or(Ok(default), count);
    let share = |name, default| value(name).map_or(Ok(default), share);
    Ok(match keyword {
        "concurrent" => match (share("ratio", 0.2)?, count("floor", 3)?) {
            (0.0, retries) => RetryBudget::Concurrent(retries),
            (ratio, least) => RetryBudget::ShareOfActive { ratio, least },
        },
        "throttle" => {
            RetryBudget::Throttle { tokens: f64::from(count("max-tokens", 10)?), ratio: share("token-ratio", 0.1)? }
        }
        "window" => RetryBudget::Ratio {
            ratio: share("ratio", 0.2)?,
            least_per_second: f64::from(count("min-per-second", 10)?),
            period: value("ttl").map_or(Ok(Duration::from_secs(10)), length)?,
        },
        "tokens" => RetryBudget::Tokens { capacity: count("capacity", 500)? },
        _ => RetryBudget::Unlimited,
    })
}

fn unknown(word: &str, known: impl Iterator<Item = &'static str> + Clone, what: &str) -> String {
    let known_words: Vec<_> = known.clone().collect();
    let remedy = match nearest(word, known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None if known_words.is_empty() => "it has none".to_owned(),
        None => format!("expected one of {}", known_words.join(", ")),
    };
    format!("`{word}` is not {what}; {remedy}")
}

fn count(text: &str) -> Result<u32, String> {
    let number = parse_number(text).ok().filter(|number| number.fract() == 0.0 && *number <= f64::from(u32::MAX));
    number.map(|number| number as u32).ok_or_else(|| format!("`{text}` is not a whole number, such as 100"))
}

fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    let share = parse_number(number).ok().map(|number| number / whole);
    share.ok_or_else(|| format!("`{text}` is not a share, such as 10% or 0.1"))
}

pub(super) fn length(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Some(length)) if !length.is_zero() => Ok(length),
        Ok(_) => Err("a length above zero is required; leave the flag out for no limit".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_written_as_guards_are() {
        for (text, want) in [
            ("none", RetryBudget::Unlimited),
            ("concurrent ratio=0 floor=8", RetryBudget::Concurrent(8)),
            ("concurrent", RetryBudget::ShareOfActive { ratio: 0.2, least: 3 }),
            ("throttle max-tokens=100 token-ratio=5%", RetryBudget::Throttle { tokens: 100.0, ratio: 0.05 }),
            (
                "window ttl=1s",
                RetryBudget::Ratio { ratio: 0.2, least_per_second: 10.0, period: Duration::from_secs(1) },
            ),
            ("tokens capacity=1k", RetryBudget::Tokens { capacity: 1_000 }),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn an_error_says_what_is_expected() {
        for (text, want) in [
            ("throtle", "did you mean `throttle`?"),
            ("breaker", "`breaker` is not a budget that a configuration can have; expected one of none, concurrent"),
            ("", "expected one of none"),
            ("none a=1", "`a` is not a setting of none; it has none"),
            ("throttle tokens=3", "`tokens` is not a setting of throttle; expected one of max-tokens, token-ratio"),
            ("concurrent floor", "`floor` has no value; write floor=VALUE"),
            ("concurrent floor=1 floor=2", "`floor` is set twice"),
            ("concurrent floor=1.5", "`1.5` is not a whole number"),
            ("concurrent ratio=x", "`x` is not a share"),
            ("window ttl=0s", "a length above zero"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
