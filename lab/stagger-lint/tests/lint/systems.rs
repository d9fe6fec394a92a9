//! The rules for systems of services: each is a claim about what happens, so files are simulated with and without the
//! fix.

use std::fs;

use stagger_core::Seed;
use stagger_lint::FileFinding;
use stagger_lint::system::check;
use stagger_sim::system::{SystemFigures, SystemFile};

fn read(text: &str) -> SystemFile {
    SystemFile::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn codes(found: &[FileFinding]) -> Vec<&str> {
    found.iter().map(|found| found.finding().rule().code()).collect()
}

/// A file with a fault that a rule finds, and the same file with the fix of every finding of that rule.
struct Case {
    found: Vec<FileFinding>,
    fixed: Vec<FileFinding>,
    with_fault: SystemFigures,
    without: SystemFigures,
}

/// Fixes the findings of a rule one after the other, as people would.
fn case(code: &str, text: &str) -> Case {
    let found = check(&read(text));
    let mut fixed = text.to_owned();
    for _ in 0..4 {
        let open = check(&read(&fixed)).into_iter().find(|found| found.finding().rule().code() == code);
        let Some(open) = open else { break };
        fixed = open.fix().and_then(|fix| fix.applied_to(&fixed)).expect("the fix has edits");
    }
    let run = |text: &str| read(text).system().run_until_decided(Seed::new(1));
    let case = Case { fixed: check(&read(&fixed)), with_fault: run(text), without: run(&fixed), found };
    assert!(codes(&case.found).contains(&code) && !codes(&case.fixed).contains(&code), "{:?}\n{fixed}", case.fixed);
    case
}

/// Three services, each of which calls the next.
fn chain(rate: u32, policies: [&str; 3], database: &str) -> String {
    let [users, gateway, orders] = policies;
    format!(
        r#"
        horizon = "90s"
        users.rate = {rate}
        [tier.gateway]
        service = "2ms"
        backlog = 450
        [tier.orders]
        service = "2ms"
        backlog = 450
        [tier.database]
        service = "2ms"
        {database}
        [[edge]]
        from = "users"
        to = "gateway"
        {users}
        [[edge]]
        from = "gateway"
        to = "orders"
        {gateway}
        [[edge]]
        from = "orders"
        to = "database"
        {orders}
        [[trigger]]
        kind = "stall"
        on = "database"
        "#
    )
}

const THREE: &str = "policy = \"zero max-attempts=3\"";

#[test]
fn attempts_that_multiply_are_found_and_no_longer_made_when_fixed() {
    let case = case("M001", &chain(50, [THREE; 3], "backlog = 1500"));
    assert_eq!(codes(&case.found).iter().filter(|code| **code == "M001").count(), 2);
    let last = &case.found[1];
    assert_eq!(last.path(), "edge.orders-database.policy");
    assert_eq!(last.place().unwrap().to_string(), "24:18");
    assert_eq!(
        last.finding().facts()[0],
        "3 attempts over users-gateway times 3 attempts over gateway-orders times 3 attempts over orders-database"
    );
    assert!(last.finding().facts()[1].contains("27 attempts per request"), "{:?}", last.finding().facts());
    assert!(case.with_fault.attempts_per_request_during_fault(2) > 26.0);
    assert!(case.without.attempts_per_request_during_fault(2) < 3.1);
    assert!(case.with_fault.is_metastable() && !case.without.is_metastable());
}

#[test]
fn retries_for_callers_that_have_given_up_are_found_and_no_longer_made_when_fixed() {
    let case = case("M002", &chain(20, ["", "", THREE], "backlog = 450"));
    assert_eq!(case.found[0].path(), "edge.gateway-orders.timeout");
    assert!(case.found[0].finding().facts()[1].contains("take up to 3s"), "{:?}", case.found[0].finding().facts());
    assert!(case.with_fault.attempts_per_request_during_fault(2) > 2.8);
    assert!(case.without.attempts_per_request_during_fault(2) < 1.2);
}

#[test]
fn a_time_limit_that_the_calls_below_fit_into_is_not_found() {
    let below = |timeout: &str| format!("{THREE}\ntimeout = \"{timeout}\"");
    for (timeout, is_found) in [("333ms", false), ("334ms", true)] {
        let found = check(&read(&chain(20, ["", "", &below(timeout)], "backlog = 150")));
        assert_eq!(codes(&found).contains(&"M002"), is_found, "{timeout}: {found:?}");
    }
    // One attempt as long as the caller waits is what most systems have.
    assert!(check(&read(&chain(20, [""; 3], "backlog = 450"))).is_empty());
}

#[test]
fn retries_without_a_budget_are_found_and_limited_when_fixed() {
    let case = case("M003", &chain(110, ["policy = \"zero max-attempts=5\"", "", ""], "backlog = 450"));
    assert_eq!(codes(&case.found), ["M003"]);
    assert!(case.found[0].finding().facts()[0].ends_with("receives 550/s and serves 500/s"));
    let attempts = |figures: &SystemFigures| figures.attempts_per_request_during_fault(0);
    assert!(attempts(&case.with_fault) > 4.0 && attempts(&case.without) < 1.3);
    // First attempts that find the queue of the gateway full are refused.
    let refused = |figures: &SystemFigures| figures.services[2].refused;
    assert!(refused(&case.with_fault) > 3 * refused(&case.without), "{:?}", refused(&case.without));
}

#[test]
fn a_deadline_that_is_not_handed_on_is_found_and_stale_work_is_dropped_when_fixed() {
    let own = "deadline = \"own\"\ntimeout = \"3s\"";
    let text = chain(300, ["timeout = \"300ms\"", "timeout = \"3s\"", own], "backlog = 3000\nstale = \"hopeless\"");
    let text = text.replace("backlog = 450", "backlog = 150\nstale = \"hopeless\"");
    let case = case("M004", &text);
    let recovery = |figures: &SystemFigures| figures.recovery().unwrap().as_secs_f64();
    let (with_fault, without) = (recovery(&case.with_fault), recovery(&case.without));
    assert!(with_fault > without + 2.0, "{with_fault} {without}");
}

#[test]
fn a_loop_that_sustains_itself_is_found_and_broken_when_fixed() {
    let case = case("M005", &chain(70, [THREE, "", THREE], "backlog = 1500"));
    let found = case.found.iter().find(|found| found.finding().rule().code() == "M005").unwrap();
    assert_eq!(found.path(), "edge.orders-database.policy");
    assert!(found.finding().facts()[0].contains("a loop gain of 1.26"), "{:?}", found.finding().facts());
    assert!(case.with_fault.is_metastable() && !case.without.is_metastable());
}

#[test]
fn a_queue_that_outlives_its_callers_is_found_and_short_when_fixed() {
    let text = chain(250, [""; 3], "backlog = 3000").replace("kind = \"stall\"", "kind = \"stall\"\nfor = \"20s\"");
    let case = case("M006", &text);
    assert_eq!(codes(&case.found), ["M006"]);
    assert_eq!(case.found[0].finding().facts()[1], "once it is full, it answers nothing in time for 10.02s");
    let recovery = |figures: &SystemFigures| figures.recovery().unwrap().as_secs_f64();
    assert!((8.0..13.0).contains(&recovery(&case.with_fault)), "{}", recovery(&case.with_fault));
    assert!(recovery(&case.without) < 2.0, "{}", recovery(&case.without));
}

/// A service whose workers wait for the two calls of each attempt: 2 / (19 ms + 2 · 15 ms) are about 40/s.
fn waiting(rate: &str) -> String {
    format!(
        r#"
        users.rate = "{rate}"
        [tier.front]
        service = "19ms"
        workers = 2
        waits = true
        backlog = 30
        [tier.back]
        service = "5ms"
        backlog = 150
        [[edge]]
        from = "users"
        to = "front"
        [[edge]]
        from = "front"
        to = "back"
        calls = 2
        "#
    )
}

#[test]
fn a_load_above_the_capacity_of_workers_that_wait_is_found_and_served_when_fixed() {
    let case = case("M007", &waiting("54.6/s"));
    // The calls of a request may also take longer than its caller waits.
    assert_eq!(codes(&case.found), ["M002", "M007"]);
    let facts = case.found[1].finding().facts();
    assert!(facts[0].starts_with("front receives 54.6/s and serves 3"), "{facts:?}");
    assert!(case.with_fault.success_ratio() < 0.8, "{}", case.with_fault.success_ratio());
    assert!(case.without.success_ratio() > 0.999 && !case.without.is_metastable(), "{}", case.without.success_ratio());
    assert_eq!(codes(&check(&read(&waiting("30/s")))), ["M002"]);
    // Workers that are free after their own work serve 105/s.
    assert_eq!(codes(&check(&read(&waiting("54.6/s").replace("waits = true", "waits = false")))), ["M002"]);
}

#[test]
fn a_time_limit_below_what_the_service_needs_is_found_and_long_enough_when_fixed() {
    let text =
        |timeout: &str| waiting("20/s").replace("to = \"front\"", &format!("to = \"front\"\ntimeout = \"{timeout}\""));
    let case = case("M008", &text("60ms"));
    let found = case.found.iter().find(|found| found.finding().rule().code() == "M008").unwrap();
    assert_eq!(found.path(), "edge.users-front.timeout");
    assert!(case.with_fault.success_ratio() < 0.9, "{}", case.with_fault.success_ratio());
    assert!(case.without.success_ratio() > 0.97, "{}", case.without.success_ratio());
    assert!(!codes(&check(&read(&text("1s")))).contains(&"M008"));
}

#[test]
fn a_correct_system_has_no_findings() {
    let retried = format!("{THREE}\nbudget = {{ tokens = 10, refund = 0.1 }}");
    let hopeless = "backlog = 450\nstale = \"hopeless\"";
    let inner = format!("{THREE}\nnested = \"stand-down\"");
    let text = chain(100, [&retried, &inner, &inner], hopeless);
    assert_eq!(codes(&check(&read(&text))), [""; 0]);
    assert!(!read(&text).system().run_until_decided(Seed::new(1)).is_metastable());
}

/// The findings of the example of the repository, fixed one after the other, come to an end, and the system survives.
#[test]
fn fixing_one_finding_after_the_other_ends_without_findings() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/three-tiers.toml");
    let mut text = fs::read_to_string(path).unwrap();
    assert!(read(&text).system().run_until_decided(Seed::new(1)).is_metastable());
    for round in 0.. {
        let Some(found) = check(&read(&text)).into_iter().next() else { break };
        assert!(round < 20, "{text}\n{found:?}");
        text = found.fix().and_then(|fix| fix.applied_to(&text)).expect("the fix has edits");
    }
    assert!(!read(&text).system().run_until_decided(Seed::new(1)).is_metastable(), "{text}");
}

#[test]
fn a_fix_is_written_into_every_form_of_a_table() {
    let edge = |text: &str| format!("users.rate = 90\ntier.a = {{ service = \"5ms\", backlog = 100 }}\n{text}");
    for (text, want) in [
        (
            "edge = [{ from = \"users\", to = \"a\", policy = \"zero max-attempts=3\" }]",
            "edge = [{ budget = { tokens = 10, refund = 0.1 }, from",
        ),
        (
            "[[edge]] # first\nfrom = \"users\"\nto = \"a\"\npolicy = \"zero max-attempts=3\"\n",
            "[[edge]] # first\nbudget = { tokens = 10, refund = 0.1 }\nfrom",
        ),
    ] {
        let text = edge(text);
        let found = check(&read(&text));
        let fixed = found[0].fix().unwrap().applied_to(&text).unwrap();
        assert!(fixed.contains(want), "{fixed}");
        assert!(check(&read(&fixed)).is_empty(), "{fixed}");
    }
    // A table of dotted keys has no head to write it to.
    let dotted = "users.rate = 250\ntier.a.service = \"2ms\"\ntier.a.backlog = \"none\"\nedge = [{ from = \"users\", \
                  to = \"a\" }]";
    let found = check(&read(dotted));
    let fix = found[0].fix().unwrap();
    assert_eq!(fix.text(), "[tier.a]\nbacklog = 495");
    assert_eq!(check(&read(&fix.applied_to(dotted).unwrap())), []);
}
