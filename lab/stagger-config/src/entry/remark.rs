use crate::position::Span;

/// Something that a reader has noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// What it means for the settings.
    pub kind: RemarkKind,
    /// The field, as a path within the file.
    pub path: String,
    /// Its place.
    pub span: Span,
    /// What the system does, and what follows: a sentence without a capital and a full stop.
    pub text: String,
}

/// What a remark means for the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RemarkKind {
    /// The system refuses the value, which has been left out, or reads it differently than its author can have meant.
    Invalid,
    /// The field has no effect here.
    NoEffect,
    /// The field makes a failure worse, though it is not about retries.
    Hazard,
    /// The field has an effect that a policy cannot express.
    Unmapped,
    /// The file refers to something that has not been read, and that may say otherwise.
    NotRead,
    /// A fact about the settings that is worth knowing.
    Note,
}
