//! Tests each rule with examples to which it applies, and to which it does not.

use stagger_lint::Rule;

use super::support::{assert_fact, codes, context, finding, found, policy};

/// A rule, a bad example and a good one, each with its context.
const EXAMPLES: &[(&str, (&str, &str), (&str, &str))] = &[
    ("S001", ("exponential base=1s cap=30s jitter=none", ""), ("exponential base=1s cap=30s", "")),
    ("S001", ("websockets", "for=reconnecting"), ("centrifuge", "for=reconnecting")),
    ("S001", ("exponential base=1s cap=30s jitter=±0%", ""), ("exponential base=1s cap=30s jitter=±5%", "")),
    ("S001", ("curl", ""), ("curl", "clients=1")),
    ("S001", ("constant base=1s jitter=none", "clients=2"), ("zero", "clients=2")),
    // Jitter lost at the cap is reported by S002.
    ("S001", ("partysocket", ""), ("socket.io", "")),
    ("S002", ("socket.io", ""), ("socket.io jitter=full", "")),
    // Without jitter before the cap, none can be lost at it.
    ("S002", ("socket.io", ""), ("websockets", "")),
    ("S002", ("aws-blog", ""), ("exponential base=5ms cap=2s jitter=decorrelated max-attempts=inf", "")),
    ("S002", ("tenacity cap=60s max-attempts=9", ""), ("tenacity cap=60s max-attempts=3", "")),
    ("S002", ("stubborn-io", ""), ("stubborn-io", "clients=1")),
    ("S003", ("zero", ""), ("constant base=1s", "")),
    ("S003", ("ably", "for=reconnecting"), ("ably spread=10s", "for=reconnecting")),
    ("S003", ("aws-mqtt5", ""), ("aws-mqtt5 floor=500ms", "")),
    ("S003", ("list delays=0s,1s,2s jitter=none", ""), ("list delays=1s,2s jitter=none", "")),
    ("S003", ("zero", "clients=2"), ("zero", "clients=1")),
    (
        "S004",
        ("exponential base=1s cap=30s", "clients=10k capacity=500/s"),
        ("exponential base=1s cap=30s spread=20s", "clients=10k capacity=500/s"),
    ),
    (
        "S004",
        ("web-socket", "for=reconnecting clients=10k capacity=500/s"),
        ("web-socket", "for=reconnecting clients=4k capacity=500/s"),
    ),
    (
        "S004",
        ("constant base=10s jitter=full", "clients=10k capacity=500/s"),
        ("constant base=20s jitter=full", "clients=10k capacity=500/s"),
    ),
    (
        "S004",
        ("exponential base=1s cap=30s", "for=background clients=10k capacity=500/s"),
        ("exponential base=1s cap=30s", "for=interactive clients=10k capacity=500/s"),
    ),
    ("S005", ("exponential base=1s cap=none", ""), ("exponential base=1s cap=30s", "")),
    ("S005", ("linear base=1s step=1s cap=none", ""), ("linear base=1s step=0s cap=none", "")),
    ("S006", ("exponential base=1s cap=5s max-attempts=9", ""), ("exponential base=1s cap=10s max-attempts=9", "")),
    ("S006", ("exponential base=1s cap=5s max-attempts=5", ""), ("exponential base=1s cap=5s max-attempts=3", "")),
    ("S007", ("exponential base=1s cap=10m max-attempts=9", ""), ("exponential base=1s cap=10m max-attempts=4", "")),
    ("S007", ("kubernetes", ""), ("list delays=10s,1m max-attempts=inf", "")),
    (
        "S007",
        ("exponential base=1s cap=10m max-attempts=9", ""),
        ("exponential base=1s cap=10m max-attempts=9 max-elapsed=50s", ""),
    ),
    (
        "S006",
        ("exponential base=9s cap=60s max-attempts=inf", "for=reconnecting"),
        ("exponential base=10s cap=60s max-attempts=inf", "for=reconnecting"),
    ),
    (
        "S007",
        ("exponential base=20s cap=301s max-attempts=10", "for=background"),
        ("exponential base=20s cap=300s max-attempts=10", "for=background"),
    ),
    (
        "S008",
        ("exponential base=15s cap=3m max-attempts=inf spread=5s", "for=reconnecting"),
        ("exponential base=15s cap=3m max-attempts=inf spread=10s", "for=reconnecting"),
    ),
    ("S008", ("exponential base=5ms cap=1s", ""), ("exponential base=10ms cap=1s", "")),
    ("S008", ("exponential base=2s cap=60s", ""), ("exponential base=2s cap=60s", "for=background")),
    ("S008", ("exponential base=500ms cap=60s", "for=background"), ("exponential base=500ms cap=30s", "for=far")),
    ("S008", ("exponential base=500ms cap=5s", "for=near"), ("exponential base=50ms cap=5s", "for=near")),
    ("S008", ("linear base=5s step=1s cap=60s", ""), ("constant base=5s", "")),
    ("S008", ("exponential base=5ms cap=1s", ""), ("exponential base=5ms cap=1s max-attempts=1", "")),
    ("S009", ("exponential base=20ms cap=500ms", "tick=16ms"), ("exponential base=20ms cap=500ms", "")),
    ("S009", ("exponential base=500us cap=1s jitter=none", ""), ("exponential base=1ms cap=1s jitter=none", "")),
    ("S009", ("constant base=1s jitter=±0.01%", ""), ("constant base=1s jitter=±1%", "")),
    ("S010", ("exponential max-attempts=6", "for=interactive"), ("exponential max-attempts=5", "for=interactive")),
    ("S010", ("exponential max-attempts=4", "for=serverless"), ("exponential max-attempts=3", "for=serverless")),
    ("S010", ("exponential max-attempts=inf", "for=interactive"), ("exponential max-attempts=inf", "for=near")),
    ("S011", ("exponential max-attempts=inf", ""), ("exponential max-attempts=inf max-elapsed=2m", "")),
    ("S011", ("exponential max-attempts=inf", ""), ("exponential max-attempts=inf", "for=reconnecting")),
    ("S011", ("exponential max-attempts=inf", ""), ("exponential max-attempts=inf", "deadline=1h")),
    ("S011", ("zero max-attempts=inf", ""), ("stop max-attempts=inf", "")),
    ("S012", ("exponential base=1s cap=30s", "deadline=6s"), ("exponential base=1s cap=30s", "deadline=7s")),
    ("S012", ("exponential base=1s cap=30s", "lease=6s"), ("exponential base=1s cap=30s max-elapsed=5s", "lease=6s")),
    ("S012", ("exponential base=1s cap=30s", "invocation=10s timeout=1s"), ("serverless", "invocation=10s timeout=1s")),
    ("S012", ("exponential max-attempts=inf", "deadline=1h"), ("background-job", "deadline=1h")),
    // Too many attempts to add up.
    ("S012", ("constant base=1s max-attempts=4294967295", "deadline=1h"), ("stop", "deadline=1h")),
    (
        "S013",
        ("exponential max-attempts=5", "timeout=10s deadline=30s"),
        ("exponential max-attempts=3", "timeout=10s deadline=30s"),
    ),
    (
        "S013",
        ("exponential max-attempts=inf", "timeout=31s deadline=30s"),
        ("exponential max-attempts=inf", "timeout=10s deadline=30s"),
    ),
    ("S014", ("exponential max-hint=5s", "hint=10s"), ("exponential max-hint=10s", "hint=10s")),
    ("S014", ("exponential max-elapsed=30s", "hint=1m"), ("exponential max-elapsed=1m", "hint=1m")),
    ("S014", ("exponential max-hint=5s", "hint=10s"), ("exponential max-hint=inf", "hint=10s")),
    ("S015", ("centrifuge", "for=reconnecting"), ("web-socket", "for=reconnecting")),
    // Without growth and limits, there is nothing to reset.
    ("S015", ("pusher spread=1s", "for=reconnecting"), ("pusher", "for=reconnecting")),
    ("S016", ("default", "clients=1001"), ("default", "clients=1000")),
    ("S016", ("default", "rps=101/s"), ("default", "rps=101/s budget=yes")),
    ("S016", ("default", "clients=10k budget=no"), ("default", "clients=10k for=reconnecting")),
    ("S016", ("default", "rps=101/s"), ("default max-attempts=1", "rps=101/s")),
    ("S017", ("default", "layers=2"), ("default", "layers=1")),
    ("S017", ("default", "layers=3"), ("default max-attempts=1", "layers=3")),
    ("S018", ("exponential base=1s cap=30s multiplier=1", ""), ("exponential base=1s cap=none multiplier=1", "")),
    ("S018", ("exponential base=1s cap=1s multiplier=3", ""), ("exponential base=1s cap=10s multiplier=3", "")),
    ("S018", ("linear base=1s step=1s cap=1s", ""), ("linear base=1s step=1s cap=10s", "")),
    ("S018", ("linear base=1s step=0s cap=9s", ""), ("linear base=1s step=0s cap=none", "")),
    ("S018", ("exponential base=1s cap=30s floor=100ms jitter=equal", ""), ("exponential base=1s floor=100ms", "")),
    ("S018", ("exponential base=1s cap=9s floor=9s", ""), ("exponential base=1s cap=9s floor=8s", "")),
    ("S018", ("exponential base=1s cap=1s jitter=decorrelated", ""), ("exponential base=1s jitter=decorrelated", "")),
    ("S018", ("exponential base=1s cap=30s jitter=±0%", ""), ("exponential base=1s cap=30s jitter=none", "")),
    (
        "S018",
        ("constant base=10s jitter=none max-attempts=9 max-elapsed=35s", ""),
        ("constant base=10s jitter=none max-attempts=4 max-elapsed=35s", ""),
    ),
    // This many attempts may still fit.
    (
        "S018",
        ("constant base=10s jitter=equal max-attempts=100 max-elapsed=35s", ""),
        ("constant base=10s jitter=full max-attempts=100 max-elapsed=35s", ""),
    ),
    ("S018", ("exponential max-attempts=1 max-elapsed=9s", ""), ("exponential max-attempts=2 max-elapsed=9s", "")),
    (
        "S018",
        ("exponential base=30s cap=60s spread=30s jitter=equal max-attempts=2 max-elapsed=30s", ""),
        ("exponential spread=5s max-elapsed=30s", ""),
    ),
    ("S018", ("list delays=1s,2s,5s max-attempts=3", ""), ("list delays=1s,2s,5s max-attempts=4", "")),
    ("S018", ("stop max-attempts=8", ""), ("stop", "")),
    ("S018", ("stop stable-after=8s", ""), ("exponential max-attempts=1 stable-after=8s", "")),
    ("S018", ("exponential hint=exact max-attempts=1", ""), ("exponential hint=exact", "")),
    ("S018", ("exponential max-hint=1h max-attempts=1", ""), ("exponential max-attempts=1", "")),
    ("S018", ("exponential throttled-base=1s max-attempts=1", ""), ("exponential throttled-base=1s", "")),
    ("S018", ("stop max-elapsed=8s", ""), ("stop spread=8s", "")),
    ("S018", ("exponential hint=clamp:0s", ""), ("exponential hint=clamp:5s", "")),
    ("S018", ("exponential hint=clamp:5s max-hint=0s", ""), ("exponential max-hint=0s", "")),
    ("S018", ("exponential hint-spread=10% max-hint=0s", ""), ("exponential hint-spread=10%", "")),
    ("S018", ("pusher", "for=reconnecting"), ("pusher spread=1s", "for=reconnecting")),
    ("S018", ("exponential base=1s throttled-base=1s", ""), ("exponential base=1s throttled-base=2s", "")),
    ("S018", ("exponential base=100ms local-base=1s", ""), ("exponential base=100ms local-base=2s", "")),
    ("S019", ("default", "idempotent=no"), ("default", "idempotent=key")),
    ("S019", ("default", "idempotent=no"), ("default", "")),
    ("S019", ("default", "idempotent=no"), ("default max-attempts=1", "idempotent=no")),
    ("S020", ("grpc-a6", ""), ("exponential base=100ms cap=1s jitter=±20%", "")),
    ("S020", ("aws-sdk", "clients=2"), ("aws-sdk", "clients=1")),
    ("S021", ("default", "rps=101/s capacity=100/s"), ("default", "rps=100/s capacity=100/s")),
    (
        "S022",
        ("constant base=1s spread=50s max-attempts=inf", "clients=100k capacity=2k/s"),
        ("constant base=1s spread=50s max-attempts=inf", "clients=100k capacity=2k/s for=near"),
    ),
    // The retries are over before the delays have stopped growing, or before it matters.
    (
        "S022",
        ("constant base=1s max-attempts=60", "clients=10k capacity=500/s"),
        ("constant base=1s max-attempts=9", "clients=10k capacity=500/s"),
    ),
    (
        "S024",
        ("exponential base=1s cap=40s spread=20s", "clients=10k capacity=500/s"),
        ("exponential base=10s cap=40s spread=20s", "clients=10k capacity=500/s"),
    ),
    (
        "S024",
        ("exponential base=1s cap=40s spread=20s", "for=reconnecting"),
        ("exponential base=1s cap=40s spread=20s", "for=background"),
    ),
    // A spread that is longer than needed makes up for it.
    (
        "S024",
        ("exponential base=1s cap=40s spread=20s", "clients=10k capacity=500/s"),
        ("exponential base=1s cap=40s spread=20s", "clients=4k capacity=500/s"),
    ),
    ("S023", ("exponential max-attempts=1", "for=reconnecting"), ("exponential max-attempts=1", "for=background")),
    ("S008", ("exponential base=20s cap=60s spread=5s", ""), ("exponential base=20s cap=60s spread=20s", "")),
    (
        "S006",
        ("exponential base=5s cap=20s spread=20s max-attempts=9", ""),
        ("exponential base=10s cap=20s spread=20s max-attempts=9", ""),
    ),
    ("S023", ("exponential max-attempts=9", "for=reconnecting"), ("exponential max-attempts=inf", "for=reconnecting")),
    ("S025", ("stop", "rps=9/s capacity=10/s timeout=1s"), ("stop", "rps=9/s capacity=10/s timeout=3s")),
    ("S025", ("default", "rps=90/s capacity=100/s timeout=10ms"), ("default", "rps=90/s capacity=100/s timeout=1s")),
    ("S026", ("stop", "capacity=10/s timeout=1s backlog=11"), ("stop", "capacity=10/s timeout=1s backlog=10")),
    // A request that waits for none is not stale.
    ("S026", ("stop", "capacity=10/s timeout=10ms backlog=2"), ("stop", "capacity=10/s timeout=10ms backlog=1")),
];

#[test]
fn every_rule_applies_to_its_bad_example_and_not_to_the_good_one() {
    for (code, bad, good) in EXAMPLES {
        let applies = |(text, words): &(&str, &str)| codes(&policy(text), &context(words)).contains(code);
        assert!(applies(bad), "{code} does not apply to {bad:?}");
        assert!(!applies(good), "{code} applies to {good:?}: {:#?}", found(good.0, good.1, code));
    }
}

#[test]
fn every_policy_rule_has_an_example() {
    for rule in Rule::all().filter(|rule| rule.code().starts_with('S')) {
        assert!(EXAMPLES.iter().any(|(code, ..)| *code == rule.code()), "{rule:?}");
    }
}

#[test]
fn codes_and_names_are_unique_and_every_rule_is_documented() {
    let rules: Vec<&Rule> = Rule::all().collect();
    for (at, rule) in rules.iter().enumerate() {
        assert!(rules[..at].iter().all(|other| other.code() != rule.code() && other.name() != rule.name()), "{rule:?}");
        assert_eq!(Rule::find(rule.code()), Some(*rule));
        assert_eq!(Rule::find(&rule.name().to_uppercase()), Some(*rule));
        let sentence = |text: &str| !text.is_empty() && !text.contains("  ") && !text.contains('\n') && text.is_ascii();
        assert!(sentence(rule.title()) && sentence(rule.rationale()) && sentence(rule.details()), "{rule:?}");
        assert!(!rule.rationale().ends_with('.') && rule.details().ends_with('.'), "{rule:?}");
    }
    assert!(rules.is_sorted_by_key(|rule| ("SLMC".find(&rule.code()[..1]), rule.code())));
    assert_eq!(Rule::find("S999"), None);
}

/// Compares figures from forecasts with values computed by hand.
#[test]
fn findings_have_the_figures_of_the_policy() {
    for (text, words, code, want) in [
        ("socket.io", "", "S002", "from retry 5 on every client waits exactly 5s"),
        ("socket.io", "", "S002", "share of clients before that: retry 3: 30%, retry 4: 90%"),
        ("socket.io max-attempts=4", "", "S002", "from retry 3 on many clients wait exactly 5s"),
        ("aws-blog", "", "S002", "share of clients: retry 12: 11%, retry 29: 26%"),
        ("zero max-attempts=inf", "", "S011", "without a pause, forever"),
        (
            "exponential max-attempts=inf",
            "timeout=31s deadline=30s",
            "S013",
            "an attempt may take 31s; the deadline is 30s",
        ),
        ("exponential base=1s cap=30s jitter=none", "", "S001", "every client waits the same delays: 1s, 2s, 4s"),
        ("websockets", "", "S001", "every client waits exactly 3.1s before retry 3"),
        ("signalr", "", "S003", "the first retry of every client follows immediately"),
        ("aws-mqtt5", "", "S003", "exactly 1s after a common failure"),
        (
            "exponential base=1s cap=30s",
            "clients=10k capacity=500/s",
            "S004",
            "10,000 clients at 500/s need 20s; this policy spreads the first wave over 1s",
        ),
        (
            "exponential base=500ms cap=30s",
            "clients=10k capacity=500/s",
            "S004",
            "estimate: about 2.9 attempts per client; the optimum is 1; with a limit of 4, 80% give up",
        ),
        (
            "exponential base=100ms cap=none max-attempts=inf",
            "",
            "S005",
            "retry 10 waits up to 51.2s, retry 20 waits up to",
        ),
        (
            "exponential base=1s cap=5s max-attempts=9",
            "",
            "S006",
            "the cap of 5s is 5.0 times the base and applies from retry 4 on",
        ),
        ("kubernetes", "", "S007", "retry 5 waits up to 1m20s"),
        ("exponential base=1s cap=30s", "deadline=6s", "S012", "the worst case is 7s; the deadline is 6s"),
        ("exponential base=1s cap=30s", "deadline=6s", "S012", "a call that always fails waits 3.5s on average"),
        ("exponential base=1s cap=30s", "lease=6s deadline=5s", "S012", "the deadline is 5s"),
        (
            "exponential",
            "timeout=10s deadline=30s",
            "S013",
            "4 attempts of 10s take 40s; the deadline is 30s, which leaves time for 3",
        ),
        ("default", "rps=700/s capacity=1000/s", "S016", "2800/s if every attempt fails; the capacity is 1000/s"),
        ("default max-attempts=3", "layers=3", "S017", "3 layers with 3 attempts turn one call into 27 calls"),
        ("default max-attempts=inf", "layers=3", "S017", "any number of calls"),
        ("exponential hint=exact", "hint=30s", "S020", "all clients that receive 30s come back exactly 30s later"),
    ] {
        assert_fact(text, words, code, want);
    }
}

/// Only the delays of the first 64 retries are known.
#[test]
fn the_mean_wait_is_given_only_if_all_delays_are_known() {
    for (attempts, facts) in [("65", 2), ("66", 1), ("inf", 1)] {
        let finding = finding(&format!("exponential max-attempts={attempts}"), "deadline=6s", "S012");
        assert_eq!(finding.facts().len(), facts, "{attempts}: {:?}", finding.facts());
    }
}

#[test]
fn a_share_is_reported_once() {
    let finding = finding("socket.io max-attempts=4", "", "S002");
    assert_eq!(finding.facts()[1], "share of clients: retry 3: 30%");
}

#[test]
fn a_setting_without_effect_is_named() {
    for (text, want) in [
        ("exponential base=1s cap=30s multiplier=1", "cap=30s: the delays do not grow"),
        ("exponential base=1s cap=1s multiplier=3", "multiplier=3: any other multiplier gives the same delays"),
        ("linear base=1s step=2s cap=1s", "step=2s: the cap leaves no room"),
        ("exponential base=1s cap=30s floor=100ms jitter=equal", "floor=100ms: no delay would be shorter without it"),
        ("exponential base=1s cap=9s floor=9s", "jitter=full: every interval has a single length"),
        ("constant base=10s jitter=none max-attempts=9 max-elapsed=35s", "leaves time for at most 4"),
        ("list delays=1s,2s,5s max-attempts=3", "delays: 3 are listed, but 3 attempts use only 2"),
        ("stop max-attempts=8", "max-attempts: the policy makes no retry"),
        ("exponential max-attempts=1 max-elapsed=9s hint=exact", "max-elapsed, hint: the policy makes no retry"),
        ("exponential hint=clamp:0s", "hint=clamp:0s"),
        ("pusher", "stable-after=0s"),
        ("exponential base=1s throttled-base=1s", "throttled-base=1s: this is the default"),
        ("exponential base=100ms local-base=1s", "local-base=1s"),
    ] {
        assert_fact(text, "", "S018", want);
    }
}
