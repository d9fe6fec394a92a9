use core::error::Error;
use core::fmt;

use crate::text::ParseError;

/// Everything that is wrong with a line of settings, with the way out. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlError {
    problems: Vec<ControlProblem>,
}

/// One thing that is wrong with a line of settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControlProblem {
    /// There is no `=` in this.
    NoEqualsSign(String),
    /// The setting of this stands without a target.
    NoTarget(String),
    /// This target has no setting.
    NoSetting(String),
    /// This word is neither a mode nor a share.
    Word(String),
    /// This share is none.
    Share(ParseError),
    /// The setting of this target names two modes, or two shares.
    TwoSettings(String),
    /// This target is there twice.
    Twice(String),
    /// The environment variable of this name is not text.
    NotText(&'static str),
}

impl ControlError {
    /// The problems, in the order of the line.
    #[must_use]
    pub fn problems(&self) -> &[ControlProblem] {
        &self.problems
    }

    /// Nothing but problems is an error.
    pub(super) fn unless_none(problems: Vec<ControlProblem>) -> Result<(), Self> {
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
                write!(f, "`{entry}` names no setting; write it as target=setting, like api=no-retries")
            }
            Self::NoTarget(entry) => {
                write!(f, "`{entry}` names no target; write one before the =, or * for all others")
            }
            Self::NoSetting(target) => {
                write!(f, "`{target}` has no setting; write enforced to put it back, or drop it")
            }
            Self::Word(word) => {
                write!(
                    f,
                    "`{word}` is neither a mode nor a share; use enforced, observed, off or no-retries, a share like \
                     25%, or both"
                )
            }
            Self::Share(error) => fmt::Display::fmt(error, f),
            Self::TwoSettings(target) => {
                write!(f, "`{target}` has two modes or two shares; keep one of each at most")
            }
            Self::Twice(target) => write!(f, "`{target}` is set twice; keep one of them"),
            Self::NotText(variable) => write!(f, "{variable} is not UTF-8 text; write it anew"),
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
