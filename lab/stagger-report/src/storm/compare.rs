//! The policies of `--compare`, and their names.

use stagger_core::Policy;
use stagger_terminal::output::error::CliError;
use stagger_terminal::policy_args::PolicyArgs;

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
