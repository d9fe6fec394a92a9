use core::time::Duration;

use stagger::{Seed, schedule::draw};

/// Random numbers, uniform on `[0, 1)` and the same in each run of the tests.
pub(super) struct Numbers {
    seed: Seed,
    drawn: u64,
}

impl Numbers {
    pub(super) fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    pub(super) fn next(&mut self) -> f64 {
        self.drawn += 1;
        let bits = self.seed.for_call(self.drawn).get();
        draw(Duration::ZERO, Duration::from_nanos((1 << 53) - 1), bits).as_nanos() as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
}

/// Returns the delays of a new call on each call, with different random numbers. `delay` gets the number of the retry, from
/// 1.
pub(crate) fn calls<F>(delay: F) -> impl FnMut() -> Box<dyn Iterator<Item = Duration>>
where
    F: Fn(i32, &mut Numbers) -> f64 + Copy + 'static,
{
    let mut calls = 0;
    move || {
        calls += 1;
        let mut numbers = Numbers::new(Seed::new(calls));
        Box::new((1..).map(move |n| Duration::from_secs_f64(delay(n, &mut numbers))))
    }
}
