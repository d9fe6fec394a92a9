/// How far beyond the simulated values is agreement, as a share of them.
const TOLERANCE: f64 = 0.1;

/// Returns whether a measured value is within the range of the simulated ones, or beyond it by at most a tenth, or by at most `noise`.
pub(super) fn is_within(measured: f64, simulated: impl Iterator<Item = f64> + Clone, noise: f64) -> bool {
    let least = simulated.clone().fold(f64::INFINITY, f64::min);
    let most = simulated.fold(f64::NEG_INFINITY, f64::max);
    let room = |value: f64| (TOLERANCE * value.abs()).max(noise);
    measured >= least - room(least) && measured <= most + room(most)
}
