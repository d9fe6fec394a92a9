//! The performance goals of stagger, and whether the measurements reach them.

use crate::case::{Role, Section, Table};
use crate::findings::{Findings, Row};
use crate::weight::Weight;
use crate::{blocking, delay, failures, future, guards, http, pending, websocket};

/// Whether a goal was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The goal was reached.
    Reached,
    /// The goal was missed.
    Missed,
    /// A figure that the goal needs was not measured.
    NotMeasured,
}

/// The side of the limit on which a goal is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    /// The figure must not exceed the limit.
    AtMost,
    /// The figure must not be below the limit.
    AtLeast,
}

/// A goal with the figure that was measured.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Goal {
    pub(crate) section: Section,
    pub(crate) claim: &'static str,
    pub(crate) found: Option<f64>,
    pub(crate) bound: Bound,
    pub(crate) limit: f64,
    pub(crate) unit: &'static str,
    pub(crate) verdict: Verdict,
}

/// Evaluates the goals of the sections for which `wanted` returns true.
pub(crate) fn evaluate(rows: &[Row], weights: &[Weight], wanted: impl Fn(Section) -> bool) -> Vec<Goal> {
    let findings = Findings(rows);
    let goals = [
        delays(findings),
        calls(findings),
        futures(findings),
        retries(findings),
        shared(findings),
        waiting(findings),
        weight(weights),
        requests(findings),
        sockets(findings),
    ];
    goals.into_iter().flatten().filter(|goal| wanted(goal.section)).collect()
}

fn delays(findings: Findings<'_>) -> Vec<Goal> {
    let table = Table::Delay;
    let any = findings.stagger(table, delay::ANY_MULTIPLIER);
    let constant = findings.stagger(table, delay::CONSTANT);
    let guarded = findings.stagger(table, delay::GUARDED);
    let a = |claim| Claim { section: Section::A, claim };
    vec![
        a("full jitter, any multiplier").at_most(any.and_then(Row::instructions), 40.0, "instructions"),
        a("full jitter, any multiplier").at_most(any.and_then(Row::ns), 3.0, "ns"),
        a("full jitter, const policy").at_most(constant.and_then(Row::instructions), 25.0, "instructions"),
        a("faster than the best peer").at_least(findings.speedup_over_peers(table, any), 4.0, "×"),
        a("complete decision, budget and breaker").at_most(guarded.and_then(Row::ns), 12.0, "ns"),
        a("state of one call").at_most(Some(size_of::<stagger_core::machine::RetryState>() as f64), 24.0, "bytes"),
    ]
}

fn calls(findings: Findings<'_>) -> Vec<Goal> {
    let table = Table::Blocking;
    let call = findings.stagger(table, blocking::ONE_LINER);
    let added = call.and_then(Row::instructions).zip(findings.baseline(table).and_then(Row::instructions));
    let b = |claim| Claim { section: Section::B, claim };
    vec![
        b("added to a direct call: 3, and 4 for the nested-retry scope").at_most(
            added.map(|(call, direct)| call - direct),
            7.0,
            "instructions",
        ),
        b("before the first failure").at_most(call.and_then(Row::allocations), 0.0, "allocations"),
    ]
}

fn futures(findings: Findings<'_>) -> Vec<Goal> {
    let table = Table::Future;
    let call = findings.stagger(table, future::ONE_LINER);
    let bytes = call.and_then(|row| row.bytes_added);
    let peer = findings.smallest(table, Role::Peer, Row::instructions).and_then(Row::instructions);
    let c = |claim| Claim { section: Section::C, claim };
    vec![
        c("success on the first attempt").at_most(call.and_then(Row::instructions), 30.0, "instructions"),
        c("before the first failure").at_most(call.and_then(Row::allocations), 0.0, "allocations"),
        c("added to a small future").at_most(bytes.map(|bytes| bytes.small as f64), 64.0, "bytes"),
        c("added to a future of 1 KiB").at_most(bytes.map(|bytes| bytes.large as f64), 64.0, "bytes"),
        c("awaited in a loop: faster than the best peer").at_least(
            findings.speedup_over_peers(Table::Awaited, findings.stagger(Table::Awaited, future::ONE_LINER)),
            1.0,
            "×",
        ),
        c("instructions relative to the best peer").at_most(
            call.and_then(Row::instructions).zip(peer).map(|(ours, peer)| ours / peer),
            1.0,
            "×",
        ),
    ]
}

fn retries(findings: Findings<'_>) -> Vec<Goal> {
    let blocking = findings.stagger(Table::FailuresBlocking, failures::SEEDED);
    let ready = findings.stagger(Table::FailuresReady, failures::SEEDED);
    let zero = findings.stagger(Table::FailuresZero, failures::ZERO);
    let tokio = findings.stagger(Table::FailuresTokio, failures::ZERO);
    let d = |claim| Claim { section: Section::D, claim };
    vec![
        d("blocking, delays drawn: relative to the floor").at_most(
            findings.relative_to_floor(Table::FailuresBlocking, blocking),
            3.0,
            "×",
        ),
        d("blocking, no delay: relative to the floor").at_most(
            findings.relative_to_floor(Table::FailuresZero, zero),
            3.0,
            "×",
        ),
        d("blocking, delays drawn: faster than the best peer").at_least(
            findings.speedup_over_peers(Table::FailuresBlocking, blocking),
            3.0,
            "×",
        ),
        d("async, ready sleeper: relative to the floor").at_most(
            findings.relative_to_floor(Table::FailuresReady, ready),
            3.0,
            "×",
        ),
        d("async, ready sleeper: faster than the best peer").at_least(
            findings.speedup_over_peers(Table::FailuresReady, ready),
            3.0,
            "×",
        ),
        d("async, ready sleeper").at_most(ready.and_then(Row::allocations), 0.0, "allocations"),
        d("tokio, zero delays").at_most(tokio.and_then(Row::ns), 25.0, "ns"),
        d("tokio, zero delays").at_most(tokio.and_then(Row::allocations), 0.0, "allocations"),
    ]
}

/// Returns the goals of section E. The most expensive guard decides.
fn shared(findings: Findings<'_>) -> Vec<Goal> {
    let success = |name| findings.stagger(Table::GuardsSuccess, name);
    let slowdown = |name| {
        let row = success(name)?;
        Some(row.ns_with_two_threads()? / row.ns()?)
    };
    let permit = |name| {
        let row = findings.stagger(Table::GuardsFailure, name);
        findings.relative_to_floor(Table::GuardsFailure, row)
    };
    let e = |claim| Claim { section: Section::E, claim };
    vec![
        e("successful call, most expensive counting guard").at_most(
            largest(guards::COUNTING, |name| success(name)?.ns()),
            3.0,
            "ns",
        ),
        // Up to a tenth is noise.
        e("the same with two threads, relative to one").at_most(largest(guards::COUNTING, slowdown), 1.1, "×"),
        e("retry permit, most expensive counting guard: relative to the floor").at_most(
            largest(guards::PERMITS, permit),
            1.5,
            "×",
        ),
    ]
}

/// Returns the largest figure, or `None` if one of them was not measured.
fn largest<const N: usize>(names: [&'static str; N], figure: impl Fn(&'static str) -> Option<f64>) -> Option<f64> {
    names.into_iter().map(figure).try_fold(0.0, |most: f64, figure| Some(most.max(figure?)))
}

fn waiting(findings: Findings<'_>) -> Vec<Goal> {
    let due = |name| findings.stagger(Table::PendingDue, name);
    let f = |claim| Claim { section: Section::F, claim };
    vec![
        f("a pending retry as a task").at_most(due(pending::TASKS).and_then(|row| row.bytes_each), 512.0, "bytes"),
        f("the wheel: relative to the floor").at_most(
            findings.relative_to_floor(Table::PendingDue, due(pending::WHEEL)),
            2.0,
            "×",
        ),
        f("the wheel with a timer: relative to the floor").at_most(
            findings.relative_to_floor(Table::PendingDue, due(pending::DELAY_QUEUE)),
            2.0,
            "×",
        ),
    ]
}

fn weight(weights: &[Weight]) -> Vec<Goal> {
    let of = |name| weights.iter().find(|weight| weight.name == name).and_then(|weight| weight.build);
    let both = of("stagger").zip(of("backon"));
    let g = |claim| Claim { section: Section::G, claim };
    vec![
        g("crates more than backon").at_most(
            both.map(|(ours, backon)| f64::from(ours.crates) - f64::from(backon.crates)),
            0.0,
            "crates",
        ),
        g("clean build, relative to backon").at_most(
            both.map(|(ours, backon)| ours.seconds / backon.seconds),
            1.0,
            "×",
        ),
    ]
}

fn requests(findings: Findings<'_>) -> Vec<Goal> {
    let [layer, guarded, long] =
        [(Table::LayerGet, http::RETRIES), (Table::LayerGet, http::GUARDED), (Table::LayerPut, http::RETRIES)]
            .map(|(table, name)| findings.stagger(table, name));
    let middleware = findings.stagger(Table::Middleware, http::MIDDLEWARE);
    let alone = findings.baseline(Table::LayerGet).and_then(Row::allocations);
    let guarded_peer = findings.named(Table::LayerGet, Role::Peer, http::TOWER_GUARDED);
    let h = |claim| Claim { section: Section::H, claim };
    vec![
        h("layer, no body: faster than the best peer").at_least(
            findings.speedup_over_peers(Table::LayerGet, layer),
            1.0,
            "×",
        ),
        h("layer with a budget, no body: faster than tower's").at_least(
            guarded_peer.and_then(Row::ns).zip(guarded.and_then(Row::ns)).map(|(peer, ours)| peer / ours),
            1.0,
            "×",
        ),
        h("layer, 1 KiB: faster than the best peer").at_least(
            findings.speedup_over_peers(Table::LayerPut, long),
            1.0,
            "×",
        ),
        h("layer, no body").at_most(
            layer.and_then(Row::allocations).zip(alone).map(|(ours, alone)| ours - alone),
            1.0,
            "allocations",
        ),
        h("middleware: faster than the best peer").at_least(
            findings.speedup_over_peers(Table::Middleware, middleware),
            1.0,
            "×",
        ),
    ]
}

impl Findings<'_> {
    /// Returns how many times faster `ours` is than the fastest peer of the table.
    fn speedup_over_peers(self, table: Table, ours: Option<&Row>) -> Option<f64> {
        let peer = self.smallest(table, Role::Peer, Row::ns)?.ns()?;
        Some(peer / ours?.ns()?)
    }

    /// Returns the time of `ours` divided by that of the fastest floor of the table.
    fn relative_to_floor(self, table: Table, ours: Option<&Row>) -> Option<f64> {
        let floor = self.smallest(table, Role::Floor, Row::ns)?.ns()?;
        Some(ours?.ns()? / floor)
    }
}

/// Returns the goals of section J. The low level and the server are compared with bare tungstenite, and the high level
/// with a hand-written task that owns the connection.
fn sockets(findings: Findings<'_>) -> Vec<Goal> {
    let of = |table, name, role, other| {
        let (ours, other) = (findings.stagger(table, name)?, findings.named(table, role, other)?);
        Some((ours, other))
    };
    let j = |claim| Claim { section: Section::J, claim };
    let mut goals = Vec::new();
    for (table, low, served, high) in [
        (
            Table::SocketShort,
            "64 bytes, Connection: relative to bare tungstenite",
            "64 bytes, server::Socket: relative to bare tungstenite",
            "64 bytes, Client: relative to a task with two channels",
        ),
        (
            Table::SocketLong,
            "4 KiB, Connection: relative to bare tungstenite",
            "4 KiB, server::Socket: relative to bare tungstenite",
            "4 KiB, Client: relative to a task with two channels",
        ),
    ] {
        for (claim, name, role, other) in [
            (low, websocket::LOW, Role::Bare, websocket::BARE),
            (served, websocket::SERVED, Role::Bare, websocket::BARE),
            (high, websocket::HIGH, Role::Floor, websocket::IN_A_TASK),
        ] {
            let ratio = of(table, name, role, other).and_then(|(ours, other)| Some(ours.ns()? / other.ns()?));
            goals.push(j(claim).at_most(ratio, 1.05, "×"));
        }
    }
    for (claim, name) in [
        ("idle, Connection: more than bare tungstenite", websocket::LOW),
        ("idle, server::Socket: more than bare tungstenite", websocket::SERVED),
        ("idle, Client: more than bare tungstenite", websocket::HIGH),
    ] {
        let beyond = of(Table::SocketIdle, name, Role::Bare, websocket::BARE)
            .and_then(|(ours, bare)| Some(ours.bytes_each? - bare.bytes_each?));
        goals.push(j(claim).at_most(beyond, 1024.0, "bytes"));
    }
    goals
}

/// A goal without a limit.
struct Claim {
    section: Section,
    claim: &'static str,
}

impl Claim {
    fn at_most(self, found: Option<f64>, limit: f64, unit: &'static str) -> Goal {
        self.evaluate(found, Bound::AtMost, limit, unit)
    }

    fn at_least(self, found: Option<f64>, limit: f64, unit: &'static str) -> Goal {
        self.evaluate(found, Bound::AtLeast, limit, unit)
    }

    fn evaluate(self, found: Option<f64>, bound: Bound, limit: f64, unit: &'static str) -> Goal {
        let reaches = |found: f64| match bound {
            Bound::AtMost => found <= limit,
            Bound::AtLeast => found >= limit,
        };
        let verdict = match found {
            None => Verdict::NotMeasured,
            Some(found) if reaches(found) => Verdict::Reached,
            Some(_) => Verdict::Missed,
        };
        Goal { section: self.section, claim: self.claim, found, bound, limit, unit, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::row;
    use crate::timing::Timing;

    fn verdict(rows: &[Row], claim: &str, unit: &str) -> Verdict {
        let goals = evaluate(rows, &[], |_| true);
        let goal = goals.iter().find(|goal| goal.claim == claim && goal.unit == unit);
        goal.map(|goal| goal.verdict).unwrap()
    }

    #[test]
    fn a_goal_is_missed_if_the_figure_is_just_above_the_limit() {
        for (instructions, want) in [(40.0, Verdict::Reached), (40.1, Verdict::Missed)] {
            let rows = [row(Table::Delay, Role::Stagger, delay::ANY_MULTIPLIER, 1.0, instructions)];
            assert_eq!(verdict(&rows, "full jitter, any multiplier", "instructions"), want);
        }
    }

    #[test]
    fn goals_against_peers_are_not_measured_without_peers() {
        let rows = [row(Table::Delay, Role::Stagger, delay::ANY_MULTIPLIER, 1.0, 30.0)];
        assert_eq!(verdict(&rows, "faster than the best peer", "×"), Verdict::NotMeasured);
    }

    #[test]
    fn goals_compare_with_the_fastest_peer() {
        let ours = row(Table::Delay, Role::Stagger, delay::ANY_MULTIPLIER, 2.0, 30.0);
        let slow = row(Table::Delay, Role::Peer, "slow", 50.0, 1.0);
        let fast = row(Table::Delay, Role::Peer, "fast", 7.9, 1.0);
        assert_eq!(verdict(&[ours.clone(), slow.clone()], "faster than the best peer", "×"), Verdict::Reached);
        assert_eq!(verdict(&[ours, slow, fast], "faster than the best peer", "×"), Verdict::Missed);
    }

    #[test]
    fn the_overhead_of_a_call_is_relative_to_the_direct_call() {
        let direct = row(Table::Blocking, Role::Bare, "direct call", 1.0, 16.0);
        for (instructions, want) in [(23.0, Verdict::Reached), (24.0, Verdict::Missed)] {
            let call = row(Table::Blocking, Role::Stagger, blocking::ONE_LINER, 1.0, instructions);
            let claim = "added to a direct call: 3, and 4 for the nested-retry scope";
            assert_eq!(verdict(&[direct.clone(), call], claim, "instructions"), want);
        }
    }

    #[test]
    fn the_most_expensive_guard_decides() {
        let guard = |name, ns: f64, two: f64| Row {
            two_threads: Some(Timing { fastest_ns: two, median_ns: two }),
            ..row(Table::GuardsSuccess, Role::Stagger, name, ns, 20.0)
        };
        let mut rows = guards::COUNTING.map(|name| guard(name, 2.0, 2.0));
        let (success, slowdown) =
            ("successful call, most expensive counting guard", "the same with two threads, relative to one");
        assert_eq!(
            (verdict(&rows, success, "ns"), verdict(&rows, slowdown, "×")),
            (Verdict::Reached, Verdict::Reached)
        );
        rows[3] = guard(guards::COUNTING[3], 4.0, 8.0);
        assert_eq!((verdict(&rows, success, "ns"), verdict(&rows, slowdown, "×")), (Verdict::Missed, Verdict::Missed));
        assert_eq!(verdict(&rows[..4], success, "ns"), Verdict::NotMeasured);
    }

    #[test]
    fn only_the_selected_sections_are_evaluated() {
        let goals = evaluate(&[], &[], |section| section == Section::C);
        assert!(!goals.is_empty() && goals.iter().all(|goal| goal.section == Section::C));
    }
}
