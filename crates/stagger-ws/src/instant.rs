use core::iter;
use core::time::Duration;

use tokio::time::Instant;

/// Returns `from + length`. A length of many billions of years is halved until the sum can be represented, where `+`
/// would panic.
pub(crate) fn saturating_add(from: Instant, length: Duration) -> Instant {
    let mut lengths = iter::successors(Some(length), |length| Some(*length / 2));
    lengths.find_map(|length| from.checked_add(length)).unwrap_or(from)
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
