//! The atomics of the guards: those of `core`; loom's, which try every interleaving; or, on targets that cannot compare
//! and swap, a stand-in.

#[cfg(all(feature = "hedge", not(loom), target_has_atomic = "32"))]
pub(crate) use core::sync::atomic::AtomicU32;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::Ordering;
#[cfg(all(not(loom), target_has_atomic = "64"))]
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, fence},
};
#[cfg(all(feature = "hedge", not(loom), not(target_has_atomic = "32")))]
pub(crate) use counter::AtomicU32;

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
zeros!(
    #[cfg(feature = "hedge")]
    short_zeros: AtomicU32
);
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

/// A stand-in for targets that cannot compare and swap, such as `thumbv6m` and `riscv32imc`.
#[cfg(any(test, all(feature = "hedge", not(target_has_atomic = "32"))))]
mod counter {
    use core::cell::Cell;
    use core::sync::atomic::Ordering;

    /// The part of the interface of `core::sync::atomic::AtomicU32` that this crate uses.
    ///
    /// Not `Sync`, so that it needs no atomic operation.
    #[derive(Debug)]
    pub(crate) struct AtomicU32(Cell<u32>);

    impl AtomicU32 {
        pub(crate) const fn new(value: u32) -> Self {
            Self(Cell::new(value))
        }

        pub(crate) fn load(&self, _: Ordering) -> u32 {
            self.0.get()
        }

        pub(crate) fn fetch_add(&self, value: u32, _: Ordering) -> u32 {
            self.0.replace(self.0.get().wrapping_add(value))
        }

        pub(crate) fn compare_exchange(&self, old: u32, new: u32, _: Ordering, _: Ordering) -> Result<u32, u32> {
            let current = self.0.get();
            if current != old {
                return Err(current);
            }
            Ok(self.0.replace(new))
        }

        pub(crate) fn fetch_update(
            &self,
            _: Ordering,
            _: Ordering,
            update: impl FnOnce(u32) -> Option<u32>,
        ) -> Result<u32, u32> {
            let current = self.0.get();
            update(current).map(|new| self.0.replace(new)).ok_or(current)
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{self, Ordering};

    use super::counter::AtomicU32;

    #[test]
    fn the_counter_without_atomic_instructions_does_what_the_atomic_does() {
        let (ours, theirs) = (AtomicU32::new(u32::MAX), atomic::AtomicU32::new(u32::MAX));
        let order = Ordering::Relaxed;
        for value in [3, 0, 7, u32::MAX] {
            assert_eq!(ours.fetch_add(value, order), theirs.fetch_add(value, order));
            for (old, new) in [(value, 1), (2, 9), (1, 5)] {
                let want = theirs.compare_exchange(old, new, order, order);
                assert_eq!(ours.compare_exchange(old, new, order, order), want);
            }
            for update in [|at: u32| at.checked_sub(2), |at: u32| at.checked_add(8)] {
                assert_eq!(ours.fetch_update(order, order, update), theirs.fetch_update(order, order, update));
            }
            assert_eq!(ours.load(order), theirs.load(order));
        }
    }
}
