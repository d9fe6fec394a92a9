use super::{Fix, Place};
use crate::Finding;

/// What a rule has found in a file: where, and how to change the file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileFinding {
    pub(crate) finding: Finding,
    pub(crate) path: String,
    pub(crate) place: Option<Place>,
    pub(crate) fix: Option<Fix>,
}

impl FileFinding {
    /// Returns the rule, what was found, and how to fix it in words.
    #[must_use]
    pub const fn finding(&self) -> &Finding {
        &self.finding
    }

    /// Returns the path of the value that it is about, such as `edge.orders-database.timeout`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the place of the value, or of the part of the file that would have it if the value is a default.
    #[must_use]
    pub const fn place(&self) -> Option<Place> {
        self.place
    }

    /// Returns the change of the file.
    #[must_use]
    pub const fn fix(&self) -> Option<&Fix> {
        self.fix.as_ref()
    }
}
