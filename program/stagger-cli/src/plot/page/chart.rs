use crate::plot::Figure;

/// A chart, with its data as a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// Name of the SVG file, without the extension.
    pub(crate) slug: &'static str,
    pub(crate) title: &'static str,
    /// Explanation of the chart, in a sentence or two.
    pub(crate) caption: String,
    pub(crate) figures: Vec<Figure>,
    /// The figures on a logarithmic scale; empty if that does not show more.
    pub(crate) logarithmic: Vec<Figure>,
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}
