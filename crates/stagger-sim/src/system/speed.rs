/// The speed of a service's workers over time: 1, except where faults change it. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Speed {
    /// From when on the workers have this share of their speed; the last is 1.
    steps: Vec<(u64, f64)>,
}

impl Speed {
    /// Creates the product of shares that hold from their start to their end.
    pub(super) fn new(shares: &[(u64, u64, f64)]) -> Self {
        let mut times: Vec<_> = shares.iter().flat_map(|&(from, until, _)| [from, until]).collect();
        times.sort_unstable();
        times.dedup();
        let product = |at| {
            let active = shares.iter().filter(|&&(from, until, _)| from <= at && at < until);
            active.map(|&(_, _, share)| share).product()
        };
        Self { steps: times.into_iter().map(|at| (at, product(at))).collect() }
    }

    /// Returns when `work` is done that begins at `start`.
    #[inline]
    pub(super) fn end(&self, start: u64, work: u64) -> u64 {
        if self.steps.is_empty() { start.saturating_add(work) } else { self.end_by_steps(start, work) }
    }

    fn end_by_steps(&self, start: u64, work: u64) -> u64 {
        let (mut at, mut left) = (start, work as f64);
        let mut begun = self.steps.partition_point(|&(from, _)| from <= at);
        loop {
            let share = begun.checked_sub(1).map_or(1.0, |last| self.steps[last].1);
            let needed = left / share;
            match self.steps.get(begun) {
                Some(&(next, _)) if at as f64 + needed > next as f64 => {
                    left -= (next - at) as f64 * share;
                    at = next;
                    begun += 1;
                }
                // The conversion saturates.
                _ => return at.saturating_add(needed.round() as u64),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_as_if_the_speed_were_integrated() {
        let speed = Speed::new(&[(100, 200, 0.0), (300, 400, 0.5), (350, 400, 0.5)]);
        for (start, work, want) in [
            (0, 100, 100),
            (0, 101, 201),
            (50, 60, 210),
            (150, 10, 210),
            (200, 100, 300),
            (300, 25, 350),
            (340, 15, 390),
            (340, 20, 402 + 1),
            (400, 7, 407),
        ] {
            let got = speed.end(start, work);
            assert!(got.abs_diff(want) <= 1, "{work} from {start} ends at {got}, expected {want}");
        }
        assert_eq!(Speed::default().end(u64::MAX, 5), u64::MAX);
    }
}
