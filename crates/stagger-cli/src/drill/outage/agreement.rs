use serde::Serialize;

use super::document::Figures;

/// A figure as measured and as simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Compared {
    /// Its key among the figures.
    pub(super) figure: &'static str,
    /// As measured.
    pub(super) measured: f64,
    /// The mean of the simulations.
    pub(super) simulated: f64,
    /// Whether they differ by at most a tenth of the simulated value, or by so little that it is noise.
    pub(super) agrees: bool,
}

/// The difference that agrees, as a share of the simulated value.
const TOLERANCE: f64 = 0.1;

/// Compares the figures that a policy is judged by.
pub(super) fn compare(measured: &Figures, simulated: &[Figures]) -> Vec<Compared> {
    // Each with the difference that is noise: of a share, of attempts, of places in the queue.
    let figures: [(&'static str, fn(&Figures) -> f64, f64); 4] = [
        ("success_ratio", |figures| figures.success_ratio, 0.02),
        ("success_ratio_during_fault", |figures| figures.success_ratio_during_fault, 0.02),
        ("attempts_per_request", |figures| figures.attempts_per_request, 0.02),
        ("longest_queue", |figures| f64::from(figures.longest_queue), 2.0),
    ];
    let compared = figures.into_iter().map(|(figure, of, noise)| {
        let mean = simulated.iter().map(of).sum::<f64>() / simulated.len().max(1) as f64;
        let measured = of(measured);
        let agrees = (measured - mean).abs() <= (TOLERANCE * mean.abs()).max(noise);
        Compared { figure, measured, simulated: mean, agrees }
    });
    compared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(attempts: f64, queue: u32) -> Figures {
        Figures { attempts_per_request: attempts, longest_queue: queue, ..Figures::default() }
    }

    #[test]
    fn figures_agree_within_a_tenth_of_the_mean_of_the_simulations() {
        let agree = |measured: Figures, simulated: &[Figures]| {
            compare(&measured, simulated).iter().map(|one| one.agrees).collect::<Vec<_>>()
        };
        let simulated = [figures(1.0, 100), figures(3.0, 100)];
        assert_eq!(agree(figures(2.19, 91), &simulated), [true; 4]);
        assert_eq!(agree(figures(2.21, 91), &simulated), [true, true, false, true]);
        assert_eq!(agree(figures(1.81, 89), &simulated), [true, true, true, false]);
        // One of a queue of four is noise, and a tenth of it is not.
        assert_eq!(agree(figures(1.0, 5), &[figures(1.0, 4)]), [true; 4]);
    }
}
