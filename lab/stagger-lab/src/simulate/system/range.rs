use stagger_sim::system::{System, SystemFile, SystemFileError, Unit};

use stagger_terminal::output::error::CliError;

/// A number of a file, or several that change together, with the values between which it is searched.
pub(super) struct Range {
    /// As the user wrote it.
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) low: f64,
    pub(super) high: f64,
    paths: Vec<String>,
}

impl Range {
    /// Parses `NAME` or `NAME=LOW..HIGH`. `flag` is where it was given.
    pub(super) fn parse(flag: &str, text: &str, file: &SystemFile) -> Result<Self, CliError> {
        let wrong = |error: String| CliError::usage(format_args!("{flag}: {error}"));
        let (name, values) = text.split_once('=').map_or((text, None), |(name, values)| (name, Some(values)));
        let numbers = file.find(name.trim()).map_err(wrong)?;
        let Some(first) = numbers.first() else { return Err(wrong(format!("`{name}` is not a number of the file"))) };
        let unit = first.unit;
        if let Some(other) = numbers.iter().find(|number| number.unit != unit) {
            return Err(wrong(format!(
                "`{name}` stands for {} and {}; use one of these paths",
                first.path, other.path
            )));
        }
        let [low, high] = match values {
            Some(values) => {
                let (low, high) = values.split_once("..").ok_or_else(|| {
                    wrong(format!(
                        "`{values}` is not a range; write two values, as in {name}={}..{}",
                        unit.text(1.0),
                        unit.text(9.0)
                    ))
                })?;
                [unit.parse(low.trim()).map_err(wrong)?, unit.parse(high.trim()).map_err(wrong)?]
            }
            None => usual(unit, first.value, file.system()),
        };
        if low >= high {
            return Err(wrong(format!("{} is not below {}; swap them", unit.text(low), unit.text(high))));
        }
        let paths = numbers.iter().map(|number| number.path.clone()).collect();
        Ok(Self { name: name.trim().to_owned(), unit, low, high, paths })
    }

    /// Returns values at equal distances.
    pub(super) fn values(&self, count: usize) -> Vec<f64> {
        let step = (self.high - self.low) / (count - 1) as f64;
        let values = (0..count).map(|nth| self.low + step * nth as f64);
        let mut values: Vec<_> = if self.unit.is_whole() { values.map(f64::round).collect() } else { values.collect() };
        values.dedup();
        values
    }

    /// Returns the changes that give the number this value.
    pub(super) fn changes(&self, value: f64) -> Vec<(&str, String)> {
        let text = self.unit.text(value);
        self.paths.iter().map(|path| (&**path, text.clone())).collect()
    }
}

/// Returns the system of a file with these changes.
pub(super) fn changed(file: &SystemFile, changes: &[(&str, String)]) -> Result<System, SystemFileError> {
    Ok(file.with_all(changes.iter().map(|(path, text)| (*path, &**text)))?.system().clone())
}

/// Returns the values between which a number is searched: a rate up to the capacity of the service that is overloaded first, a
/// share from 0 to 1, and others from a tenth of the value to three times of it.
fn usual(unit: Unit, value: f64, system: &System) -> [f64; 2] {
    match unit {
        Unit::PerSecond => {
            let layout = system.layout();
            let most = layout.services.iter().map(|service| system.rate() * service.capacity / service.load);
            let most = most.filter(|rate| rate.is_finite()).fold(f64::INFINITY, f64::min);
            let most = if most.is_finite() { most } else { 10.0 * value };
            [0.02 * most, most]
        }
        Unit::Share => [0.0, 1.0],
        Unit::Count => [1.0, (3.0 * value).round().max(4.0)],
        _ => [0.1 * value, 3.0 * value],
    }
}
