use crate::plot::figure::Point;
use crate::plot::scale::Scale;

/// Height of the labels and name of the horizontal axis, below it.
const FOOT: f64 = 40.0;

/// The field of a figure in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x: Scale,
    pub(super) y: Scale,
}

impl Field {
    pub(super) fn place(&self, point: Point) -> (f64, f64) {
        (self.across(self.x.position(point.x)), self.up(self.y.position(point.y)))
    }

    /// Returns where the figure ends, below its horizontal axis.
    pub(super) fn end(&self) -> f64 {
        self.bottom + FOOT
    }

    pub(super) fn across(&self, position: f64) -> f64 {
        self.left + position * (self.right - self.left)
    }

    pub(super) fn up(&self, position: f64) -> f64 {
        self.bottom - position * (self.bottom - self.top)
    }
}
