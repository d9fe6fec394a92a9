//! The lower bound for the cost of a next delay.

use core::hint::black_box;
use core::iter::repeat_with;
use core::time::Duration;

use super::session::{BASE, CAP, sessions};
use crate::case::{Case, Role, Table};

/// Returns the hand-written rows.
pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::work(Table::Delay, Role::Floor, "full jitter, inline wyrand", inline)
            .note("24 bytes of state, multiplier 2"),
        Case::work(Table::Delay, Role::Floor, "full jitter, fastrand's thread-local generator", thread_local)
            .note("multiplier 2"),
    ]
}

/// Full jitter with an integer ceiling and its own generator.
#[derive(Debug)]
pub(crate) struct FullJitter {
    generator: u64,
    ceiling: u64,
    cap: u64,
}

impl FullJitter {
    #[inline]
    pub(crate) const fn new(seed: u64, base: Duration, cap: Duration) -> Self {
        Self { generator: seed, ceiling: base.as_nanos() as u64, cap: cap.as_nanos() as u64 }
    }

    /// Maps `bits` to `[0, ceiling]` and doubles the ceiling.
    #[inline]
    fn step(&mut self, bits: u64) -> Duration {
        let delay = (u128::from(bits) * u128::from(self.ceiling + 1)) >> 64;
        self.ceiling = self.cap.min(self.ceiling << 1);
        Duration::from_nanos(delay as u64)
    }
}

impl Iterator for FullJitter {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        let bits = wyrand(&mut self.generator);
        Some(self.step(bits))
    }
}

/// Draws with the generator that fastrand uses: an addition, a multiplication, two exclusive-ors.
#[inline]
fn wyrand(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x2d35_8dcc_aa6c_78a5);
    let product = u128::from(*state) * u128::from(*state ^ 0x8bb8_4b93_962e_acc9);
    (product >> 64) as u64 ^ product as u64
}

fn inline(iterations: u64) {
    let mut seed = black_box(7);
    sessions(iterations, &(BASE, CAP), |(base, cap)| {
        seed += 1;
        FullJitter::new(seed, *base, *cap)
    });
}

fn thread_local(iterations: u64) {
    sessions(iterations, &(BASE, CAP), |(base, cap)| {
        let mut delays = FullJitter::new(0, *base, *cap);
        repeat_with(move || delays.step(fastrand::u64(..)))
    });
}
