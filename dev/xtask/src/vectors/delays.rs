use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use stagger_core::{Policy, Seed};

use crate::files::hex;
use crate::shell::Result;

/// The profiles that the JavaScript client has.
pub(super) const PROFILES: [&str; 12] = [
    "partysocket",
    "phoenix",
    "signalr",
    "pusher",
    "aws-mqtt5",
    "ezsockets",
    "mcp-sdk",
    "default",
    "web-socket",
    "background-job",
    "serverless",
    "interactive",
];

/// Policies of every backoff and jitter, and of lengths at which floating-point numbers are rounded.
const POLICIES: [&str; 20] = [
    "exponential base=100ms cap=10s max-attempts=inf",
    "exponential base=100ms cap=10s multiplier=1.7 jitter=equal floor=150ms spread=30s",
    "exponential base=1ns cap=none multiplier=10 max-attempts=40",
    "exponential base=123456789ns cap=104d jitter=±33.3333%",
    "exponential base=200d cap=none jitter=none multiplier=1.000001 max-attempts=30 spread=106751d",
    "exponential base=200d cap=none jitter=±99.9999% max-attempts=30",
    "exponential base=1s cap=4200ms jitter=add:500ms max-attempts=inf",
    "exponential base=1s cap=none jitter=add:106751d",
    "exponential base=1h cap=106751d23h47m16.854775807s max-attempts=inf",
    "linear base=1s step=333ms cap=3s jitter=none",
    "linear base=250ms cap=1m max-attempts=20",
    "constant base=1.000000001s",
    "constant base=5s jitter=none spread=1ns",
    "constant base=5s jitter=±20%",
    "list delays=1s,2s,5s,0s,10m",
    "list delays=3ns,5ns jitter=full max-attempts=inf",
    "decorrelated base=100ms cap=20s max-attempts=inf",
    "decorrelated base=1d cap=none max-attempts=60",
    "1s..5s",
    "zero spread=2s",
];

/// How many seeds the hash of a profile covers, and that of another policy.
const SEEDS: [u64; 2] = [10_000, 500];
/// How many delays of each seed.
const DELAYS: [usize; 2] = [6, 40];
/// Seeds whose delays are listed: they help to find what differs.
const LISTED: u64 = 2;

/// Returns draws of some seeds, and the delays of each policy: a hash over many seeds, and the first in full.
pub(super) fn vectors() -> Result<Value> {
    let draws = (0..20).map(|n| {
        let seed = Seed::new(n).for_call(n * n);
        let seed = if n % 3 == 0 { Seed::new(n) } else { seed };
        let [id, number] = [u64::MAX - n, (1 << 61) - 1 - n];
        json!([seed.get(), seed.for_call(n).get(), seed.for_call(id).get(), seed.draw(n), seed.draw(number)].map(text))
    });
    let profiles = PROFILES.map(|name| (name, SEEDS[0], DELAYS[0]));
    let policies = profiles.into_iter().chain(POLICIES.map(|policy| (policy, SEEDS[1], DELAYS[1])));
    let policies: Result<Vec<_>> = policies.map(|(policy, seeds, count)| policy_row(policy, seeds, count)).collect();
    Ok(json!({ "draws": draws.collect::<Vec<_>>(), "policies": policies? }))
}

/// Returns a number of 64 bits as JSON can hold it without loss.
fn text(number: u64) -> String {
    number.to_string()
}

fn policy_row(name: &str, seeds: u64, count: usize) -> Result<Value> {
    let policy: Policy = name.parse()?;
    let mut hash = Sha256::new();
    let mut listed = Vec::new();
    for id in 0..seeds {
        let seed = Seed::new(seeds).for_call(id);
        let spread = [policy.first_spread(seed)];
        let row: Vec<_> = spread.into_iter().chain(policy.delays(seed).take(count)).map(nanos).collect();
        for nanos in &row {
            hash.update(nanos.to_le_bytes());
        }
        if id < LISTED {
            listed.push(json!(row.into_iter().map(text).collect::<Vec<_>>()));
        }
    }
    Ok(json!({
        "policy": name, "canonical": policy.to_string(), "seeds": seeds, "delays": count, "listed": listed,
        "sha256": hex(&hash.finalize()),
    }))
}

fn nanos(length: core::time::Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use stagger_core::profile::Profile;

    use super::*;

    #[test]
    fn every_profile_of_the_client_exists() {
        for name in PROFILES {
            assert_eq!(Profile::named(name).map(Profile::name), Some(name));
        }
    }
}
