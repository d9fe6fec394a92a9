//! What looks like a retry and is none, and what is well.

use crate::recorded::{CLIENT, Random, Recorded, SERVER};

/// Records spans of a client below one span: starts, ends, whether they failed, and a status.
fn siblings(spans: &[(u64, u64, bool, u32)]) -> Recorded {
    let mut recorded = Recorded::default();
    let root = recorded.add((1, 0), ("shop", "GET /", SERVER), (0, 1_000_000), false);
    for &(start, end, has_failed, status) in spans {
        recorded.add((1, root), ("shop", "GET", CLIENT), (start, end), has_failed);
        if status > 0 {
            recorded.with("http.response.status_code", status);
        }
    }
    recorded
}

#[test]
fn only_a_failure_before_it_makes_a_span_a_retry() {
    for (spans, calls, attempts, why) in [
        (&[(0, 10_000, true, 0), (20_000, 30_000, false, 0)][..], 1, 2, "a failure, then a success"),
        (&[(0, 10_000, false, 503), (20_000, 30_000, false, 200)], 1, 2, "the status is a failure"),
        (&[(0, 10_000, false, 200), (20_000, 30_000, false, 200)], 2, 2, "a loop"),
        (&[(0, 30_000, true, 0), (10_000, 40_000, false, 0)], 2, 2, "at the same time"),
        (&[(0, 10_000, false, 302), (10_000, 30_000, false, 200)], 1, 1, "a redirect"),
        (&[(0, 10_000, false, 401), (10_000, 30_000, false, 200)], 1, 1, "credentials"),
        (&[(0, 10_000, true, 400), (10_000, 30_000, false, 200)], 1, 2, "the status of the span is an error"),
        (
            // Each of two parallel calls is retried.
            &[(0, 10_000, true, 0), (0, 12_000, true, 0), (20_000, 30_000, false, 0), (20_500, 30_000, false, 0)],
            2,
            4,
            "parallel calls",
        ),
    ] {
        let report = siblings(spans).report();
        let edge = &report.edges[0];
        assert_eq!((edge.calls, edge.attempts), (calls, attempts), "{why}: {report:?}");
        assert!(report.is_clean(), "{why}: {report:?}");
    }
}

#[test]
fn attempts_of_grpc_are_those_below_the_span_of_their_call() {
    let mut recorded = Recorded::default();
    let call = recorded.add((1, 0), ("shop", "Sent.stock.Count", CLIENT), (0, 900), false);
    for (attempt, name) in [(0, "Attempt.stock.Count"), (1, "Attempt.stock.Count")] {
        recorded.add((1, call), ("shop", name, 1), (attempt * 400, attempt * 400 + 300), attempt == 0);
        recorded.with("previous-rpc-attempts", attempt);
    }
    // Jaeger has no kind for them here.
    let mut analyzer = stagger_traces::Analyzer::new();
    analyzer.read(recorded.otlp().as_bytes()).unwrap();
    let report = analyzer.finish();
    let edges: Vec<_> = report.edges.iter().map(|edge| (&*edge.callee, edge.calls, edge.attempts)).collect();
    assert_eq!(edges, [("Attempt.stock.Count", 1, 2), ("Sent.stock.Count", 1, 1)]);
}

#[test]
fn a_fleet_with_jitter_and_deadlines_that_are_kept_has_no_finding() {
    let mut recorded = Recorded { skew_us: vec![("stock", 40_000_000)], ..Recorded::default() };
    let mut random = Random(5);
    for trace in 1..=500 {
        let start = trace * 50_000;
        let root = recorded.add((trace, 0), ("shop", "GET /", SERVER), (start, start + 900_000), false);
        // One of ten calls is retried once, with full jitter.
        let attempts = if trace % 10 == 0 { 2 } else { 1 };
        let mut now = start;
        for attempt in 1..=attempts {
            let has_failed = attempt < attempts;
            let client = recorded.add((trace, root), ("shop", "GET", CLIENT), (now, now + 5_000), has_failed);
            recorded.add((trace, client), ("stock", "GET /", SERVER), (now + 500, now + 4_000), has_failed);
            now += 5_000 + random.below(200_000);
        }
    }
    let report = recorded.report();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.edges[0].calls, report.edges[0].attempts, report.edges[0].caused), (500, 550, 50));
    assert_eq!((report.traces_closed_early, report.traces_split, report.spans_without_parent), (0, 0, 0));
}
