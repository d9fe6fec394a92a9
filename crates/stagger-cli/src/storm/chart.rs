use crate::plot::Figure;

/// A picture, and the same as a table for those who would rather read it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// What its file is called, without the ending.
    pub(crate) slug: &'static str,
    pub(crate) title: &'static str,
    /// What is seen, in a sentence or two.
    pub(crate) caption: String,
    pub(crate) figures: Vec<Figure>,
    /// The same on a logarithmic scale, where that shows more.
    pub(crate) logarithmic: Vec<Figure>,
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}
