/// The sums of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) slow: u64,
}

/// How a window counts a call. A call can be both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) failed: bool,
    pub(super) slow: bool,
}
