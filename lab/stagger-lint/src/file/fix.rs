use super::Place;

/// A change of a file that fixes a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    pub(crate) text: String,
    pub(crate) edits: Vec<Edit>,
}

/// A part of a file, and what is to be written in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// What is replaced; empty to insert.
    pub place: Place,
    /// The new text.
    pub text: String,
}

impl Fix {
    /// Returns what the file should say, in its own syntax: one or more lines.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the edits of the file, which do not overlap; none if the change is left to people.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Returns the file with the edits; `None` if there are none.
    #[must_use]
    pub fn applied_to(&self, text: &str) -> Option<String> {
        let mut edits: Vec<_> = self.edits.iter().map(|edit| (edit.place.bytes(text), &edit.text)).collect();
        edits.sort_by_key(|(bytes, _)| core::cmp::Reverse(bytes.start));
        let mut fixed = text.to_owned();
        for (bytes, text) in &edits {
            fixed.replace_range(bytes.clone(), text);
        }
        (!edits.is_empty()).then_some(fixed)
    }
}
