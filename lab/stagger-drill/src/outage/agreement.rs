use serde::Serialize;

use super::super::agreement::is_within;
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
    /// Whether the measured value is within the range of the simulations, or beyond it by at most a tenth, or by so little that it
    /// is noise.
    pub(super) agrees: bool,
}

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
        let values = || simulated.iter().map(of);
        let measured = of(measured);
        let agrees = is_within(measured, values(), noise);
        let mean = values().sum::<f64>() / simulated.len().max(1) as f64;
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
    fn figures_agree_within_a_tenth_beyond_the_range_of_the_simulations() {
        let agree = |measured: Figures, simulated: &[Figures]| {
            compare(&measured, simulated).iter().map(|one| one.agrees).collect::<Vec<_>>()
        };
        let simulated = [figures(1.0, 100), figures(2.0, 100)];
        assert_eq!(agree(figures(2.19, 91), &simulated), [true; 4]);
        assert_eq!(agree(figures(0.91, 109), &simulated), [true; 4]);
        assert_eq!(agree(figures(2.21, 91), &simulated), [true, true, false, true]);
        assert_eq!(agree(figures(0.89, 89), &simulated), [true, true, false, false]);
        // Two of a queue of four are noise, although they are more than a tenth of it.
        assert_eq!(agree(figures(1.0, 6), &[figures(1.0, 4)]), [true; 4]);
        assert_eq!(agree(figures(1.0, 7), &[figures(1.0, 4)]), [true, true, true, false]);
    }
}
