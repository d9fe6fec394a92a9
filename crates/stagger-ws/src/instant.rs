use core::time::Duration;

use tokio::time::Instant;

/// Returns `from + length`, or an instant thirty years from now if that cannot be represented. Adding with `+` would
/// panic.
pub(crate) fn saturating_add(from: Instant, length: Duration) -> Instant {
    // Tokio itself uses thirty years for instants too far away to represent.
    const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
    from.checked_add(length).or_else(|| Instant::now().checked_add(FAR)).unwrap_or(from)
}
