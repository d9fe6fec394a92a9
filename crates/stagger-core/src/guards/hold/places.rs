use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};

/// The places of the calls that wait: `issued: 32 bits, left: 32`. A call's place minus the places that were left is the
/// number of calls before it; it is a little too small if a call behind it has left, and then that call asks early.
#[derive(Debug)]
pub(in crate::guards) struct Places(AtomicU64);

const LEFT: u64 = u32::MAX as u64;

impl Places {
    const_unless_loom! {
        pub(in crate::guards) const fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// Returns how many calls wait.
    pub(in crate::guards) fn waiting(&self) -> u32 {
        let seen = self.0.load(Ordering::Acquire);
        issued(seen).wrapping_sub(seen as u32)
    }

    /// Returns how many calls are before this place.
    pub(in crate::guards) fn before(&self, place: u32) -> u32 {
        let before = place.wrapping_sub(self.0.load(Ordering::Acquire) as u32);
        if before > u32::MAX / 2 { 0 } else { before }
    }

    /// Takes the last place; `None` if as many calls wait as may.
    pub(in crate::guards) fn take(&self, most: u32) -> Option<u32> {
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |seen| {
            let waiting = issued(seen).wrapping_sub(seen as u32);
            (waiting < most).then(|| seen.wrapping_add(1 << 32))
        });
        taken.ok().map(issued)
    }

    /// Leaves a place, whichever it was.
    pub(in crate::guards) fn leave(&self) {
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |seen| {
            // A permit that was released twice must not make the number of waiting calls negative.
            (issued(seen) != seen as u32).then(|| seen & !LEFT | u64::from((seen as u32).wrapping_add(1)))
        });
    }
}

const fn issued(seen: u64) -> u32 {
    (seen >> 32) as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_counted_across_the_wraparound() {
        let last = u64::from(u32::MAX);
        let places = Places(AtomicU64::new(last << 32 | last));
        let taken = [(); 4].map(|()| places.take(3));
        assert_eq!(taken, [Some(u32::MAX), Some(0), Some(1), None]);
        assert_eq!((places.waiting(), places.before(u32::MAX), places.before(1)), (3, 0, 2));
        places.leave();
        assert_eq!((places.waiting(), places.before(u32::MAX), places.before(1)), (2, 0, 1));
        (0..5).for_each(|_| places.leave());
        assert_eq!((places.waiting(), places.take(1)), (0, Some(2)));
    }
}
