//! Renders figures as one self-contained SVG document: no script, no font, no network.
//!
//! The output is deterministic. Colors follow the reader's light or dark preference; lines also differ in their dashes.

mod document;
mod field;
mod graph;
mod heat_map;
mod panel;
mod shapes;
mod style;
mod xml;

pub use document::{Page, document, inline, small};
pub use graph::{Graph, GraphLink, GraphNode};
pub use heat_map::HeatMap;
pub use style::sheet;
pub use xml::{Element, escaped};
