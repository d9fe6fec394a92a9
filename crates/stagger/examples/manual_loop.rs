//! Without a driver: a policy provides the delays, and the caller writes the loop.
//!
//! ```sh
//! cargo run -p stagger --example manual_loop
//! ```

use core::time::Duration;
use std::collections::VecDeque;
use std::thread;

use stagger::{Policy, Seed, policy};

const POLICY: Policy = policy!(exponential(ms(2), ms(20)).jitter(Jitter::Equal).max_attempts(5));

/// Retries with one delay for each possible retry.
fn fetch(mut call: impl FnMut() -> Result<u32, &'static str>) -> Result<u32, &'static str> {
    let mut delays = POLICY.delays(stagger::seed());
    loop {
        match (call(), delays.next()) {
            (Ok(value), _) => return Ok(value),
            (Err("no such thing"), _) => return Err("no such thing"),
            (Err(error), None) => return Err(error),
            (Err(error), Some(delay)) => {
                println!("{error}; again in {delay:?}");
                thread::sleep(delay);
            }
        }
    }
}

/// Work that is put back into a queue: no thread sleeps, and the job only stores the number of its retry.
struct Job {
    name: &'static str,
    seed: Seed,
    retry: u32,
    due: Duration,
}

fn main() {
    let mut answers = [Err("busy"), Err("busy"), Ok(7)].into_iter();
    assert_eq!(fetch(|| answers.next().unwrap_or(Err("no such thing"))), Ok(7));
    assert_eq!(fetch(|| Err("no such thing")), Err("no such thing"));

    let names = ["first", "second", "third"];
    let seeds = Seed::new(42);
    let mut queue: VecDeque<Job> = (0..)
        .zip(names)
        .map(|(id, name)| Job { name, seed: seeds.for_call(id), retry: 0, due: Duration::ZERO })
        .collect();
    let mut given_up = Vec::new();
    while let Some(job) = queue.pop_front() {
        let retry = job.retry + 1;
        // The delay of any retry can be computed without the ones before it.
        let may_retry = POLICY.max_attempts().is_none_or(|most| retry < most.get());
        match POLICY.delay(retry, job.seed) {
            Some(delay) if may_retry => queue.push_back(Job { retry, due: job.due + delay, ..job }),
            _ => given_up.push((job.name, job.due)),
        }
    }
    println!("gave up: {given_up:?}");
    assert_eq!(given_up.len(), 3);
    let longest = POLICY.elapsed_bounds(4).map(|(_, most)| most);
    assert!(given_up.iter().all(|(_, due)| Some(*due) <= longest));
}
