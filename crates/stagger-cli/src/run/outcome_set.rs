use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use super::status::{AttemptStatus, parse_signal};

/// A set of results, in the language of `--retry-on`, `--stop-on` and `--until`: `1,7,52-56`, `fail,!2`, `timeout`,
/// `SIGKILL`, `any`.
///
/// The terms are united; those with `!` are then taken away, wherever they stand. A set of nothing but `!` terms
/// starts from `any`.
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

/// A word that is in no language of sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnknownOutcome {
    word: String,
}

impl OutcomeSet {
    pub(super) fn contains(&self, status: AttemptStatus) -> bool {
        self.included.iter().any(|term| term.contains(status)) && !self.excluded.iter().any(|term| term.contains(status))
    }

    /// Whether the result is in the set by its own number or name, not only as one of a kind.
    pub(super) fn names_explicitly(&self, status: AttemptStatus) -> bool {
        let named = |term: &&Matcher| matches!(term, Matcher::Codes(_) | Matcher::Signal(_));
        self.contains(status) && self.included.iter().filter(named).any(|term| term.contains(status))
    }
}

impl FromStr for OutcomeSet {
    type Err = UnknownOutcome;

    fn from_str(text: &str) -> Result<Self, UnknownOutcome> {
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
    type Err = UnknownOutcome;

    fn from_str(word: &str) -> Result<Self, UnknownOutcome> {
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
                (None, None) => return Err(UnknownOutcome { word: word.to_owned() }),
            },
        })
    }
}

impl fmt::Display for UnknownOutcome {
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
    use super::super::status::NotRun;
    use super::*;

    #[test]
    fn a_set_holds_what_it_names() {
        let ends = [
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
            assert_eq!(ends.map(|status| set.contains(status)), want, "{text}");
        }
    }

    #[test]
    fn only_a_number_or_a_name_names() {
        let missing = AttemptStatus::NotRun(NotRun::NotFound);
        for (text, want) in
            [("127", true), ("100-127", true), ("any", false), ("fail", false), ("any,127", true), ("127,!127", false)]
        {
            assert_eq!(text.parse::<OutcomeSet>().unwrap().names_explicitly(missing), want, "{text}");
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
            let error = text.parse::<OutcomeSet>().unwrap_err();
            assert_eq!(error.word, word, "{text}");
            assert!(error.to_string().contains("name exit codes"), "{error}");
        }
    }
}
