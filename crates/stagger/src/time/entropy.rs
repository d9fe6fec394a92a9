//! Seeds and secrets from the randomness of the system.

use core::hash::{BuildHasher, Hasher};
use std::hash::RandomState;
use std::sync::OnceLock;

use stagger_core::Seed;
#[cfg(all(feature = "admission", target_has_atomic = "64"))]
use stagger_core::admission::Secret;

/// Returns a seed for one call: unique across calls, threads, processes, and copies of one process.
///
/// The system's entropy is read once per process. Each seed mixes it with a count of the seeds generated and the wall
/// clock in nanoseconds, so that a process that was forked, or restored from a snapshot of its machine, diverges from
/// its copy with its next call.
///
/// On `wasm32-unknown-unknown` the standard library has neither entropy nor a wall clock: seeds differ within one
/// instance of a module, and **are the same in every instance**, so that many clients would draw the same delays.
/// There, create a seed from the host's random numbers, such as `crypto.getRandomValues`, and set it with
/// [`Retrier::seed`](crate::Retrier::seed) or on the call.
///
/// ```
/// assert_ne!(stagger::seed(), stagger::seed());
/// ```
#[must_use]
pub fn seed() -> Seed {
    seed_at(wall_clock_nanos())
}

/// Draws the secret of an [`Admission`](crate::admission::Admission) from the operating system's randomness, by way of
/// the keys of the standard library's hash maps. Each call returns another one. On `wasm32-unknown-unknown`, where the
/// library has no randomness, the secret can be guessed, as [`seed`] can: use [`Secret::new`] there.
///
/// ```
/// use stagger::admission::{Admission, random_secret};
///
/// let admission = Admission::per_second(500).build(random_secret())?;
/// # Ok::<(), stagger::admission::AdmissionError>(())
/// ```
#[cfg(all(feature = "admission", target_has_atomic = "64"))]
#[must_use]
pub fn random_secret() -> Secret {
    let keys = RandomState::new();
    // The seed differs in copies of one process, which share the state of the keys.
    let copy = seed().get();
    let [low, high] = [0_u64, 1].map(|half| u128::from(keys.hash_one((half, copy))));
    Secret::new((high << 64 | low).to_le_bytes())
}

/// Returns a seed that was not returned before, whatever the wall clock says: it may be coarse, or stand still.
fn seed_at(wall_clock: u64) -> Seed {
    static PROCESS: OnceLock<Seed> = OnceLock::new();
    // The hasher's keys are the only source of system entropy in the standard library.
    let process = PROCESS.get_or_init(|| Seed::new(RandomState::new().build_hasher().finish()));
    mix(*process, next_count(), wall_clock)
}

/// Returns how often it was called before.
#[cfg(target_has_atomic = "64")]
fn next_count() -> u64 {
    use core::sync::atomic::{AtomicU64, Ordering};

    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// Returns how often it was called before. A count of 32 bits would repeat itself within hours.
#[cfg(not(target_has_atomic = "64"))]
fn next_count() -> u64 {
    use std::sync::{Mutex, PoisonError};

    static COUNT: Mutex<u64> = Mutex::new(0);
    let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    let before = *count;
    *count = before.wrapping_add(1);
    before
}

/// Mixes the process seed, the count and the time. Copies of one process share the first two.
#[inline]
const fn mix(process: Seed, count: u64, wall_clock: u64) -> Seed {
    // An odd multiplier spreads the time over all bits, so that no count can compensate for a difference in time.
    process.for_call(count.wrapping_add(wall_clock.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Returns bits that copies of one process do not share; not a time. Constant before 1970.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn wall_clock_nanos() -> u64 {
    use std::time::SystemTime;

    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(since.subsec_nanos())),
        Err(_) => 0,
    }
}

/// Returns a constant: the standard library panics if it is asked for the time.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
const fn wall_clock_nanos() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn copies_of_one_process_diverge_with_the_wall_clock() {
        let process = Seed::new(1);
        let seeds: HashSet<Seed> = (0..1_000).map(|nanos| mix(process, 7, nanos)).collect();
        assert_eq!(seeds.len(), 1_000);
        assert_ne!(mix(process, 7, 0), mix(process, 8, 0));
    }

    #[test]
    fn a_stopped_clock_never_repeats_a_seed() {
        let seeds: HashSet<Seed> = (0..1_000).map(|_| seed_at(42)).collect();
        assert_eq!(seeds.len(), 1_000);
    }

    #[test]
    fn seeds_of_many_threads_never_repeat() {
        let threads: Vec<_> =
            (0..8).map(|_| std::thread::spawn(|| (0..10_000).map(|_| seed().get()).collect::<Vec<_>>())).collect();
        let seeds: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(seeds.iter().collect::<HashSet<_>>().len(), 80_000);
    }
}
