/// What a [`Search`](super::Search) found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// All values that were tried, in increasing order.
    pub tried: Vec<Tried>,
    /// The borders between values at which the system comes back and those at which it stays down, in increasing order.
    pub borders: Vec<Border>,
    /// Values apart from the borders at which chance decides: with as many seeds as a decision may take, neither less nor
    /// more than half of them stay down with significance.
    pub undecided: Vec<f64>,
}

/// A value that a [`Search`](super::Search) tried.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tried {
    /// The value.
    pub value: f64,
    /// How many seeds are down at the horizon.
    pub down: u64,
    /// Number of seeds.
    pub seeds: u64,
}

/// A border: where the share of the seeds that stay down rises or falls across one half.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Border {
    /// Whether the system stays down above the border, and not below it.
    pub is_worse_above: bool,
    /// Where half of the seeds stay down.
    pub half: BorderPoint,
    /// Where a tenth of the seeds stays down; `None` if that is outside of the range of the search.
    pub tenth: Option<BorderPoint>,
    /// Where nine tenths of the seeds stay down; `None` if that is outside of the range of the search.
    pub nine_tenths: Option<BorderPoint>,
}

/// The value at which a share of the seeds stays down.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BorderPoint {
    /// The estimate.
    pub value: f64,
    /// Lower end of the 95 % interval. At the low end of the range of the search, it may be lower.
    pub low: f64,
    /// Upper end of the 95 % interval. At the high end of the range of the search, it may be higher.
    pub high: f64,
}

impl Tried {
    /// Returns whether half of the seeds or more are down at the horizon.
    #[must_use]
    pub const fn stays_down(&self) -> bool {
        2 * self.down >= self.seeds
    }

    /// Returns the share of the seeds that are down at the horizon.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.down as f64 / self.seeds as f64
    }
}
