use super::law::{Law, Piece};

/// Clients that wait for one and the same attempt: how large a share of them sends when. Times are in steps.
///
/// A uniform piece is written as the two changes at its ends, so that it costs the same however long it is.
pub(super) struct Cohort {
    /// Changes of the share that is sent in a step, in a ring from the present one on.
    changes: Vec<f64>,
    /// What is sent in the present step, without its change.
    level: f64,
    /// What was sent in the steps before, as long as it may be underway, in a ring.
    sent: Vec<f64>,
    step: usize,
    horizon: usize,
}

impl Cohort {
    /// For ways of at most `way` steps. Nothing is sent after the horizon.
    pub(super) fn new(way: usize, horizon: usize) -> Self {
        Self { changes: vec![0.0; 64], level: 0.0, sent: vec![0.0; way.next_power_of_two()], step: 0, horizon }
    }

    /// This share waits for as long as the law says, from the middle of the present step on.
    pub(super) fn add(&mut self, share: f64, law: &Law) {
        for Piece { share: part, from, to } in &law.pieces {
            // What comes all at once comes within a step.
            let (from, to) =
                if to - from < 1.0 { ((from + to) / 2.0, (from + to) / 2.0 + 1.0) } else { (from + 0.5, to + 0.5) };
            let height = share * part / (to - from);
            self.change(from, height);
            self.change(to, -height);
        }
    }

    /// From this time on, counted from the beginning of the present step, so much more is sent in a step.
    fn change(&mut self, at: f64, by: f64) {
        let (whole, part) = (at as usize, at.fract());
        if self.step + whole > self.horizon {
            return;
        }
        if whole + 1 >= self.changes.len() {
            self.reach(whole + 2);
        }
        let mask = self.changes.len() - 1;
        self.changes[(self.step + whole) & mask] += by * (1.0 - part);
        self.changes[(self.step + whole + 1) & mask] += by * part;
    }

    /// Makes the ring longer, with everything at its time.
    #[cold]
    fn reach(&mut self, length: usize) {
        let mut longer = vec![0.0; length.next_power_of_two()];
        let (old, new) = (self.changes.len() - 1, longer.len() - 1);
        for step in self.step..self.step + self.changes.len() {
            longer[step & new] = self.changes[step & old];
        }
        self.changes = longer;
    }

    /// What arrives in the present step of all that was sent before it.
    pub(super) fn arrive(&self, ways: &[f64]) -> f64 {
        let mask = self.sent.len() - 1;
        ways.iter().zip(0..).map(|(share, way)| share * self.sent[self.step.wrapping_sub(way) & mask]).sum()
    }

    /// The step is over.
    pub(super) fn advance(&mut self) {
        let (changes, sent) = (self.changes.len() - 1, self.sent.len() - 1);
        self.level += core::mem::take(&mut self.changes[self.step & changes]);
        self.sent[self.step & sent] = self.level;
        self.step += 1;
        // The way of no step has the share 0; what is read for it is not to be what was sent long ago.
        self.sent[self.step & sent] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(law: &Law, steps: usize) -> Vec<f64> {
        let mut cohort = Cohort::new(2, 1_000);
        cohort.add(1.0, law);
        let step = |_| {
            let arrived = cohort.arrive(&[0.0, 1.0]);
            cohort.advance();
            arrived
        };
        (0..steps).map(step).collect()
    }

    #[test]
    fn a_piece_arrives_evenly_and_whole() {
        for (from, to) in [(10, 20), (100, 900)] {
            let got = arrivals(&Law::uniform(from as f64, to as f64), 1_000);
            let each = 1.0 / (to - from) as f64;
            assert!((got.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{got:?}");
            assert!(got[from + 2..=to].iter().all(|share| (share - each).abs() < 1e-12), "{got:?}");
            // Half of the first and of the last step: it began in the middle of one.
            let ends = [got[from + 1], got[to + 1]];
            assert!(ends.iter().all(|share| (share - each / 2.0).abs() < 1e-12), "{ends:?}");
        }
    }

    #[test]
    fn what_comes_at_once_comes_within_a_step() {
        for at in [0_u16, 7] {
            let got = arrivals(&Law::uniform(f64::from(at), f64::from(at)), 20);
            assert!((got[usize::from(at) + 1] - 1.0).abs() < 1e-12, "{got:?}");
        }
    }

    #[test]
    fn what_would_be_sent_after_the_horizon_is_not() {
        assert!(arrivals(&Law::uniform(500.0, 1_500.0), 1_000).iter().sum::<f64>() < 0.5);
        assert!(arrivals(&Law::uniform(5e9, 5e9), 1_000).iter().sum::<f64>() < 1e-12);
    }
}
