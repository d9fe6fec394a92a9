use core::error::Error;
use core::fmt;

use stagger_core::text::ParseError;

/// All problems of a control line, each with a way to fix it. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlError {
    problems: Vec<ControlProblem>,
}

/// One problem of a control line.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControlProblem {
    /// This entry has no `=`.
    NoEqualsSign(String),
    /// This entry has no target before the `=`.
    NoTarget(String),
    /// This target has no setting after the `=`.
    NoSetting(String),
    /// This word is neither a mode nor a share.
    Word(String),
    /// This share could not be parsed.
    Share(ParseError),
    /// This target has two modes, or two shares.
    TwoSettings(String),
    /// This target is set twice.
    Twice(String),
    /// The environment variable of this name is not valid UTF-8.
    NotText(&'static str),
}

impl ControlError {
    /// Returns the problems, in the order of the line.
    #[must_use]
    pub fn problems(&self) -> &[ControlProblem] {
        &self.problems
    }

    /// Returns an error if there are problems.
    pub(super) fn from_problems(problems: Vec<ControlProblem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }
}

impl From<ControlProblem> for ControlError {
    fn from(problem: ControlProblem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for ControlProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEqualsSign(entry) => {
                write!(f, "`{entry}` has no `=`; write target=setting, such as api=no-retries")
            }
            Self::NoTarget(entry) => {
                write!(f, "`{entry}` has no target; write one before the `=`, or `*` for all others")
            }
            Self::NoSetting(target) => {
                write!(f, "`{target}` has no setting; write enforced to reset it, or remove the entry")
            }
            Self::Word(word) => {
                write!(
                    f,
                    "unknown setting `{word}`; expected enforced, observed, off or no-retries, a share such as 25%, \
                     or a mode and a share"
                )
            }
            Self::Share(error) => fmt::Display::fmt(error, f),
            Self::TwoSettings(target) => {
                write!(f, "`{target}` has two modes or two shares; keep at most one of each")
            }
            Self::Twice(target) => write!(f, "`{target}` is set twice; keep one entry"),
            Self::NotText(variable) => write!(f, "{variable} is not valid UTF-8; set it to UTF-8 text"),
        }
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl Error for ControlError {}
