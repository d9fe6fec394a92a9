//! How many bytes a retrying future adds to the future it drives.

/// Bytes added over a small inner future and over one of a kibibyte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Sizes {
    /// Over an inner future of two words.
    pub(crate) small: isize,
    /// Over an inner future that holds a kibibyte across an await.
    pub(crate) large: isize,
}

impl Sizes {
    /// What `retrying` adds to `inner`, each made once around a small and once around a large future.
    pub(crate) const fn added<SmallInner, Small, LargeInner, Large>(
        small: (&SmallInner, &Small),
        large: (&LargeInner, &Large),
    ) -> Self {
        Self { small: added(small.0, small.1), large: added(large.0, large.1) }
    }
}

/// Signed, because a compiler may overlap the two.
const fn added<Inner, Outer>(_inner: &Inner, _outer: &Outer) -> isize {
    size_of::<Outer>() as isize - size_of::<Inner>() as isize
}
