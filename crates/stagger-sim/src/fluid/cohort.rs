use super::distribution::{Distribution, UniformPiece};

/// The clients that wait for the same attempt: the share of them that sends in each step. Times are in steps.
///
/// A uniform piece is stored as the two changes at its ends, so its cost does not depend on its length.
pub(super) struct Cohort {
    /// Changes of the share that is sent per step, in a ring.
    changes: Vec<f64>,
    /// The share sent in the current step, without its change.
    level: f64,
    /// The shares sent in previous steps, as far back as they may be in flight, in a ring.
    sent: Vec<f64>,
    /// The steps between which there is something to send or in flight.
    busy: (usize, usize),
    horizon: usize,
}

impl Cohort {
    /// Creates a cohort for network delays of at most `way` steps. Nothing is sent after the horizon.
    pub(super) fn new(way: usize, horizon: usize) -> Self {
        let sent = vec![0.0; way.next_power_of_two()];
        Self { changes: vec![0.0; 64], level: 0.0, sent, busy: (0, 0), horizon }
    }

    pub(super) const fn is_busy(&self, step: usize) -> bool {
        self.busy.0 <= step && step < self.busy.1
    }

    /// Returns the first step from `step` on in which there is anything to send or in flight.
    pub(super) fn next(&self, step: usize) -> Option<usize> {
        (step < self.busy.1).then(|| self.busy.0.max(step))
    }

    pub(super) fn ring_len(&self) -> usize {
        self.changes.len()
    }

    /// Adds a share that waits for a delay with this distribution, from the middle of this step on.
    pub(super) fn add(&mut self, step: usize, share: f64, distribution: &Distribution) {
        if step >= self.busy.1 {
            // What is left is rounding error.
            self.level = 0.0;
            self.sent.fill(0.0);
            self.busy = (usize::MAX, step);
        }
        for UniformPiece { share: part, from, to } in &distribution.pieces {
            // A point mass is spread over one step.
            let (from, to) =
                if to - from < 1.0 { ((from + to) / 2.0, (from + to) / 2.0 + 1.0) } else { (from + 0.5, to + 0.5) };
            let height = share * part / (to - from);
            self.change(step, from, height);
            self.change(step, to, -height);
        }
    }

    /// Increases the share sent per step by `by`, from the time `at` after the start of this step.
    fn change(&mut self, step: usize, at: f64, by: f64) {
        let (whole, part) = (at as usize, at.fract());
        let begins = step.saturating_add(whole);
        self.busy.0 = self.busy.0.min(begins);
        if begins > self.horizon {
            // The change lies after the horizon; the current level continues until then.
            self.busy.1 = self.busy.1.max(self.horizon + 1);
            return;
        }
        self.busy.1 = self.busy.1.max(begins + 2 + self.sent.len());
        if whole + 1 >= self.changes.len() {
            self.grow(step, whole + 2);
        }
        let mask = self.changes.len() - 1;
        self.changes[begins & mask] += by * (1.0 - part);
        self.changes[(begins + 1) & mask] += by * part;
    }

    #[cold]
    fn grow(&mut self, step: usize, length: usize) {
        let mut longer = vec![0.0; length.next_power_of_two()];
        let (old, new) = (self.changes.len() - 1, longer.len() - 1);
        for step in step..step + self.changes.len() {
            longer[step & new] = self.changes[step & old];
        }
        self.changes = longer;
    }

    /// Returns the share that arrives in this step, with the given distribution of the network delay.
    pub(super) fn arrive(&self, step: usize, ways: &[f64]) -> f64 {
        let mask = self.sent.len() - 1;
        ways.iter().zip(0..).map(|(share, way)| share * self.sent[step.wrapping_sub(way) & mask]).sum()
    }

    pub(super) fn advance(&mut self, step: usize) {
        let (changes, sent) = (self.changes.len() - 1, self.sent.len() - 1);
        self.level += core::mem::take(&mut self.changes[step & changes]);
        self.sent[step & sent] = self.level;
        // A network delay of 0 steps has the weight 0; clears the entry that is read for it.
        self.sent[(step + 1) & sent] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(distribution: &Distribution, steps: usize) -> Vec<f64> {
        let mut cohort = Cohort::new(2, 1_000);
        cohort.add(0, 1.0, distribution);
        let step = |step| {
            let arrived = cohort.arrive(step, &[0.0, 1.0]);
            cohort.advance(step);
            arrived
        };
        (0..steps).map(step).collect()
    }

    #[test]
    fn a_uniform_piece_arrives_evenly_and_completely() {
        for (from, to) in [(10, 20), (100, 900)] {
            let got = arrivals(&Distribution::uniform(from as f64, to as f64), 1_000);
            let each = 1.0 / (to - from) as f64;
            assert!((got.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{got:?}");
            assert!(got[from + 2..=to].iter().all(|share| (share - each).abs() < 1e-12), "{got:?}");
            // Half of the first and of the last step, because it starts in the middle of a step.
            let ends = [got[from + 1], got[to + 1]];
            assert!(ends.iter().all(|share| (share - each / 2.0).abs() < 1e-12), "{ends:?}");
        }
    }

    #[test]
    fn a_point_mass_arrives_within_one_step() {
        for at in [0_u16, 7] {
            let got = arrivals(&Distribution::uniform(f64::from(at), f64::from(at)), 20);
            assert!((got[usize::from(at) + 1] - 1.0).abs() < 1e-12, "{got:?}");
        }
    }

    #[test]
    fn nothing_is_sent_after_the_horizon() {
        assert!(arrivals(&Distribution::uniform(500.0, 1_500.0), 1_000).iter().sum::<f64>() < 0.5);
        assert!(arrivals(&Distribution::uniform(5e9, 5e9), 1_000).iter().sum::<f64>() < 1e-12);
    }
}
