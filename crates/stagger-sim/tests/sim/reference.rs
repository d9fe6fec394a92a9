//! Building blocks of independent reference models: floating point, a heap, and another random generator. They share no
//! code with the simulator that is compared with them.

use core::cmp::Ordering;
use std::collections::BinaryHeap;

/// A random generator: xorshift64*, Vigna 2016.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        // Similar seeds start with similar numbers.
        for _ in 0..20 {
            let _ = rng.share();
        }
        rng
    }

    /// Returns a uniform number in `[0, 1)`.
    pub(super) fn share(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn uniform(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.share()
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.share() * count as f64) as usize
    }

    /// Returns a normal deviate (Box and Muller, 1958).
    pub(super) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        mean + deviation * radius * (core::f64::consts::TAU * self.share()).cos()
    }

    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }
}

/// A queue of events, ordered by time.
pub(super) struct EventQueue<T> {
    entries: BinaryHeap<Entry<T>>,
}

struct Entry<T> {
    at: f64,
    what: T,
}

impl<T> EventQueue<T> {
    pub(super) const fn new() -> Self {
        Self { entries: BinaryHeap::new() }
    }

    pub(super) fn put(&mut self, at: f64, what: T) {
        self.entries.push(Entry { at, what });
    }

    pub(super) fn take(&mut self) -> Option<(f64, T)> {
        self.entries.pop().map(|Entry { at, what }| (at, what))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at)
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

/// Returns the mean and the standard deviation of several runs.
pub(super) fn moments(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let values: Vec<_> = values.into_iter().collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
