//! `@incident/NAME`: the files of published incidents, which need no copy of the repository.

use stagger_core::text::nearest;
use stagger_terminal::output::error::CliError;

/// A published incident as the file of a system, without or with a cure.
#[derive(Debug)]
pub(super) struct Incident {
    /// `@incident/` and the name of the file.
    pub(super) reference: &'static str,
    pub(super) text: &'static str,
}

const PREFIX: &str = "@incident/";

macro_rules! incidents {
    ($($name:literal),* $(,)?) => {
        &[$(Incident {
            reference: concat!("@incident/", $name),
            text: include_str!(concat!("incidents/", $name, ".toml")),
        }),*]
    };
}

/// All files, in the order in which they are listed. `examples/incidents` has links to them, and not they to it: where
/// Git makes no links, as on Windows, the program would contain paths in place of the files.
static INCIDENTS: &[Incident] = incidents![
    "aws-2025-10",
    "aws-2025-10-cure",
    "google-2025-06",
    "google-2025-06-cure",
    "cloudflare-2025-09",
    "cloudflare-2025-09-cure",
    "slack-2022-02",
    "slack-2022-02-cure",
    "hotos-2021-retries",
    "hotos-2021-retries-cure",
    "hotos-2021-cache",
    "hotos-2021-cache-cure",
];

impl Incident {
    /// Returns whether an argument is meant as a reference.
    pub(super) fn is_meant(text: &str) -> bool {
        text.starts_with('@')
    }

    /// Returns the incident of a reference.
    pub(super) fn find(reference: &str) -> Result<&'static Self, CliError> {
        if let Some(incident) = INCIDENTS.iter().find(|incident| incident.reference == reference) {
            return Ok(incident);
        }
        let names = || INCIDENTS.iter().map(|incident| incident.name());
        let all = names().collect::<Vec<_>>().join(", ");
        let Some(name) = reference.strip_prefix(PREFIX) else {
            return Err(CliError::usage(format_args!(
                "`{reference}` is not a file; use {PREFIX}NAME for a published incident\nincidents: {all}"
            )));
        };
        // A name without its date is far from all names.
        let begun = names().find(|known| !name.is_empty() && known.starts_with(name));
        let tip = match begun.or_else(|| nearest(name, names())) {
            Some(near) => format!("; did you mean {PREFIX}{near}?"),
            None => String::new(),
        };
        Err(CliError::usage(format_args!("`{name}` is not a published incident{tip}\nincidents: {all}")))
    }

    fn name(&self) -> &'static str {
        &self.reference[PREFIX.len()..]
    }
}

#[cfg(test)]
mod tests {
    use stagger_sim::system::SystemFile;

    use super::*;

    /// Returns the lines of a file, without comments. No value of these files contains `#`.
    fn settings(text: &'static str) -> Vec<&'static str> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim_end());
        lines.filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn every_file_is_valid_and_has_a_title() {
        for incident in INCIDENTS {
            let title = incident.text.lines().next().unwrap_or_default();
            SystemFile::parse(incident.text).unwrap_or_else(|error| panic!("{}: {error}", incident.reference));
            assert!(incident.text.starts_with("# ") && title.len() > 20, "{}: {title}", incident.reference);
        }
    }

    #[test]
    fn a_cure_changes_a_few_lines() {
        for pair in INCIDENTS.chunks(2) {
            let [failure, cure] = pair else { panic!("each incident has two files: {pair:?}") };
            assert_eq!(format!("{}-cure", failure.reference), cure.reference);
            let before = settings(failure.text);
            let changed: Vec<_> = settings(cure.text).into_iter().filter(|line| !before.contains(line)).collect();
            assert!((1..=3).contains(&changed.len()), "{}: {changed:?}", cure.reference);
        }
    }

    #[test]
    fn every_number_of_a_file_says_where_it_comes_from() {
        // Times at which something happens are no claim.
        const WITHOUT: [&str; 10] = ["#", "horizon", "at", "from", "to", "kind", "on", "order", "policy", "["];
        for failure in INCIDENTS.iter().step_by(2) {
            assert!(failure.text.contains("\n# Source: https://"), "{}", failure.reference);
            for line in failure.text.lines().filter(|line| !line.is_empty()) {
                let is_plain = WITHOUT.iter().any(|word| line.starts_with(word));
                assert!(is_plain || line.contains('#'), "{}: {line}", failure.reference);
            }
        }
    }

    #[test]
    fn an_unknown_incident_is_reported_with_the_nearest_and_all_names() {
        let error = |text: &str| Incident::find(text).unwrap_err().to_string();
        let near = error("@incident/aws-2025-11");
        assert!(near.contains("did you mean @incident/aws-2025-10?"), "{near}");
        assert!(error("@incident/slack").contains("did you mean @incident/slack-2022-02?"));
        let far = error("@incident/weather");
        assert!(far.starts_with("`weather` is not a published incident\nincidents: aws-2025-10, "), "{far}");
        assert!(error("@incident").contains("use @incident/NAME for a published incident"));
    }
}
