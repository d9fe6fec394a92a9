//! Parses control lines such as `api=no-retries; db=observed; *=25%`.

use stagger_core::Ratio;
use stagger_core::budget::{ControlMode, ControlSetting};

use super::{ControlError, ControlProblem};

/// Parses the settings of a line, each with its target, in order.
pub(super) fn parse(line: &str) -> Result<Vec<(&str, ControlSetting)>, ControlError> {
    let (mut settings, mut problems) = (Vec::<(&str, ControlSetting)>::new(), Vec::new());
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
    let (mut mode, mut share) = (None, None);
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
