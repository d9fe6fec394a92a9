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
