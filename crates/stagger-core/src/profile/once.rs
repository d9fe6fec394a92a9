use core::time::Duration;

use crate::numbers::draw::draw_nanos;
use crate::numbers::instant::nanos;
use crate::outcome::FailureKind;
use crate::policy::{DelayCurve, Drawn, Interval, Policy};
use crate::schedule::{least, whole};

/// The first delay is uniform on `[from, to]`, and every later one is the delay before it times the multiplier, at most
/// `cap`.
pub(super) struct Once {
    pub(super) from: Duration,
    pub(super) to: Duration,
}

impl DelayCurve for Once {
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, _: FailureKind, bits: u64) -> Option<Drawn> {
        let (cap, multiplier) = (policy.last_cap(), policy.curve.multiplier);
        let longest = policy.curve.cap;
        let (mut low, mut high) = (nanos(self.from) as f64, nanos(self.to) as f64);
        for _ in 1..n {
            let before = low;
            (low, high) = (least(longest, low * multiplier), least(longest, high * multiplier));
            if low.to_bits() == before.to_bits() {
                break;
            }
        }
        let interval = Interval { lo: whole(low), hi: whole(high) };
        // The first delay is drawn; later ones follow from it.
        let drawn = if n > 1 { whole(carry) } else { draw_nanos(interval.lo, interval.hi, bits) };
        Some(Drawn { delay: drawn.min(cap), interval, carry: least(longest, drawn as f64 * multiplier) })
    }
}
