//! Each fault that is played is found, with its numbers.

use stagger_traces::{DelayFrom, Report};

use crate::recorded::{CLIENT, Random, Recorded, SERVER};

const TIERS: [&str; 4] = ["gateway", "orders", "stock", "database"];

/// Plays a call from a tier to the next one, whose server fails, and is tried so often at each tier. Returns the end.
fn play(recorded: &mut Recorded, trace: u64, parent: u64, tier: usize, attempts: &[u64], start: u64) -> u64 {
    let Some(&number) = attempts.first() else { return start + 1_000 };
    let mut now = start;
    for attempt in 0..number {
        // The spans are written before their ends are known.
        let client = recorded.add((trace, parent), (TIERS[tier], "POST", CLIENT), (now, now), true);
        recorded.with("http.response.status_code", 503);
        let server = recorded.add((trace, client), (TIERS[tier + 1], "POST /", SERVER), (now + 200, now), true);
        let end = play(recorded, trace, server, tier + 1, &attempts[1..], now + 300);
        recorded.spans[server as usize - 1].end = end;
        recorded.spans[client as usize - 1].end = end + 200;
        now = end + 200 + if attempt + 1 < number { 10_000 + 977 * (trace * 31 + attempt * 7) } else { 0 };
    }
    now
}

fn multiplied(attempts: &[u64]) -> Report {
    let mut recorded = Recorded { skew_us: vec![("orders", -3_000_000), ("stock", 900_000)], ..Recorded::default() };
    for trace in 1..=5 {
        let root = recorded.add((trace, 0), ("gateway", "GET /", SERVER), (0, 60_000_000), true);
        play(&mut recorded, trace, root, 0, attempts, 1_000);
    }
    recorded.report()
}

#[test]
fn three_tiers_with_three_attempts_each_are_27_and_the_outermost_is_guilty() {
    let report = multiplied(&[3, 3, 3]);
    let [found] = &report.multiplications[..] else { panic!("{report:?}") };
    assert_eq!((found.product, found.traces, found.guilty), (27, 5, 0));
    let layers: Vec<_> = found.layers.iter().map(|layer| (&*layer.caller, &*layer.callee, layer.attempts)).collect();
    assert_eq!(layers, [("gateway", "orders", 3), ("orders", "stock", 3), ("stock", "database", 3)]);
    let edges: Vec<_> =
        report.edges.iter().map(|edge| (&*edge.caller, edge.calls, edge.attempts, edge.caused)).collect();
    // Of the 39 attempts of a trace: two of the gateway's three, each with 12 below it, and so on.
    assert_eq!(edges, [("gateway", 5, 15, 130), ("orders", 15, 45, 120), ("stock", 45, 135, 90)]);
    assert_eq!((report.traces, report.spans, report.edges[0].amplification().to_string()), (5, 395, "3".to_owned()));
    assert!(report.late.is_empty(), "nobody gave up: {:?}", report.late);
}

#[test]
fn the_layer_that_causes_most_attempts_is_guilty_wherever_it_is() {
    for (attempts, product, guilty) in [([2, 1, 10], 20, 2), ([1, 4, 2], 8, 1), ([4, 1, 3], 12, 0)] {
        let report = multiplied(&attempts);
        let [found] = &report.multiplications[..] else { panic!("{report:?}") };
        assert_eq!((found.product, found.guilty), (product, guilty), "{attempts:?} {report:?}");
    }
    for attempts in [[3, 1, 1], [1, 1, 9]] {
        assert!(multiplied(&attempts).multiplications.is_empty(), "one layer retries: {attempts:?}");
    }
}

/// Plays calls whose retries come after these delays, in microseconds, each call an hour after the other.
fn delayed(mut delay: impl FnMut(u64) -> u64) -> Report {
    let mut recorded = Recorded::default();
    for trace in 1..=60 {
        let start = trace * 3_600_000_000;
        let root = recorded.add((trace, 0), ("shop", "GET /", SERVER), (start, start + 60_000_000), false);
        let mut now = start;
        for attempt in 1..=3 {
            let length = 2_000 + 731 * (trace % 13);
            recorded.add((trace, root), ("shop", "GET", CLIENT), (now, now + length), attempt < 3);
            recorded.with("server.address", "stock");
            now += length + delay(attempt);
        }
    }
    recorded.report()
}

#[test]
fn equal_delays_are_in_step_and_jitter_is_not() {
    let report = delayed(|attempt| 200_000 * attempt);
    let found: Vec<_> = report.in_step.iter().map(|step| (step.retry, step.from, step.retries)).collect();
    assert_eq!(found, [(1, DelayFrom::End, 60), (2, DelayFrom::End, 60)]);
    for (step, wanted) in report.in_step.iter().zip([2e8, 4e8]) {
        assert!((0.97..1.03).contains(&(step.delay_ns as f64 / wanted)) && step.share > 0.9, "{step:?}");
        assert_eq!((&*step.caller, &*step.callee), ("shop", "stock"));
    }
    let report = delayed(|_| 300);
    assert_eq!((report.in_step.len(), report.in_step[0].delay_ns), (2, 0), "at once: {:?}", report.in_step);
    let mut random = Random(7);
    let full = delayed(|attempt| random.below(200_000 * attempt));
    assert!(full.in_step.is_empty(), "{:?}", full.in_step);
    let twenty_percent = delayed(|_| 160_000 + random.below(80_000));
    assert!(twenty_percent.in_step.is_empty(), "{:?}", twenty_percent.in_step);
}

#[test]
fn a_fixed_interval_from_start_to_start_is_in_step_as_well() {
    let mut recorded = Recorded::default();
    let mut random = Random(3);
    for trace in 1..=40 {
        let root = recorded.add((trace, 0), ("shop", "GET /", SERVER), (0, 60_000_000), false);
        for attempt in 0..2 {
            let start = trace * 1_000_000_000 + attempt * 500_000;
            let end = start + 10_000 + random.below(400_000);
            recorded.add((trace, root), ("shop", "GET", CLIENT), (start, end), attempt == 0);
        }
    }
    let report = recorded.report();
    let [step] = &report.in_step[..] else { panic!("{report:?}") };
    assert_eq!((step.from, step.retry), (DelayFrom::Start, 1));
    assert!((0.97..1.03).contains(&(step.delay_ns as f64 / 5e8)), "{step:?}");
}

/// Plays a caller that gives up after a second, and a server that tries another one so often, 400 ms each.
fn abandoned(attempts: u64, skew_us: i64) -> Report {
    let mut recorded = Recorded { skew_us: vec![("orders", skew_us)], ..Recorded::default() };
    for trace in 1..=10 {
        let client = recorded.add((trace, 0), ("gateway", "POST", CLIENT), (0, 1_000_000), true);
        recorded.with("error.type", "timeout");
        let end = 50_000 + attempts * 400_000;
        let server = recorded.add((trace, client), ("orders", "POST /", SERVER), (50_000, end), true);
        for attempt in 0..attempts {
            let start = 50_000 + attempt * (400_000 + trace * 700);
            recorded.add((trace, server), ("orders", "SELECT", CLIENT), (start, start + 390_000), true);
            recorded.with("peer.service", "database");
            recorded.with("http.response.status_code", 500);
        }
    }
    recorded.report()
}

#[test]
fn attempts_after_the_callers_deadline_are_found_with_clocks_that_differ() {
    for skew_us in [0, -20_000_000, 5_000_000] {
        let report = abandoned(5, skew_us);
        let [late] = &report.late[..] else { panic!("{report:?}") };
        assert_eq!((&*late.caller, &*late.callee), ("orders", "database"));
        // They begin 0, 0.4, 0.8, 1.2 and 1.6 s after the request was received.
        assert_eq!((late.late, late.retries, late.attempts), (20, 20, 50), "skew {skew_us}");
        assert!(abandoned(3, skew_us).late.is_empty(), "0.8 s is in time, skew {skew_us}");
    }
}

#[test]
fn a_hint_that_is_not_waited_for_is_ignored() {
    let play = |delay_us: u64| {
        let mut recorded = Recorded::default();
        for trace in 1..=5 {
            let start = trace * 1_000_000_000;
            let root = recorded.add((trace, 0), ("shop", "GET /", SERVER), (start, start), false);
            recorded.add((trace, root), ("shop", "GET", CLIENT), (start, start + 1_000), false);
            recorded.with("http.response.status_code", 429);
            recorded.with("http.response.header.retry-after", 2);
            let again = start + 1_000 + delay_us + trace * 10_000;
            recorded.add((trace, root), ("shop", "GET", CLIENT), (again, again + 1_000), false);
        }
        recorded.report().hints_ignored
    };
    let [found] = &play(100_000)[..] else { panic!() };
    assert_eq!((found.early, found.hinted), (5, 5));
    assert!(play(2_000_000).is_empty());
}

#[test]
fn seconds_in_which_retries_are_the_majority_are_a_storm() {
    let mut recorded = Recorded::default();
    let mut random = Random(11);
    for trace in 1..=300 {
        // Ten calls a second; those of ten seconds fail four times.
        let start = trace * 100_000;
        let attempts = if (100..200).contains(&trace) { 5 } else { 1 };
        let root = recorded.add((trace, 0), ("shop", "GET /", SERVER), (start, start), false);
        let mut now = start;
        for attempt in 1..=attempts {
            recorded.add((trace, root), ("shop", "GET", CLIENT), (now, now + 500), attempt < attempts);
            now += 1_000 + random.below(100_000);
        }
    }
    let report = recorded.report();
    let [storm] = &report.storms[..] else { panic!("{report:?}") };
    assert_eq!(storm.start_ns, 1_700_000_010_000_000_000);
    assert_eq!(storm.length_ns, 10_000_000_000);
    assert!((380..=400).contains(&storm.retries) && (95..=105).contains(&storm.first), "{storm:?}");
}

#[test]
fn a_resend_whose_predecessors_are_missing_counts_them() {
    let mut recorded = Recorded::default();
    recorded.add((1, 77), ("shop", "GET", CLIENT), (0, 10), false);
    recorded.with("http.request.resend_count", 3);
    let report = recorded.report();
    assert_eq!((report.edges[0].calls, report.edges[0].attempts, report.spans_without_parent), (1, 4, 1));
}
