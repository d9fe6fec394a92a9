//! The atomics of the guards: the processor's, or loom's, which try every interleaving.

#[cfg(not(loom))]
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering, fence},
};
#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering, fence},
};

/// A value with cache lines of its own, so that writing it does not slow down who reads its neighbours.
///
/// 128 bytes: two lines of 64, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// `N` counters at zero.
#[cfg(not(loom))]
pub(crate) const fn zeros<const N: usize>() -> [AtomicU64; N] {
    [const { AtomicU64::new(0) }; N]
}

/// `N` counters at zero.
#[cfg(loom)]
pub(crate) fn zeros<const N: usize>() -> [AtomicU64; N] {
    core::array::from_fn(|_| AtomicU64::new(0))
}

/// Makes functions `const`, except under loom, whose atomics are made at run time.
macro_rules! const_unless_loom {
    ($($(#[$meta:meta])* $vis:vis const fn $name:ident $args:tt -> $ret:ty $body:block)*) => {$(
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $name $args -> $ret $body

        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $name $args -> $ret $body
    )*};
}
pub(crate) use const_unless_loom;
