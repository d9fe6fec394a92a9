//! Plots: described once as a [`Figure`], rendered as text or as SVG.

mod canvas;
mod figure;
#[cfg(test)]
mod samples;
mod scale;
pub mod svg;
mod table;
pub mod terminal;
mod text;

pub use figure::{Axis, Bar, Figure, Hue, Point, Series, Shape, Span, Weight, corners};
pub use scale::{Spacing, Unit};
pub use table::{Cell, Column, bold, table};
pub use text::{Glyphs, RenderOptions, paragraph, sparkline, wrap};
