use crate::plot::Figure;

/// A picture, and the same as a table for those who would rather read it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chart {
    /// What its file is called, without the ending.
    pub(super) slug: &'static str,
    pub(super) title: &'static str,
    /// What is seen, in a sentence or two.
    pub(super) about: String,
    pub(super) figures: Vec<Figure>,
    /// The same on a logarithmic scale, where that shows more.
    pub(super) logarithmic: Vec<Figure>,
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}
