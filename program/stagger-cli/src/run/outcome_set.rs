use core::ops::RangeInclusive;
use core::str::FromStr;

use super::status::{AttemptStatus, parse_signal};

/// A set of outcomes, as passed to `--retry-on`, `--stop-on` and `--until`: `1,7,52-56`, `fail,!2`, `timeout`,
/// `SIGKILL`, `any`.
///
/// The set is the union of its elements, minus those prefixed with `!`, in any order. If all elements are prefixed with
/// `!`, they are subtracted from `any`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutcomeSet {
    included: Vec<Matcher>,
    excluded: Vec<Matcher>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Matcher {
    Codes(RangeInclusive<u8>),
    Success,
    Fail,
    Timeout,
    AnySignal,
    Signal(i32),
    Any,
    Nothing,
}

impl OutcomeSet {
    pub(super) fn contains(&self, status: AttemptStatus) -> bool {
        self.included.iter().any(|term| term.contains(status))
            && !self.excluded.iter().any(|term| term.contains(status))
    }

    /// Returns whether the outcome is in the set by its exit code or signal name, not only as part of a category.
    pub(super) fn names_explicitly(&self, status: AttemptStatus) -> bool {
        let named = |term: &&Matcher| matches!(term, Matcher::Codes(_) | Matcher::Signal(_));
        self.contains(status) && self.included.iter().filter(named).any(|term| term.contains(status))
    }
}

impl FromStr for OutcomeSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut set = Self { included: Vec::new(), excluded: Vec::new() };
        for word in text.split(',').map(str::trim) {
            match word.strip_prefix('!') {
                Some(rest) => set.excluded.push(rest.parse()?),
                None => set.included.push(word.parse()?),
            }
        }
        if set.included.is_empty() {
            set.included.push(Matcher::Any);
        }
        Ok(set)
    }
}

impl Matcher {
    fn contains(&self, status: AttemptStatus) -> bool {
        match self {
            Self::Codes(codes) => {
                matches!(status, AttemptStatus::Exit(_) | AttemptStatus::NotRun(_)) && codes.contains(&status.code())
            }
            Self::Success => status == AttemptStatus::Exit(0),
            Self::Fail => matches!(status, AttemptStatus::Exit(1..) | AttemptStatus::NotRun(_)),
            Self::Timeout => status == AttemptStatus::Timeout,
            Self::AnySignal => matches!(status, AttemptStatus::Signal(_)),
            Self::Signal(signal) => status == AttemptStatus::Signal(*signal),
            Self::Any => true,
            Self::Nothing => false,
        }
    }
}

impl FromStr for Matcher {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let codes = |text: &str| -> Option<RangeInclusive<u8>> {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(first..=last)
        };
        Ok(match word {
            "success" => Self::Success,
            "fail" => Self::Fail,
            "timeout" => Self::Timeout,
            "signal" => Self::AnySignal,
            "any" => Self::Any,
            "none" => Self::Nothing,
            _ => match (codes(word), parse_signal(word)) {
                // A bare number is an exit code, never a signal.
                (Some(codes), _) => Self::Codes(codes),
                (None, Some(signal)) => Self::Signal(signal),
                (None, None) => {
                    return Err(format!(
                        "unknown outcome `{word}`; use exit codes (1,7,52-56), fail, success, timeout, signal, a \
                         signal \
                         name like SIGKILL, any or none; prefix with ! to exclude"
                    ));
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::status::NotRun;

    #[test]
    fn a_set_contains_its_elements() {
        let statuses = [
            AttemptStatus::Exit(0),
            AttemptStatus::Exit(2),
            AttemptStatus::Exit(54),
            AttemptStatus::Signal(9),
            AttemptStatus::Timeout,
            AttemptStatus::NotRun(NotRun::NotFound),
        ];
        for (text, want) in [
            ("2", [false, true, false, false, false, false]),
            ("1,7,52-56", [false, false, true, false, false, false]),
            ("fail", [false, true, true, false, false, true]),
            ("fail,!2", [false, false, true, false, false, true]),
            ("!2,fail", [false, false, true, false, false, true]),
            ("!2", [true, false, true, true, true, true]),
            ("success", [true, false, false, false, false, false]),
            ("timeout, signal", [false, false, false, true, true, false]),
            ("SIGKILL", [false, false, false, true, false, false]),
            ("term", [false; 6]),
            ("127", [false, false, false, false, false, true]),
            ("9", [false; 6]),
            ("any", [true; 6]),
            ("none", [false; 6]),
        ] {
            let set: OutcomeSet = text.parse().unwrap();
            assert_eq!(statuses.map(|status| set.contains(status)), want, "{text}");
        }
    }

    #[test]
    fn only_an_exit_code_or_signal_name_is_explicit() {
        let missing = AttemptStatus::NotRun(NotRun::NotFound);
        for (text, want) in
            [("127", true), ("100-127", true), ("any", false), ("fail", false), ("any,127", true), ("127,!127", false)]
        {
            assert_eq!(text.parse::<OutcomeSet>().unwrap().names_explicitly(missing), want, "{text}");
        }
    }

    #[test]
    fn an_unknown_outcome_is_quoted_in_the_error() {
        for (text, word) in [
            ("fial", "fial"),
            ("1,,2", ""),
            ("256", "256"),
            ("9-3", "9-3"),
            ("1-2-3", "1-2-3"),
            ("!", ""),
            ("!!2", "!2"),
            ("-1", "-1"),
        ] {
            let error = text.parse::<OutcomeSet>().unwrap_err();
            assert!(error.starts_with(&format!("unknown outcome `{word}`; use exit codes")), "{text}: {error}");
        }
    }
}
