use crate::outcome::FailureKind;
use crate::policy::{DelayCurve, Drawn, Policy};

/// `min(cap, U[base, 3 · previous])`: decorrelated jitter as it was published, with the cap after the draw.
pub(super) struct CappedLast;

impl DelayCurve for CappedLast {
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        let drawn = policy.formula(policy.curve.shape, carry, n, kind, bits)?;
        let delay = drawn.delay.min(policy.last_cap());
        Some(Drawn { delay, carry: delay as f64, ..drawn })
    }
}
