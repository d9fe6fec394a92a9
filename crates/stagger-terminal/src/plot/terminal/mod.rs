//! Renders figures as text.

mod axes;
mod canvas;
mod paint;
mod shapes;

pub use paint::paint;
