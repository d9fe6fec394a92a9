//! The bytes that a retry future adds to the future that it drives.

/// The bytes added to a small future and to one of a kibibyte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Sizes {
    /// Bytes added to a future of two words.
    pub(crate) small: isize,
    /// Bytes added to a future that holds a kibibyte across an await.
    pub(crate) large: isize,
}

impl Sizes {
    /// Computes the added bytes from a small and a large inner future, each with the retry future around it.
    pub(crate) const fn added<SmallInner, Small, LargeInner, Large>(
        small: (&SmallInner, &Small),
        large: (&LargeInner, &Large),
    ) -> Self {
        Self { small: added(small.0, small.1), large: added(large.0, large.1) }
    }
}

/// Computes the added bytes, which are signed because the compiler may overlap the two futures.
const fn added<Inner, Outer>(_inner: &Inner, _outer: &Outer) -> isize {
    size_of::<Outer>() as isize - size_of::<Inner>() as isize
}
