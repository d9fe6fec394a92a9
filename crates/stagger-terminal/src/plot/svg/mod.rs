//! Renders figures as one self-contained SVG document: no script, no font, no network.
//!
//! The output is deterministic. Colors follow the reader's light or dark preference; lines also differ in their dashes.

mod document;
mod graph;
mod heat_map;
mod panel;
mod shapes;
mod xml;

pub use document::{Page, document, inline, sheet, small};
pub use graph::{Graph, GraphLink, GraphNode};
pub use heat_map::HeatMap;
pub use xml::{Element, escaped};
