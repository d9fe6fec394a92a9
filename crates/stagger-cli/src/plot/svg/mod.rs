//! Paints figures as one SVG document that needs nothing beside it: no script, no font, no network.
//!
//! The same figures give the same bytes. Colors follow the reader's light or dark preference; what
//! color tells apart, dashes tell apart too.

mod document;
mod panel;
mod shapes;
mod style;
mod xml;

pub(crate) use document::{Page, document, inline};
pub(crate) use style::sheet;
pub(crate) use xml::escaped;
