//! The atomics of the guards: those of `core`, or loom's, which try every interleaving.

#[cfg(all(not(loom), not(target_has_atomic = "32")))]
pub(crate) use super::counter::AtomicU32;
#[cfg(all(not(loom), target_has_atomic = "32"))]
pub(crate) use core::sync::atomic::AtomicU32;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::Ordering;
#[cfg(all(not(loom), target_has_atomic = "64"))]
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, fence},
};

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

/// A value on cache lines of its own, so that a write does not slow down readers of its neighbors.
///
/// 128 bytes: two lines of 64, because processors fetch them in pairs.
#[cfg(target_has_atomic = "64")]
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

macro_rules! zeros {
    ($(#[$meta:meta])* $name:ident: $Atomic:ident) => {
        /// Creates `N` counters at zero.
        $(#[$meta])*
        #[cfg(not(loom))]
        pub(crate) const fn $name<const N: usize>() -> [$Atomic; N] {
            [const { $Atomic::new(0) }; N]
        }

        /// Creates `N` counters at zero.
        #[cfg(loom)]
        pub(crate) fn $name<const N: usize>() -> [$Atomic; N] {
            core::array::from_fn(|_| $Atomic::new(0))
        }
    };
}
zeros!(short_zeros: AtomicU32);
zeros!(
    #[cfg(target_has_atomic = "64")]
    zeros: AtomicU64
);

/// Makes functions `const`, except under loom, whose atomics are created at run time.
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
