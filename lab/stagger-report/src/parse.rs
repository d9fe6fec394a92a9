//! Values of flags that the scenarios of simulations and drills share: numbers, and the policies of `--compare`.

use core::num::NonZeroU64;
use core::time::Duration;

use stagger_core::Policy;
use stagger_core::text::{ParseValueError, Rate, parse_count, parse_duration};
use stagger_terminal::output::error::CliError;
use stagger_terminal::policy_args::PolicyArgs;

/// Parses an integer of at least 1: `10000`, `10_000`, `10k`, `1.5M`.
pub fn count(text: &str) -> Result<u64, String> {
    parse_count(text).map(NonZeroU64::get).map_err(|error| error.to_string())
}

/// Parses an integer of at least 1 that fits into 32 bits.
pub fn count_u32(text: &str) -> Result<u32, String> {
    let number = count(text)?;
    u32::try_from(number).map_err(|_| format!("`{text}` exceeds the maximum of {}", u32::MAX))
}

/// Parses a rate per second: `500`, `500/s`, `30/min`, `2k/s`.
pub fn rate(text: &str) -> Result<f64, String> {
    text.parse().map(Rate::get).map_err(|error: ParseValueError| error.to_string())
}

/// Parses a finite duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    let length = parse_duration(text).map_err(|error| error.to_string())?;
    length.ok_or_else(|| format!("`{text}` is not finite; expected a duration like 500ms, 1.5s, 1m30s or 2h"))
}

/// Parses two durations joined by one of `separators`, or a single one.
pub fn duration_pair(text: &str, separators: &[&str]) -> Result<(Duration, Option<Duration>), String> {
    let parts = separators.iter().find_map(|separator| text.split_once(separator));
    match parts {
        Some((first, second)) => Ok((duration(first)?, Some(duration(second)?))),
        None => Ok((duration(text)?, None)),
    }
}

/// Parses one of several keywords.
pub fn keyword<T: Copy>(text: &str, keywords: &[(&str, T)]) -> Result<T, String> {
    let found = keywords.iter().find(|(keyword, _)| *keyword == text.trim());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = keywords.iter().map(|(keyword, _)| *keyword).collect();
        format!("unknown value `{text}`; expected one of {}", known.join(", "))
    })
}

/// Maximum length of a name in characters. A longer one is cut to its first word, because names label table rows.
const MAX_NAME: usize = 24;

/// Returns the policies to compare, with their names: the one given by the policy flags, if any or if there is no list,
/// and those of the lists. The flags override settings of each of them.
pub fn named_policies(compare: &[String], args: &PolicyArgs) -> Result<Vec<(String, Policy)>, CliError> {
    let mut policies = Vec::new();
    if compare.is_empty() || args.policy.is_some() {
        let policy = args.policy()?;
        let name = args.policy.clone().unwrap_or_else(|| policy.to_string());
        policies.push((short_name(&name), policy));
    }
    for entry in compare.iter().flat_map(|list| split_list(list)) {
        if entry.is_empty() {
            return Err(CliError::usage(
                "--compare: a policy is missing; write at least one, separated by one comma each, such as \
                 curl,socket.io",
            ));
        }
        let (name, spec) = match entry.split_once(": ") {
            Some((name, spec)) => (name.trim().to_owned(), spec.trim().to_owned()),
            None => (short_name(&entry), entry),
        };
        let policy = PolicyArgs { policy: Some(spec), ..args.clone() }.policy();
        policies.push((name, policy.map_err(as_compare_error)?));
    }
    Ok(policies)
}

/// Appends a number to names that occur more than once.
pub fn number_duplicates<T>(entries: &mut [T], name: impl Fn(&mut T) -> &mut String) {
    let mut taken: Vec<String> = Vec::new();
    for entry in entries {
        let name = name(entry);
        if taken.contains(name) {
            let free = (2..).map(|number| format!("{name} {number}")).find(|name| !taken.contains(name));
            *name = free.unwrap_or_default();
        }
        taken.push(name.clone());
    }
}

/// Replaces `--policy` by `--compare` in an error.
fn as_compare_error(error: CliError) -> CliError {
    match error {
        CliError::Usage(text) => CliError::Usage(text.replacen("--policy: ", "--compare: ", 1)),
        error @ CliError::Io { .. } => error,
    }
}

/// Splits a list at its commas, except before a digit: such commas belong to a list of delays.
fn split_list(list: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for piece in list.split(',') {
        match entries.last_mut() {
            Some(last) if piece.starts_with(|c: char| c.is_ascii_digit()) => {
                last.push(',');
                last.push_str(piece);
            }
            _ => entries.push(piece.trim().to_owned()),
        }
    }
    entries
}

/// Returns the name of a policy in tables: its text if that is short, else the first word.
pub fn short_name(name: &str) -> String {
    let is_short = name.chars().count() <= MAX_NAME;
    let word = name.split_whitespace().next().unwrap_or(name);
    if is_short { name.to_owned() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_durations_may_be_a_single_one() {
        let ms = Duration::from_millis;
        assert_eq!(duration_pair("10ms..40ms", &[".."]), Ok((ms(10), Some(ms(40)))));
        assert_eq!(duration_pair("10ms", &[".."]), Ok((ms(10), None)));
        assert!(duration_pair("10ms..inf", &[".."]).is_err_and(|error| error.contains("is not finite")));
    }

    #[test]
    fn names_are_short_and_unique() {
        let lines =
            ["exponential base=1s cap=30s jitter=none, exponential base=2s cap=30s jitter=none", "curl,ours: curl"];
        let mut named = named_policies(&lines.map(str::to_owned), &PolicyArgs::default()).unwrap();
        number_duplicates(&mut named, |(name, _)| name);
        let names: Vec<String> = named.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["exponential", "exponential 2", "curl", "ours"]);
    }

    #[test]
    fn an_empty_item_of_a_list_is_an_error() {
        for list in ["", " ", "curl,", ",curl", "curl, ,socket.io"] {
            let error = named_policies(&[list.to_owned()], &PolicyArgs::default()).unwrap_err().to_string();
            assert!(error.starts_with("--compare: a policy is missing"), "{list:?}: {error}");
        }
    }

    #[test]
    fn a_list_of_delays_is_not_split() {
        assert_eq!(split_list("list 1s,2s,5s,curl"), ["list 1s,2s,5s", "curl"]);
    }
}
