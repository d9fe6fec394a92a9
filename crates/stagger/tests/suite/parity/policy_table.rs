use stagger::Policy;

/// Policies with every jitter.
pub(crate) const JITTERS: [&str; 6] = [
    "exponential base=10ms cap=200ms jitter=none max-attempts=6",
    "exponential base=10ms cap=200ms jitter=full max-attempts=6",
    "exponential base=10ms cap=200ms jitter=equal max-attempts=6",
    "exponential base=10ms cap=200ms jitter=decorrelated max-attempts=6",
    "exponential base=10ms cap=200ms jitter=±20% max-attempts=6",
    "exponential base=10ms cap=50ms jitter=±100% max-attempts=20",
];

/// Policies with every shape of backoff and every setting that affects a decision.
pub(crate) const SETTINGS: [&str; 14] = [
    "exponential base=3ms cap=none multiplier=1.5 floor=2ms jitter=full max-attempts=6",
    "linear base=5ms step=3ms cap=30ms jitter=full max-attempts=8",
    "constant base=200us jitter=none max-attempts=9",
    "constant base=10ms jitter=equal max-attempts=4",
    "list delays=1ms,5ms,2ms jitter=full max-attempts=7",
    "zero max-attempts=5",
    "stop",
    "exponential base=10ms cap=200ms max-attempts=1",
    "exponential base=10ms cap=200ms max-attempts=inf",
    "exponential base=10ms cap=200ms spread=50ms max-attempts=4",
    "exponential base=10ms cap=200ms max-elapsed=60ms max-attempts=inf",
    "exponential base=10ms cap=200ms hint=exact throttled-base=30ms local-base=40ms",
    "exponential base=10ms cap=200ms hint=clamp:5ms max-attempts=6",
    "exponential base=10ms cap=200ms hint-spread=0% max-hint=2ms max-attempts=6",
];

pub(crate) fn parsed(policy: &str) -> Policy {
    policy.parse().unwrap_or_else(|error| panic!("{policy}: {error}"))
}
