//! The same storm in a specialized loop: one formula, eight bytes per client, no figures. It measures the upper bound
//! of this machine, to put measurements of other machines in proportion.

const WIDTH_BITS: u32 = 14;
const CLIENT_BITS: u32 = 26;
const RING: usize = 1 << 12;
const BASE_US: u64 = 500_000;
const CAP_US: u64 = 30_000_000;

/// Returns the number of attempts until all clients are connected.
pub(crate) fn attempts(clients: u64, rate: f64, backlog: f64) -> u64 {
    let mut ring: Vec<Vec<u64>> = vec![Vec::new(); RING];
    let mut failures = vec![0_u64; clients as usize];
    let handshake = 1e6 / rate;
    let (mut free, mut attempts, mut open) = (0.0_f64, 0, clients);
    let client_mask = (1 << CLIENT_BITS) - 1;
    for client in 0..clients {
        let bits = mix(client);
        let at = share(bits as u32, 300_000) + 10_000 + share((bits >> 32) as u32, BASE_US);
        ring[(at >> WIDTH_BITS) as usize].push(at << CLIENT_BITS | client);
    }
    let (mut sorted, mut ends) = (Vec::new(), vec![0_u32; 1 << WIDTH_BITS]);
    for bin in 0.. {
        if open == 0 {
            break;
        }
        let mut events = core::mem::take(&mut ring[bin % RING]);
        sort(&events, &mut sorted, &mut ends);
        for &event in &sorted {
            let (at, client) = (event >> CLIENT_BITS, event & client_mask);
            attempts += 1;
            if (free - at as f64) < handshake * backlog {
                free = free.max(at as f64) + handshake;
                open -= 1;
                continue;
            }
            let failed = &mut failures[client as usize];
            *failed += 1;
            let bits = mix(*failed << CLIENT_BITS | client);
            let ceiling = (BASE_US << (*failed).min(16)).min(CAP_US);
            let again = at + 20_000 + share(bits as u32, 60_000) + share((bits >> 32) as u32, ceiling);
            ring[(again >> WIDTH_BITS) as usize % RING].push(again << CLIENT_BITS | client);
        }
        events.clear();
        // Keeps the memory for the next revolution of the ring.
        if ring[bin % RING].is_empty() {
            ring[bin % RING] = events;
        }
    }
    attempts
}

/// Sorts events by the microsecond within the bin, then events of the same microsecond.
fn sort(events: &[u64], sorted: &mut Vec<u64>, ends: &mut [u32]) {
    let digit = |event: u64| (event >> CLIENT_BITS) as usize & ((1 << WIDTH_BITS) - 1);
    ends.fill(0);
    for &event in events {
        ends[digit(event)] += 1;
    }
    let mut sum = 0;
    for end in ends.iter_mut() {
        sum += core::mem::replace(end, sum);
    }
    sorted.resize(events.len(), 0);
    for &event in events {
        let end = &mut ends[digit(event)];
        sorted[*end as usize] = event;
        *end += 1;
    }
    for at in 1..sorted.len() {
        let (mut to, event) = (at, sorted[at]);
        while to > 0 && sorted[to - 1] > event {
            sorted[to] = sorted[to - 1];
            to -= 1;
        }
        sorted[to] = event;
    }
}

fn share(bits: u32, of: u64) -> u64 {
    (u64::from(bits) * of) >> 32
}

/// Computes SplitMix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
