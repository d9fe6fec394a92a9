//! Renders figures as text.

mod axes;
mod legend;
mod paint;
mod shapes;
mod text;

pub use paint::paint;
