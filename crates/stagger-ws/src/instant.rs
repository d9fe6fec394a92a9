use core::time::Duration;

use tokio::time::Instant;

/// Returns `from + length`, or an instant thirty years from now if that cannot be represented. Adding with `+` would
/// panic.
pub(crate) fn saturating_add(from: Instant, length: Duration) -> Instant {
    // Tokio itself uses thirty years for instants too far away to represent.
    const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
    from.checked_add(length).or_else(|| Instant::now().checked_add(FAR)).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_cannot_be_represented_is_far_away() {
        let now = Instant::now();
        assert_eq!(saturating_add(now, Duration::from_secs(7)), now + Duration::from_secs(7));
        assert!(saturating_add(now, Duration::MAX) > now + Duration::from_secs(86_400 * 365));
        let (mut last, mut step) = (now, Duration::MAX);
        while !step.is_zero() {
            last = last.checked_add(step).unwrap_or(last);
            step /= 2;
        }
        assert!(saturating_add(last, Duration::from_secs(1)) > now);
    }
}
