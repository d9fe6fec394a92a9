use core::time::Duration;

use stagger_core::Policy;
use stagger_core::quiet::QuietPeriod;

use super::simulation::{Load, Log, Server, run, table};
use crate::laws::support::{ms, secs};

/// One round trip after the first refusal the last request of before has arrived, and the pause has begun.
const ARMED: Duration = ms(20_100);
const END: Duration = ms(30_000);

fn with_quiet(server: &Server, load: &Load, seed: u64) -> Log {
    run(server, load, Some(&QuietPeriod::new()), seed)
}

#[test]
fn one_hint_holds_a_thousand_tasks_and_a_paced_return_fails_almost_none() {
    let (server, load) = table();
    for seed in 0..20 {
        let log = with_quiet(&server, &load, seed);
        let most = log.most_within(ms(100), END);
        let figures = (log.between(ARMED, END), most, log.refused_from(END), log.failed, log.calls);
        assert_eq!(log.between(ARMED, END), 0, "requests in the pause, seed {seed}");
        assert!(most <= 18, "{figures:?}, seed {seed}");
        assert!(log.refused_from(END) <= 50, "{figures:?}, seed {seed}");
        assert!(log.failed <= 3, "{figures:?}, seed {seed}");
        assert!(log.calls >= 5_000, "{figures:?}, seed {seed}");
    }
}

#[test]
fn without_it_each_call_finds_out_for_itself() {
    let (server, load) = table();
    let log = run(&server, &load, None, 1);
    assert!(log.between(ARMED, END) > 500 && log.failed > 200, "{} failed", log.failed);
}

/// ScyllaDB #30775: 500 tasks before an object store, which refuses everything for two seconds, without a hint. There,
/// all calls that were frozen start together.
#[test]
fn frozen_tasks_do_not_start_together() {
    let policy = Policy::exponential(ms(100), secs(10)).max_attempts(8).build().unwrap();
    let (from, until) = (secs(5), secs(7));
    let server = Server { per_second: 3_500, burst: 350, refuses_from: from, refuses_until: until, retry_after: None };
    let load = Load { tasks: 500, period: ms(200), policy, length: secs(15) };
    for seed in 0..5 {
        let (log, alone) = (with_quiet(&server, &load, seed), run(&server, &load, None, seed));
        // Armed by the eleventh refusal of fifty, one round trip later.
        let probes = log.between(from + ms(150), until);
        assert!(probes <= 2, "{probes} requests in two seconds of refusals, seed {seed}");
        let most = log.most_within(ms(10), until);
        assert!(most <= 60, "{most} of 500 within 10 ms, seed {seed}");
        assert!(log.failed == 0 && log.refused_from(from) * 4 < alone.refused_from(from), "seed {seed}");
    }
}

/// git-lfs #6322: the server asks for a pause that is longer than the client waits. There, such a hint pauses nothing.
#[test]
fn a_hint_beyond_the_limit_pauses_for_the_limit() {
    let (server, load) = table();
    let server = Server { retry_after: Some(secs(3_600)), refuses_until: secs(25), ..server };
    let load = Load { policy: load.policy.to_builder().max_hint(secs(7_200)).build().unwrap(), ..load };
    let quiet = QuietPeriod::builder().max(secs(8)).build().unwrap();
    let log = run(&server, &load, Some(&quiet), 1);
    let (armed, end) = (ms(20_100), secs(28));
    assert_eq!(log.between(armed, end), 0);
    assert!(log.between(end, end + secs(1)) > 50, "{} calls in the second after", log.between(end, end + secs(1)));
}

/// icechunk #2408: refusals without hints for twenty seconds. There, a client's retries were used up in one.
#[test]
fn refusals_are_backpressure_and_not_failures() {
    let policy = Policy::exponential(ms(100), secs(2)).max_attempts(4).build().unwrap();
    let (from, until) = (secs(5), secs(25));
    let server = Server { per_second: 400, burst: 40, refuses_from: from, refuses_until: until, retry_after: None };
    let load = Load { tasks: 200, period: secs(1), policy, length: secs(60) };
    for seed in 0..5 {
        let (log, alone) = (with_quiet(&server, &load, seed), run(&server, &load, None, seed));
        assert!(alone.failed > 1_000, "without it {} calls fail", alone.failed);
        assert!(log.failed <= 1, "{} calls fail, seed {seed}", log.failed);
        // 1, 2, 4 and 8 s end within it: a probe each.
        assert!((1..=5).contains(&log.between(from + ms(200), until)), "seed {seed}");
    }
}
