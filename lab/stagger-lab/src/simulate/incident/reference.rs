use stagger_core::text::nearest;

use super::catalog::{INCIDENTS, Incident};
use stagger_terminal::output::error::CliError;

/// What an argument that begins with `@` names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reference {
    /// `@incident`.
    All,
    /// `@incident/NAME`.
    Both(&'static Incident),
    /// `@incident/NAME/failure` or `@incident/NAME/cure`.
    One(&'static Incident, Variant),
}

/// One of the two files of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Failure,
    Cure,
}

/// What a reference to an incident begins with.
const PREFIX: &str = "@incident";

impl Variant {
    pub(super) const ALL: [Self; 2] = [Self::Failure, Self::Cure];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Cure => "cure",
        }
    }
}

impl Reference {
    /// Returns whether an argument is meant as a reference.
    pub(crate) fn is_meant(text: &str) -> bool {
        text.starts_with('@')
    }

    /// Returns the references that name incidents, each with a description.
    pub(crate) fn offered() -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = (PREFIX, "List published incidents; run all of them with --md or --svg");
        let each = INCIDENTS.iter().map(|incident| (incident.reference, incident.title));
        [all].into_iter().chain(each)
    }

    /// Parses a reference.
    pub(crate) fn parse(text: &str) -> Result<Self, CliError> {
        let rest = match text.strip_prefix(PREFIX) {
            Some("" | "/") => return Ok(Self::All),
            Some(rest) if rest.starts_with('/') => &rest[1..],
            _ => {
                return Err(CliError::usage(format_args!(
                    "`{text}` is not a scenario; use @incident for the published incidents, or {PREFIX}/NAME for one of them"
                )));
            }
        };
        let (name, variant) = rest.split_once('/').map_or((rest, None), |(name, variant)| (name, Some(variant)));
        let incident = INCIDENTS.iter().find(|incident| incident.name() == name).ok_or_else(|| unknown(name))?;
        match variant {
            None | Some("") => Ok(Self::Both(incident)),
            Some(text) => {
                let variant = Variant::ALL.into_iter().find(|variant| variant.name() == text);
                variant.map(|variant| Self::One(incident, variant)).ok_or_else(|| {
                    CliError::usage(format_args!(
                        "`{text}` is not a part of {PREFIX}/{name}; use {PREFIX}/{name}/failure or {PREFIX}/{name}/cure"
                    ))
                })
            }
        }
    }
}

impl core::fmt::Display for Reference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::All => f.write_str(PREFIX),
            Self::Both(incident) => write!(f, "{PREFIX}/{}", incident.name()),
            Self::One(incident, variant) => write!(f, "{PREFIX}/{}/{}", incident.name(), variant.name()),
        }
    }
}

fn unknown(name: &str) -> CliError {
    let names = || INCIDENTS.iter().map(|incident| incident.name());
    // A name without its date is far from all names.
    let near = names().find(|known| !name.is_empty() && known.starts_with(name)).or_else(|| nearest(name, names()));
    let tip = near.map_or(String::new(), |near| format!("; did you mean {PREFIX}/{near}?"));
    let all = names().collect::<Vec<_>>().join(", ");
    CliError::usage(format_args!("`{name}` is not a published incident{tip}\nincidents: {all}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Reference::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn every_reference_is_parsed_as_it_is_shown() {
        let each = |incident: &'static Incident| {
            let ones = Variant::ALL.map(|variant| Reference::One(incident, variant));
            [Reference::Both(incident)].into_iter().chain(ones)
        };
        let all: Vec<_> = [Reference::All].into_iter().chain(INCIDENTS.iter().flat_map(each)).collect();
        assert_eq!(all.len(), 25);
        for reference in all {
            let text = reference.to_string();
            assert_eq!(Reference::parse(&text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_unknown_incident_is_reported_with_the_nearest_and_all_names() {
        let near = error("@incident/aws-2025-11");
        assert!(near.contains("did you mean @incident/aws-2025-10?"), "{near}");
        assert!(near.contains("hotos-2021-cache") && near.contains("discord-2026-03"), "{near}");
        assert!(error("@incident/slack").contains("did you mean @incident/slack-2022-02?"));
        let far = error("@incident/weather");
        assert!(far.starts_with("`weather` is not a published incident\nincidents: discord-2026-03, "), "{far}");
        assert!(
            error("@incident/aws-2025-10/cured")
                .contains("use @incident/aws-2025-10/failure or @incident/aws-2025-10/cure")
        );
        assert!(error("@incidents/aws").contains("use @incident for the published incidents"));
    }
}
