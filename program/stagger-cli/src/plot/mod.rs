//! Plots: described once as a [`Figure`], rendered as text or as SVG.

mod figure;
pub(crate) mod page;
mod palette;
mod render_options;
#[cfg(test)]
mod samples;
mod scale;
mod sparkline;
pub(crate) mod svg;
mod table;
pub(crate) mod terminal;
mod ticks;
mod unit;
mod wrap;

pub(crate) use figure::{Axis, Bar, Figure, Point, Series, Shape, Span, Weight, corners};
pub(crate) use palette::Hue;
pub(crate) use render_options::{Glyphs, RenderOptions};
pub(crate) use scale::Spacing;
pub(crate) use sparkline::sparkline;
pub(crate) use table::{Cell, Column, bold, table};
pub(crate) use unit::Unit;
pub(crate) use wrap::{paragraph, wrap};
