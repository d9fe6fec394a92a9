use stagger::Seed;

use super::super::draws::Draws;

/// A figure that is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    /// A difference that says nothing, because tokio's timer has a resolution of a millisecond: absolute, and relative
    /// to the figure.
    pub(crate) tolerance: [f64; 2],
}

/// The number of runs of the simulator and of real tasks: at first, and again as long as they may differ.
const RUNS: [[u64; 2]; 3] = [[16, 4], [64, 16], [128, 48]];

/// Number of standard errors within which the means are equal.
pub(crate) const STANDARD_ERRORS: f64 = 4.0;
/// Number of standard errors from which on a figure is compared again, in more runs.
const SUSPICIOUS: f64 = 2.5;

/// Compares the means of simulated and of real runs. A difference counts if it is found in a second comparison, with
/// other seeds: with thousands of figures, chance alone exceeds four standard errors now and then.
///
/// # Errors
/// Returns the figures that differ.
pub(crate) fn compare<const N: usize>(
    measures: &[Measure; N],
    draws: &mut Draws,
    simulated: impl Fn(Seed) -> [f64; N],
    real: impl Fn(Seed) -> [f64; N],
) -> Result<(), String> {
    let mut suspects: Vec<usize> = (0..N).collect();
    for (round, [simulations, real_runs]) in RUNS.into_iter().enumerate() {
        let simulated: Vec<_> = (0..simulations).map(|_| simulated(draws.seed())).collect();
        let real: Vec<_> = (0..real_runs).map(|_| real(draws.seed())).collect();
        let mut report = String::new();
        suspects.retain(|&figure| {
            let [one, other] = [&simulated, &real].map(|runs| runs.iter().map(|run| run[figure]).collect::<Vec<_>>());
            let found = Difference::between(&one, &other);
            if round > 0 && found.exceeds(STANDARD_ERRORS, &measures[figure]) {
                report.push_str(&format!("; {}: {found}", measures[figure].name));
            }
            found.exceeds(SUSPICIOUS, &measures[figure])
        });
        if !report.is_empty() {
            return Err(report);
        }
        if suspects.is_empty() {
            break;
        }
    }
    Ok(())
}

/// The difference of two means.
pub(crate) struct Difference {
    simulated: f64,
    real: f64,
    standard_error: f64,
}

impl Difference {
    /// The variance is that of all runs together: four runs alone would estimate it badly.
    fn between(simulated: &[f64], real: &[f64]) -> Self {
        Self::of_mean(mean(simulated), simulated.len() as u32, simulated, real)
    }

    /// The difference between the mean of real runs and one that was found in this number of other simulations;
    /// `simulated` only tells how much it varies.
    pub(crate) fn of_mean(said: f64, runs: u32, simulated: &[f64], real: &[f64]) -> Self {
        let squares = |runs: &[f64]| runs.iter().map(|run| (run - mean(runs)).powi(2)).sum::<f64>();
        let [one, other] = [simulated.len() as f64, real.len() as f64];
        let variance = (squares(simulated) + squares(real)) / (one + other - 2.0);
        let standard_error = (variance * (1.0 / f64::from(runs) + 1.0 / other)).sqrt();
        Self { simulated: said, real: mean(real), standard_error }
    }

    /// Returns whether the means differ by more than this number of standard errors and the tolerance.
    pub(crate) fn exceeds(&self, standard_errors: f64, measure: &Measure) -> bool {
        let [absolute, relative] = measure.tolerance;
        let tolerance = absolute + relative * self.real.abs();
        (self.simulated - self.real).abs() > standard_errors * self.standard_error + tolerance
    }
}

fn mean(runs: &[f64]) -> f64 {
    runs.iter().sum::<f64>() / runs.len() as f64
}

impl core::fmt::Display for Difference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { simulated, real, standard_error } = self;
        write!(f, "simulated {simulated:.4}, real {real:.4}, standard error {standard_error:.4}")
    }
}
