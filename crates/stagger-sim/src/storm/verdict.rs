use serde::{Deserialize, Serialize};

use crate::outage::Verdict;

/// Whether a system survives an outage. The metrics of the run say when it fell, recovered and relapsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum VerdictKind {
    /// At least 90 % of the requests of every window succeeded.
    NeverFell,
    /// The system was down once, and is up at the horizon.
    Recovered,
    /// The system was down more than once.
    Relapsed,
    /// The system was down once, and is down at the horizon.
    StillDown,
}

impl VerdictKind {
    /// All kinds, the best first.
    pub const ALL: [Self; 4] = [Self::NeverFell, Self::Recovered, Self::Relapsed, Self::StillDown];

    /// Returns the name in the document and in assertions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverFell => "never-fell",
            Self::Recovered => "recovered",
            Self::Relapsed => "relapsed",
            Self::StillDown => "still-down",
        }
    }
}

impl From<Verdict> for VerdictKind {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::NeverFell => Self::NeverFell,
            Verdict::Recovered { .. } => Self::Recovered,
            Verdict::Relapsed { .. } => Self::Relapsed,
            Verdict::StillDown { .. } => Self::StillDown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_its_position_and_the_name_of_the_document() {
        for (verdict, position) in VerdictKind::ALL.into_iter().zip(0..) {
            assert_eq!(verdict as u8, position, "{verdict:?}");
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
        }
    }
}
