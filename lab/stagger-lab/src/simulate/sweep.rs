//! Sweeps: lists and ranges of values of a setting, and their combinations.

use core::time::Duration;

use stagger_core::Policy;
use stagger_core::text::{Compact, nearest, parse_duration, parse_number};
use stagger_sim::storm::{SweptPart, SweptSetting};
use stagger_terminal::output::error::CliError;

use super::args::setting_names;
use super::settings::MAX_RUNS;

/// The values of several settings, all of which are combined with each other.
#[derive(Debug)]
pub(super) struct Sweep {
    dimensions: Vec<Dimension>,
}

#[derive(Debug)]
struct Dimension {
    setting: String,
    of: SweptPart,
    values: Vec<String>,
}

impl Sweep {
    /// Parses the values of `--sweep`: each is a setting with its values, such as `spread=0s,5s` or
    /// `rate=100..200 step 5`.
    pub(super) fn parse(texts: &[String]) -> Result<Self, CliError> {
        let wrong = |error: String| CliError::usage(format_args!("--sweep: {error}"));
        let mut dimensions: Vec<Dimension> = Vec::new();
        for text in texts {
            let dimension = Dimension::parse(text).map_err(wrong)?;
            if dimensions.iter().any(|known| known.setting == dimension.setting) {
                let setting = dimension.setting;
                return Err(wrong(format!("`{setting}` is swept twice; list all its values in one sweep")));
            }
            dimensions.push(dimension);
        }
        Ok(Self { dimensions })
    }

    /// Returns the number of combinations.
    pub(super) fn len(&self) -> usize {
        self.dimensions.iter().fold(1, |product, dimension| product.saturating_mul(dimension.values.len()))
    }

    /// Returns all combinations; the values of the last sweep vary fastest.
    pub(super) fn combinations(&self) -> Vec<Vec<SweptSetting>> {
        let mut all = vec![Vec::new()];
        for Dimension { setting, of, values } in &self.dimensions {
            let longer = |shorter: &Vec<SweptSetting>| {
                let extended = values.iter().map(|value| {
                    let mut longer = shorter.clone();
                    longer.push(SweptSetting::new(&**setting, &**value, *of));
                    longer
                });
                extended.collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }
}

impl Dimension {
    fn parse(text: &str) -> Result<Self, String> {
        let Some((setting, list)) = text.split_once('=').filter(|(setting, _)| !setting.trim().is_empty()) else {
            return Err(format!(
                "`{text}` has no values; expected a form like spread=0s,5s,10s or rate=100..200 step 5"
            ));
        };
        let setting = setting.trim().to_owned();
        if setting == "guards" {
            return Err("guards are compared with --guards, such as --guards 'none, tokens'".to_owned());
        }
        let mut values = Vec::new();
        for item in list.split(',').map(str::trim) {
            if item.is_empty() {
                return Err(format!(
                    "`{text}` has an empty value; separate values by one comma each, as in {setting}=VALUE,VALUE"
                ));
            }
            match item.split_once(" step ") {
                Some((range, step)) => values.extend(steps(range.trim(), step.trim())?),
                // One value of this setting is a range itself.
                None if item.contains("..") && setting != "one-way" => {
                    return Err(format!("`{item}` has no step; expected a form like {setting}={item} step VALUE"));
                }
                None => values.push(item.to_owned()),
            }
        }
        let of = if setting_names().any(|name| name == setting) { SweptPart::Scenario } else { SweptPart::Policy };
        if of == SweptPart::Policy && !is_policy_setting(&setting) {
            return Err(unknown(&setting));
        }
        Ok(Self { setting, of, values })
    }
}

/// Returns whether the policy language has a setting of this name.
fn is_policy_setting(name: &str) -> bool {
    let result = Policy::DEFAULT.to_builder().set(name, "");
    // The value is wrong for every setting, but only an unknown name is no setting.
    !result.is_err_and(|error| error.to_string().starts_with(&format!("`{name}` is not a setting")))
}

fn unknown(name: &str) -> String {
    let settings = || POLICY_SETTINGS.into_iter().chain(setting_names().filter(|name| *name != "guards"));
    match nearest(name, settings()) {
        Some(nearest) => format!("`{name}` is not a setting; did you mean `{nearest}`?"),
        None => format!(
            "`{name}` is not a setting of a policy or a scenario; use one of {}",
            settings().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// The settings of policies that are worth a sweep, for suggestions.
const POLICY_SETTINGS: [&str; 9] =
    ["base", "cap", "multiplier", "jitter", "spread", "max-attempts", "max-elapsed", "hint-spread", "stable-after"];

/// Returns the values from the start of a range to its end, both included, a step apart.
fn steps(range: &str, step: &str) -> Result<Vec<String>, String> {
    let wrong = || {
        format!(
            "`{range} step {step}` is not a range of values; expected a form like 100..200 step 5, 1k/s..5k/s step \
             500/s or 0s..30s step 5s"
        )
    };
    let (from, to) = range.split_once("..").ok_or_else(wrong)?;
    let parts = [from, to, step].map(str::trim);
    let (numbers, text): ([f64; 3], Box<dyn Fn(f64) -> String>) = match parts.map(number_and_unit) {
        [Some((from, _)), Some((to, unit)), Some((step, _))]
            if parts.iter().all(|part| number_and_unit(part).is_some_and(|(_, own)| own.is_empty() || own == unit)) =>
        {
            ([from, to, step], Box::new(move |value| format!("{}{unit}", (value * 1e9).round() / 1e9)))
        }
        _ => {
            let length = |text: &str| parse_duration(text).ok().flatten();
            let [Some(from), Some(to), Some(step)] = parts.map(length) else {
                return Err(wrong());
            };
            let seconds = [from, to, step].map(|length| length.as_secs_f64());
            (seconds, Box::new(|value| Compact(Duration::from_nanos((value * 1e9).round() as u64)).to_string()))
        }
    };
    let [from, to, step] = numbers;
    // The end belongs to the range although binary fractions may miss it.
    let last = ((to - from) / step + 1e-9).floor();
    if step <= 0.0 || last < 0.0 {
        return Err(format!(
            "`{range}` has no values {} apart; use a step above 0, and the smaller end first",
            parts[2]
        ));
    }
    if last >= MAX_RUNS as f64 {
        return Err(format!("`{range} step {}` has more than {MAX_RUNS} values; use a longer step", parts[2]));
    }
    Ok((0..=last as u32).map(|nth| text(from + f64::from(nth) * step)).collect())
}

/// Splits a number from its unit, which is a share of time or a percent sign or nothing.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(['/', '%']).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    parse_number(number).ok().map(|number| (number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<Sweep, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Sweep::parse(&texts).map_err(|error| error.to_string())
    }

    fn labels(texts: &[&str]) -> Vec<String> {
        let combinations = parse(texts).unwrap().combinations();
        let label = |swept: &Vec<SweptSetting>| {
            swept.iter().map(|one| format!("{}={}", one.setting, one.value)).collect::<Vec<_>>().join(" ")
        };
        combinations.iter().map(label).collect()
    }

    #[test]
    fn sweeps_cross_and_the_last_varies_fastest() {
        assert_eq!(
            labels(&["rate=1,2", "spread=0s,5s"]),
            ["rate=1 spread=0s", "rate=1 spread=5s", "rate=2 spread=0s", "rate=2 spread=5s"]
        );
        assert_eq!(labels(&[]), [""], "without a sweep there is one combination");
        let sweep = parse(&["rate=1,2", "spread=0s,5s,9s"]).unwrap();
        assert_eq!((sweep.len(), sweep.combinations().len()), (6, 6));
        let parts: Vec<SweptPart> = sweep.combinations()[0].iter().map(|swept| swept.of).collect();
        assert_eq!(parts, [SweptPart::Scenario, SweptPart::Policy]);
    }

    #[test]
    fn suggested_settings_exist() {
        for name in POLICY_SETTINGS {
            assert!(is_policy_setting(name), "{name}");
        }
        assert!(!is_policy_setting("weather"));
    }

    #[test]
    fn a_range_has_both_its_ends() {
        for (text, want) in [
            ("rate=100..104 step 2", &["rate=100", "rate=102", "rate=104"][..]),
            ("rate=100/s..105/s step 2", &["rate=100/s", "rate=102/s", "rate=104/s"]),
            ("clients=1k..2k step 500", &["clients=1000", "clients=1500", "clients=2000"]),
            ("multiplier=1..1.3 step 0.1", &["multiplier=1", "multiplier=1.1", "multiplier=1.2", "multiplier=1.3"]),
            ("spread=500ms..2s step 500ms", &["spread=500ms", "spread=1s", "spread=1.5s", "spread=2s"]),
            ("rate=7,1..2 step 1,9", &["rate=7", "rate=1", "rate=2", "rate=9"]),
            ("one-way=1ms..2ms,5ms", &["one-way=1ms..2ms", "one-way=5ms"]),
        ] {
            assert_eq!(labels(&[text]), want, "{text}");
        }
    }

    #[test]
    fn a_sweep_that_makes_no_sense_is_an_error() {
        for (texts, want) in [
            (&["spread"][..], "expected a form like spread=0s,5s,10s"),
            (&["=1,2"], "expected a form like spread=0s,5s,10s"),
            (&["spread="], "has an empty value"),
            (&["spread=1s,,2s"], "has an empty value"),
            (&["rate=100..200"], "`100..200` has no step; expected a form like rate=100..200 step VALUE"),
            (&["raet=1"], "`raet` is not a setting; did you mean `rate`?"),
            (&["weather=fine"], "`weather` is not a setting of a policy or a scenario; use one of base, cap,"),
            (&["guards=none,tokens"], "guards are compared with --guards"),
            (&["rate=1,2", "rate=3"], "`rate` is swept twice"),
            (&["rate=5..1 step 1"], "the smaller end first"),
            (&["rate=1..5 step 0"], "use a step above 0"),
            (&["rate=0..0 step 0"], "use a step above 0"),
            (&["rate=1..many step 1"], "not a range of values"),
            (&["rate=1 step 1"], "not a range of values"),
            (&["rate=1/s..5/min step 1"], "not a range of values"),
            (&["rate=0..1M step 1"], "more than 10000 values"),
        ] {
            let error = parse(texts).unwrap_err();
            assert!(error.starts_with("--sweep: ") && error.contains(want), "{texts:?}: {error}");
        }
    }
}
