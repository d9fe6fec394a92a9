use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};

/// How many outcomes are considered.
const LAST: u32 = 50;
/// From how many refusals among them on calls pause: more than 20 %.
const TOO_MANY: u32 = LAST / 5 + 1;

/// The last 50 outcomes, the newest in the lowest bit; a refusal is a one. Outcomes that have not been recorded yet count
/// as successes, so a success after 50 of them changes nothing, and is one load.
#[derive(Debug)]
pub(super) struct Recent(AtomicU64);

/// What one more outcome shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Nothing,
    /// The last 50 outcomes have no refusal, for the first time.
    Clean,
    TooManyRefusals,
}

impl Recent {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    #[inline]
    pub(super) fn is_clean(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    pub(super) fn count(&self, is_refusal: bool) -> Finding {
        let next = |seen: u64| (seen << 1 | u64::from(is_refusal)) & ((1 << LAST) - 1);
        let update = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |seen| Some(next(seen)));
        let seen = update.unwrap_or_else(|seen| seen);
        match next(seen) {
            0 if seen != 0 => Finding::Clean,
            new if is_refusal && new.count_ones() >= TOO_MANY => Finding::TooManyRefusals,
            _ => Finding::Nothing,
        }
    }

    /// Begins again with a single refusal: the pause that begins now.
    pub(super) fn restart(&self) {
        self.0.store(1, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_fifth_of_the_last_fifty_is_too_many() {
        for (every, want) in [(1, Some(10)), (4, Some(40)), (5, None), (50, None)] {
            let recent = Recent::new();
            let found = (0..1_000).position(|n| recent.count(n % every == 0) == Finding::TooManyRefusals);
            assert_eq!(found, want, "one of {every} is refused");
        }
    }

    #[test]
    fn a_window_is_clean_once_after_fifty_successes() {
        let recent = Recent::new();
        recent.restart();
        let found: std::vec::Vec<_> = (0..60).map(|_| recent.count(false)).collect();
        assert_eq!(found.iter().position(|&found| found == Finding::Clean), Some(49));
        assert_eq!(found.iter().filter(|&&found| found == Finding::Clean).count(), 1);
        assert!(recent.is_clean());
    }
}
