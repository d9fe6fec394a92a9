use std::collections::BTreeMap;

/// Most parts of time that are kept.
const MAX_PARTS: usize = 4_096;

const SECOND: u64 = 1_000_000_000;

/// Attempts that began within a part of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Second {
    pub(crate) first: u64,
    pub(crate) retries: u64,
}

/// Attempts over time. A part is a second, and longer if the traces reach further.
#[derive(Debug)]
pub(crate) struct Timeline {
    parts: BTreeMap<u64, Second>,
    /// Length of a part, in nanoseconds.
    width: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { parts: BTreeMap::new(), width: SECOND }
    }
}

impl Timeline {
    pub(crate) fn add(&mut self, start: u64, is_retry: bool) {
        let part = self.parts.entry(start / self.width).or_default();
        part.retries += u64::from(is_retry);
        part.first += u64::from(!is_retry);
        while self.parts.len() > MAX_PARTS {
            self.widen();
        }
    }

    /// Doubles the length of the parts.
    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        let mut parts: BTreeMap<u64, Second> = BTreeMap::new();
        for (at, part) in &self.parts {
            let sum = parts.entry(at / 2).or_default();
            sum.first += part.first;
            sum.retries += part.retries;
        }
        self.parts = parts;
    }

    /// Returns the parts in order: start in nanoseconds, length, attempts.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, Second)> {
        self.parts.iter().map(|(at, part)| (at.saturating_mul(self.width), *part))
    }

    pub(crate) const fn width(&self) -> u64 {
        self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_seconds_until_there_are_too_many() {
        let mut timeline = Timeline::default();
        timeline.add(1_500_000_000, false);
        timeline.add(1_900_000_000, true);
        assert_eq!(timeline.parts().next(), Some((SECOND, Second { first: 1, retries: 1 })));
        for at in 0..3 * MAX_PARTS as u64 {
            timeline.add(at * SECOND, false);
        }
        assert_eq!(timeline.width(), 4 * SECOND);
        assert!(timeline.parts().count() <= MAX_PARTS);
        let all: u64 = timeline.parts().map(|(_, part)| part.first + part.retries).sum();
        assert_eq!(all, 2 + 3 * MAX_PARTS as u64);
        // A clock that is far off does not take many steps.
        timeline.add(u64::MAX, false);
        assert_eq!(timeline.width(), 4 * SECOND);
    }
}
