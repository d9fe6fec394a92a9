use stagger_terminal::plot::Figure;

/// A chart, with its data as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Name of the SVG file, without the extension.
    pub slug: &'static str,
    pub title: &'static str,
    /// Explanation of the chart, in a sentence or two.
    pub caption: String,
    pub figures: Vec<Figure>,
    /// The figures on a logarithmic scale; empty if that does not show more.
    pub logarithmic: Vec<Figure>,
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
}
