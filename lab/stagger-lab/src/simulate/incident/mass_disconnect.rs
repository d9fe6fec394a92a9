use super::catalog::{INCIDENTS, Incident, Model};
use super::comparison::scenario_request;
use super::reference::Variant;
use stagger_terminal::output::error::CliError;

/// An incident that is a mass disconnect: one scenario, and the policies without and with the cure.
#[derive(Clone, Debug)]
pub(crate) struct MassDisconnect {
    pub(crate) incident: &'static Incident,
    /// Settings of the scenario, with the names of the flags of `stagger simulate`.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) without_cure: String,
    pub(crate) with_cure: String,
}

/// Returns the incidents that are mass disconnects.
pub(crate) fn mass_disconnects() -> Result<Vec<MassDisconnect>, CliError> {
    let incidents = INCIDENTS.iter().filter(|incident| incident.model == Model::Reconnect);
    incidents.map(MassDisconnect::new).collect()
}

impl MassDisconnect {
    fn new(incident: &'static Incident) -> Result<Self, CliError> {
        let failure = scenario_request(incident, Variant::Failure)?;
        let cure = scenario_request(incident, Variant::Cure)?;
        Ok(Self {
            incident,
            settings: failure.settings.pairs().map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
            without_cure: policy(&failure.compare),
            with_cure: policy(&cure.compare),
        })
    }

    /// Returns the title.
    pub(crate) const fn title(&self) -> &'static str {
        self.incident.title
    }

    /// Returns what happened, in two or three sentences.
    pub(crate) const fn happened(&self) -> &'static str {
        self.incident.happened
    }
}

/// Returns the text of the only policy of a file, without its name.
fn policy(compare: &[String]) -> String {
    let text = compare.first().map_or("", String::as_str);
    text.split_once(": ").map_or(text, |(_, policy)| policy).to_owned()
}

#[cfg(test)]
mod tests {
    use stagger_core::Policy;

    use super::*;

    #[test]
    fn both_files_have_one_policy_and_the_same_scenario() {
        let all = mass_disconnects().unwrap();
        assert!(all.len() >= 2, "{all:?}");
        for one in &all {
            for policy in [&one.without_cure, &one.with_cure] {
                assert!(policy.parse::<Policy>().is_ok(), "{policy}");
            }
            let cure = scenario_request(one.incident, Variant::Cure).unwrap();
            let same = cure.settings.pairs().eq(one.settings.iter().map(|(name, text)| (&**name, &**text)));
            assert!(same && !one.settings.is_empty(), "{}", one.title());
        }
    }
}
