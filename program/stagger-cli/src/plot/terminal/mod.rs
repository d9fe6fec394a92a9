//! Renders figures as text.

mod axes;
mod legend;
mod paint;
mod shapes;
mod text;

pub(crate) use paint::paint;
