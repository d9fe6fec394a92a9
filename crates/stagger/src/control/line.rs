//! Control lines such as `api=no-retries; db=observed; *=25%`: their parser and their errors.

use core::error::Error;
use core::fmt;

use stagger_core::Ratio;
use stagger_core::budget::{ControlMode, ControlSetting};
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

/// Parses the settings of a line, each with its target, in order.
pub(super) fn parse(line: &str) -> Result<Vec<(&str, ControlSetting)>, ControlError> {
    let mut settings = Vec::<(&str, ControlSetting)>::new();
    let mut problems = Vec::new();
    let entries = line.lines().filter_map(|line| line.split('#').next()).flat_map(|line| line.split(';'));
    for entry in entries.map(str::trim).filter(|entry| !entry.is_empty()) {
        // Split at the last `=`: a setting never contains one, a name may.
        let Some((target, words)) = entry.rsplit_once('=') else {
            problems.push(ControlProblem::NoEqualsSign(entry.to_owned()));
            continue;
        };
        let target = target.trim();
        if target.is_empty() {
            problems.push(ControlProblem::NoTarget(entry.to_owned()));
        } else if settings.iter().any(|(named, _)| *named == target) {
            problems.push(ControlProblem::Twice(target.to_owned()));
        }
        match setting(target, words) {
            Ok(setting) => settings.push((target, setting)),
            Err(problem) => problems.push(problem),
        }
    }
    ControlError::from_problems(problems)?;
    Ok(settings)
}

fn setting(target: &str, words: &str) -> Result<ControlSetting, ControlProblem> {
    let mut mode = None;
    let mut share = None;
    for word in words.split_whitespace() {
        let is_second = match ControlMode::from_name(word) {
            Some(named) => mode.replace(named).is_some(),
            None => share.replace(ratio(word)?).is_some(),
        };
        if is_second {
            return Err(ControlProblem::TwoSettings(target.to_owned()));
        }
    }
    if mode.is_none() && share.is_none() {
        return Err(ControlProblem::NoSetting(target.to_owned()));
    }
    Ok(ControlSetting::new(mode.unwrap_or_default(), share.unwrap_or(Ratio::ONE)))
}

fn ratio(word: &str) -> Result<Ratio, ControlProblem> {
    if !word.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Err(ControlProblem::Word(word.to_owned()));
    }
    word.parse().map_err(ControlProblem::Share)
}
