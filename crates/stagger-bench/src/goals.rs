//! What stagger has to reach, and whether it did.

use crate::case::{Role, Section, Table};
use crate::findings::{Findings, Row};
use crate::weight::Weight;
use crate::{blocking, delay, failures, future, guards, http, pending, websocket};

/// Whether a goal was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It was.
    Reached,
    /// It was not.
    Missed,
    /// A figure that it needs is not there.
    NotMeasured,
}

/// On which side of its limit a goal is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    /// At the limit or below.
    AtMost,
    /// At the limit or above.
    AtLeast,
}

/// One goal, with what was found.
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

/// The goals of the sections that `wanted` names, in order.
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
    let a = |claim| At { section: Section::A, claim };
    vec![
        a("full jitter, any multiplier").most(any.and_then(Row::instructions), 40.0, "instructions"),
        a("full jitter, any multiplier").most(any.and_then(Row::ns), 3.0, "ns"),
        a("full jitter, const policy").most(constant.and_then(Row::instructions), 25.0, "instructions"),
        a("faster than the best peer").least(findings.ahead(table, any), 4.0, "×"),
        a("whole decision, budget and breaker").most(guarded.and_then(Row::ns), 12.0, "ns"),
        a("state of one call").most(Some(size_of::<stagger_core::machine::RetryState>() as f64), 24.0, "bytes"),
    ]
}

fn calls(findings: Findings<'_>) -> Vec<Goal> {
    let table = Table::Blocking;
    let call = findings.stagger(table, blocking::ONE_LINER);
    let added = call.and_then(Row::instructions).zip(findings.yardstick(table).and_then(Row::instructions));
    let b = |claim| At { section: Section::B, claim };
    vec![
        b("added to a direct call: 3, and 4 for the nested-retry scope").most(
            added.map(|(call, direct)| call - direct),
            7.0,
            "instructions",
        ),
        b("before the first failure").most(call.and_then(Row::allocations), 0.0, "allocations"),
    ]
}

fn futures(findings: Findings<'_>) -> Vec<Goal> {
    let table = Table::Future;
    let call = findings.stagger(table, future::ONE_LINER);
    let bytes = call.and_then(|row| row.bytes_added);
    let peer = findings.least(table, Role::Peer, Row::instructions).and_then(Row::instructions);
    let c = |claim| At { section: Section::C, claim };
    vec![
        c("success at once").most(call.and_then(Row::instructions), 30.0, "instructions"),
        c("before the first failure").most(call.and_then(Row::allocations), 0.0, "allocations"),
        c("added to a small future").most(bytes.map(|bytes| bytes.small as f64), 64.0, "bytes"),
        c("added to a future of 1 KiB").most(bytes.map(|bytes| bytes.large as f64), 64.0, "bytes"),
        c("of the best peer's instructions").most(
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
    let d = |claim| At { section: Section::D, claim };
    vec![
        d("blocking, delays drawn: of the floor").most(findings.of_floor(Table::FailuresBlocking, blocking), 3.0, "×"),
        d("blocking, no delay: of the floor").most(findings.of_floor(Table::FailuresZero, zero), 3.0, "×"),
        d("blocking, delays drawn: faster than the best peer").least(
            findings.ahead(Table::FailuresBlocking, blocking),
            3.0,
            "×",
        ),
        d("async, ready sleeper: of the floor").most(findings.of_floor(Table::FailuresReady, ready), 3.0, "×"),
        d("async, ready sleeper: faster than the best peer").least(
            findings.ahead(Table::FailuresReady, ready),
            3.0,
            "×",
        ),
        d("async, ready sleeper").most(ready.and_then(Row::allocations), 0.0, "allocations"),
        d("tokio, zero delays").most(tokio.and_then(Row::ns), 25.0, "ns"),
        d("tokio, zero delays").most(tokio.and_then(Row::allocations), 0.0, "allocations"),
    ]
}

/// The dearest guard is the one that has to reach a goal.
fn shared(findings: Findings<'_>) -> Vec<Goal> {
    let success = |name| findings.stagger(Table::GuardsSuccess, name);
    let grown = |name| {
        let row = success(name)?;
        Some(row.ns_with_two_threads()? / row.ns()?)
    };
    let withdrawal = |name| {
        let row = findings.stagger(Table::GuardsFailure, name);
        findings.of_floor(Table::GuardsFailure, row)
    };
    let e = |claim| At { section: Section::E, claim };
    vec![
        e("a success, the dearest guard that counts").most(
            dearest(guards::COUNTING, |name| success(name)?.ns()),
            3.0,
            "ns",
        ),
        // A tenth is noise.
        e("the same with a second thread: of one").most(dearest(guards::COUNTING, grown), 1.1, "×"),
        e("a withdrawal, the dearest guard that counts: of the floor").most(
            dearest(guards::WITHDRAWALS, withdrawal),
            1.5,
            "×",
        ),
    ]
}

/// The largest figure; none if one of them is not there.
fn dearest<const N: usize>(names: [&'static str; N], figure: impl Fn(&'static str) -> Option<f64>) -> Option<f64> {
    names.into_iter().map(figure).try_fold(0.0, |most: f64, figure| Some(most.max(figure?)))
}

fn waiting(findings: Findings<'_>) -> Vec<Goal> {
    let due = |name| findings.stagger(Table::PendingDue, name);
    let f = |claim| At { section: Section::F, claim };
    vec![
        f("a pending retry as a task").most(due(pending::RETRYING).and_then(|row| row.bytes_each), 512.0, "bytes"),
        f("the wheel: of the floor").most(findings.of_floor(Table::PendingDue, due(pending::WHEEL)), 2.0, "×"),
        f("the wheel with a timer: of the floor").most(
            findings.of_floor(Table::PendingDue, due(pending::DELAY_QUEUE)),
            2.0,
            "×",
        ),
    ]
}

fn weight(weights: &[Weight]) -> Vec<Goal> {
    let of = |name| weights.iter().find(|weight| weight.name == name).and_then(|weight| weight.build);
    let both = of("stagger").zip(of("backon"));
    let g = |claim| At { section: Section::G, claim };
    vec![
        g("crates beyond backon's").most(
            both.map(|(ours, backon)| f64::from(ours.crates) - f64::from(backon.crates)),
            0.0,
            "crates",
        ),
        g("clean build, of backon's").most(both.map(|(ours, backon)| ours.seconds / backon.seconds), 1.0, "×"),
    ]
}

fn requests(findings: Findings<'_>) -> Vec<Goal> {
    let [layer, guarded, long] =
        [(Table::LayerGet, http::RETRIES), (Table::LayerGet, http::GUARDED), (Table::LayerPut, http::RETRIES)]
            .map(|(table, name)| findings.stagger(table, name));
    let middleware = findings.stagger(Table::Middleware, http::MIDDLEWARE);
    let alone = findings.yardstick(Table::LayerGet).and_then(Row::allocations);
    let guarded_peer = findings.named(Table::LayerGet, Role::Peer, http::TOWER_GUARDED);
    let h = |claim| At { section: Section::H, claim };
    vec![
        h("layer, no body: faster than the best peer").least(findings.ahead(Table::LayerGet, layer), 1.0, "×"),
        h("layer with a budget, no body: faster than tower's").least(
            guarded_peer.and_then(Row::ns).zip(guarded.and_then(Row::ns)).map(|(peer, ours)| peer / ours),
            1.0,
            "×",
        ),
        h("layer, 1 KiB: faster than the best peer").least(findings.ahead(Table::LayerPut, long), 1.0, "×"),
        h("layer, no body").most(
            layer.and_then(Row::allocations).zip(alone).map(|(ours, alone)| ours - alone),
            1.0,
            "allocations",
        ),
        h("middleware: faster than the best peer").least(findings.ahead(Table::Middleware, middleware), 1.0, "×"),
    ]
}

impl Findings<'_> {
    /// How many times faster `ours` is than the fastest peer of the table.
    fn ahead(self, table: Table, ours: Option<&Row>) -> Option<f64> {
        let peer = self.least(table, Role::Peer, Row::ns)?.ns()?;
        Some(peer / ours?.ns()?)
    }

    /// How many times as long as the fastest floor of the table `ours` takes.
    fn of_floor(self, table: Table, ours: Option<&Row>) -> Option<f64> {
        let floor = self.least(table, Role::Floor, Row::ns)?.ns()?;
        Some(ours?.ns()? / floor)
    }
}

/// Over a socket, as messages go. Beside what is made by hand for the same: bare tungstenite for the low level and the
/// server, a task of its own for the high level.
fn sockets(findings: Findings<'_>) -> Vec<Goal> {
    let of = |table, name, role, other| {
        let (ours, other) = (findings.stagger(table, name)?, findings.named(table, role, other)?);
        Some((ours, other))
    };
    let j = |claim| At { section: Section::J, claim };
    let mut goals = Vec::new();
    for (table, low, served, high) in [
        (
            Table::SocketShort,
            "64 bytes, Connection: of bare tungstenite",
            "64 bytes, server::Socket: of bare tungstenite",
            "64 bytes, Client: of a task with two channels",
        ),
        (
            Table::SocketLong,
            "4 KiB, Connection: of bare tungstenite",
            "4 KiB, server::Socket: of bare tungstenite",
            "4 KiB, Client: of a task with two channels",
        ),
    ] {
        for (claim, name, role, other) in [
            (low, websocket::LOW, Role::Bare, websocket::BARE),
            (served, websocket::SERVED, Role::Bare, websocket::BARE),
            (high, websocket::HIGH, Role::Floor, websocket::IN_A_TASK),
        ] {
            let ratio = of(table, name, role, other).and_then(|(ours, other)| Some(ours.ns()? / other.ns()?));
            goals.push(j(claim).most(ratio, 1.05, "×"));
        }
    }
    for (claim, name) in [
        ("idle, Connection: beyond bare tungstenite", websocket::LOW),
        ("idle, server::Socket: beyond bare tungstenite", websocket::SERVED),
        ("idle, Client: beyond bare tungstenite", websocket::HIGH),
    ] {
        let beyond = of(Table::SocketIdle, name, Role::Bare, websocket::BARE)
            .and_then(|(ours, bare)| Some(ours.bytes_each? - bare.bytes_each?));
        goals.push(j(claim).most(beyond, 1024.0, "bytes"));
    }
    goals
}

/// A goal whose limit is still to be said.
struct At {
    section: Section,
    claim: &'static str,
}

impl At {
    fn most(self, found: Option<f64>, limit: f64, unit: &'static str) -> Goal {
        self.judge(found, Bound::AtMost, limit, unit)
    }

    fn least(self, found: Option<f64>, limit: f64, unit: &'static str) -> Goal {
        self.judge(found, Bound::AtLeast, limit, unit)
    }

    fn judge(self, found: Option<f64>, bound: Bound, limit: f64, unit: &'static str) -> Goal {
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
    fn a_goal_is_missed_by_a_hair() {
        for (instructions, want) in [(40.0, Verdict::Reached), (40.1, Verdict::Missed)] {
            let rows = [row(Table::Delay, Role::Stagger, delay::ANY_MULTIPLIER, 1.0, instructions)];
            assert_eq!(verdict(&rows, "full jitter, any multiplier", "instructions"), want);
        }
    }

    #[test]
    fn without_peers_nothing_is_said_about_them() {
        let rows = [row(Table::Delay, Role::Stagger, delay::ANY_MULTIPLIER, 1.0, 30.0)];
        assert_eq!(verdict(&rows, "faster than the best peer", "×"), Verdict::NotMeasured);
    }

    #[test]
    fn the_fastest_peer_is_the_one_to_beat() {
        let ours = row(Table::Delay, Role::Stagger, delay::ANY_MULTIPLIER, 2.0, 30.0);
        let slow = row(Table::Delay, Role::Peer, "slow", 50.0, 1.0);
        let fast = row(Table::Delay, Role::Peer, "fast", 7.9, 1.0);
        assert_eq!(verdict(&[ours.clone(), slow.clone()], "faster than the best peer", "×"), Verdict::Reached);
        assert_eq!(verdict(&[ours, slow, fast], "faster than the best peer", "×"), Verdict::Missed);
    }

    #[test]
    fn what_a_call_adds_is_counted_from_the_direct_call() {
        let direct = row(Table::Blocking, Role::Bare, "direct call", 1.0, 16.0);
        for (instructions, want) in [(23.0, Verdict::Reached), (24.0, Verdict::Missed)] {
            let call = row(Table::Blocking, Role::Stagger, blocking::ONE_LINER, 1.0, instructions);
            let claim = "added to a direct call: 3, and 4 for the nested-retry scope";
            assert_eq!(verdict(&[direct.clone(), call], claim, "instructions"), want);
        }
    }

    #[test]
    fn guards_are_judged_by_the_dearest_of_them() {
        let guard = |name, ns: f64, two: f64| Row {
            two_threads: Some(Timing { fastest_ns: two, median_ns: two }),
            ..row(Table::GuardsSuccess, Role::Stagger, name, ns, 20.0)
        };
        let mut rows = guards::COUNTING.map(|name| guard(name, 2.0, 2.0));
        let (success, grown) = ("a success, the dearest guard that counts", "the same with a second thread: of one");
        assert_eq!((verdict(&rows, success, "ns"), verdict(&rows, grown, "×")), (Verdict::Reached, Verdict::Reached));
        rows[3] = guard(guards::COUNTING[3], 4.0, 8.0);
        assert_eq!((verdict(&rows, success, "ns"), verdict(&rows, grown, "×")), (Verdict::Missed, Verdict::Missed));
        assert_eq!(verdict(&rows[..4], success, "ns"), Verdict::NotMeasured);
    }

    #[test]
    fn only_the_wanted_sections_are_judged() {
        let goals = evaluate(&[], &[], |section| section == Section::C);
        assert!(!goals.is_empty() && goals.iter().all(|goal| goal.section == Section::C));
    }
}
