use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use super::ended::{Ended, parse_signal};

/// A set of results, in the language of `--retry-on`, `--stop-on` and `--until`: `1,7,52-56`, `fail,!2`, `timeout`,
/// `SIGKILL`, `any`.
///
/// The terms are united; those with `!` are then taken away, wherever they stand. A set of nothing but `!` terms
/// starts from `any`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    included: Vec<Term>,
    excluded: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Codes(RangeInclusive<u8>),
    Success,
    Fail,
    Timeout,
    AnySignal,
    Signal(i32),
    Any,
    Nothing,
}

/// A word that is in no language of sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetError {
    word: String,
}

impl Set {
    pub(super) fn contains(&self, ended: Ended) -> bool {
        self.included.iter().any(|term| term.contains(ended)) && !self.excluded.iter().any(|term| term.contains(ended))
    }

    /// Whether the result is in the set by its own number or name, not only as one of a kind.
    pub(super) fn names(&self, ended: Ended) -> bool {
        let named = |term: &&Term| matches!(term, Term::Codes(_) | Term::Signal(_));
        self.contains(ended) && self.included.iter().filter(named).any(|term| term.contains(ended))
    }
}

impl FromStr for Set {
    type Err = SetError;

    fn from_str(text: &str) -> Result<Self, SetError> {
        let mut set = Self { included: Vec::new(), excluded: Vec::new() };
        for word in text.split(',').map(str::trim) {
            match word.strip_prefix('!') {
                Some(rest) => set.excluded.push(rest.parse()?),
                None => set.included.push(word.parse()?),
            }
        }
        if set.included.is_empty() {
            set.included.push(Term::Any);
        }
        Ok(set)
    }
}

impl Term {
    fn contains(&self, ended: Ended) -> bool {
        match self {
            Self::Codes(codes) => matches!(ended, Ended::Exit(_) | Ended::NotRun(_)) && codes.contains(&ended.code()),
            Self::Success => ended == Ended::Exit(0),
            Self::Fail => matches!(ended, Ended::Exit(1..) | Ended::NotRun(_)),
            Self::Timeout => ended == Ended::Timeout,
            Self::AnySignal => matches!(ended, Ended::Signal(_)),
            Self::Signal(signal) => ended == Ended::Signal(*signal),
            Self::Any => true,
            Self::Nothing => false,
        }
    }
}

impl FromStr for Term {
    type Err = SetError;

    fn from_str(word: &str) -> Result<Self, SetError> {
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
                (None, None) => return Err(SetError { word: word.to_owned() }),
            },
        })
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no result; name exit codes (1,7,52-56), fail, success, timeout, signal, a signal like SIGKILL, \
             any or none, and put ! before what shall be left out",
            self.word
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::ended::NotRun;
    use super::*;

    #[test]
    fn a_set_holds_what_it_names() {
        let ends = [
            Ended::Exit(0),
            Ended::Exit(2),
            Ended::Exit(54),
            Ended::Signal(9),
            Ended::Timeout,
            Ended::NotRun(NotRun::Missing),
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
            let set: Set = text.parse().unwrap();
            assert_eq!(ends.map(|ended| set.contains(ended)), want, "{text}");
        }
    }

    #[test]
    fn only_a_number_or_a_name_names() {
        let missing = Ended::NotRun(NotRun::Missing);
        for (text, want) in
            [("127", true), ("100-127", true), ("any", false), ("fail", false), ("any,127", true), ("127,!127", false)]
        {
            assert_eq!(text.parse::<Set>().unwrap().names(missing), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_result_is_named_in_the_error() {
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
            let error = text.parse::<Set>().unwrap_err();
            assert_eq!(error.word, word, "{text}");
            assert!(error.to_string().contains("name exit codes"), "{error}");
        }
    }
}
