use core::error::Error;
use core::fmt;

use crate::ParseError;

/// Everything that is wrong with a line of settings, with the way out. Nothing was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct LeversError {
    faults: Vec<LeverFault>,
}

/// One thing that is wrong with a line of settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LeverFault {
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

impl LeversError {
    /// The faults, in the order of the line.
    #[must_use]
    pub fn faults(&self) -> &[LeverFault] {
        &self.faults
    }

    /// Nothing but faults is an error.
    pub(super) fn unless_none(faults: Vec<LeverFault>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self { faults }) }
    }
}

impl From<LeverFault> for LeversError {
    fn from(fault: LeverFault) -> Self {
        Self { faults: vec![fault] }
    }
}

impl fmt::Display for LeverFault {
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

impl fmt::Display for LeversError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl Error for LeversError {}
