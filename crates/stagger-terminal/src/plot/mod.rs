//! Plots: described once as a [`Figure`], rendered as text or as SVG.

mod figure;
mod palette;
mod render_options;
#[cfg(test)]
mod samples;
mod scale;
mod sparkline;
pub mod svg;
mod table;
pub mod terminal;
mod ticks;
mod unit;
mod wrap;

pub use figure::{Axis, Bar, Figure, Point, Series, Shape, Span, Weight, corners};
pub use palette::Hue;
pub use render_options::{Glyphs, RenderOptions};
pub use scale::Spacing;
pub use sparkline::sparkline;
pub use table::{Cell, Column, bold, table};
pub use unit::Unit;
pub use wrap::{paragraph, wrap};
