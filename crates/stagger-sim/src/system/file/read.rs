//! Reads a system from the tables of a file.

use core::ops::Range;
use core::time::Duration;

use stagger_core::text::Outside;
use toml::de::DeTable;

use super::policy::{edge_guards, edge_policy};
use super::table::{Entry, Reader, Table, count, duration};
use crate::system::definition::{Arrivals, System, SystemBuilder, SystemError, SystemPart};
use crate::system::edge::{Cache, CallOrder, Edge, NestedCalls, Refusals};
use crate::system::service::{Service, ServiceTimes, StaleWork};
use crate::system::trigger::Trigger;

/// The positions of the parts of a system.
#[derive(Default)]
struct Positions {
    users: usize,
    horizon: usize,
    services: Vec<usize>,
    edges: Vec<usize>,
    triggers: Vec<usize>,
}

/// The name of the users at the start of an edge.
pub(super) const USERS: &str = "users";

/// Reads a system; `None` if the reader has noted problems.
pub(super) fn system<'a>(reader: &'a Reader<'a>, root: &'a DeTable<'a>) -> Option<System> {
    let mut root = Table::new(reader, "", 0, root);
    let position = |root: &Table<'_>, key| root.position(key).unwrap_or(0);
    let (users_at, horizon_at) = (position(&root, USERS), position(&root, "horizon"));
    let mut positions = Positions { users: users_at, horizon: horizon_at, ..Positions::default() };
    // Without one, the default depends on the rate and the triggers.
    let is_given = root.has("horizon");
    let horizon = root.duration("horizon", Duration::from_secs(300));
    let mut builder = users(&mut root, reader);
    if is_given {
        builder = builder.horizon(horizon);
    }
    if let Some(mut tiers) = root.table("tier") {
        for entry in tiers.take_all() {
            builder = builder.service(service(&tiers, &entry));
            positions.services.push(entry.at);
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (table, head) in root.list("edge") {
        positions.edges.push(head.start);
        builder = edge(builder, reader, table, head, &mut names);
    }
    for (nth, (table, head)) in root.list("trigger").into_iter().enumerate() {
        let table = Table::new(reader, format!("trigger.{}.", nth + 1), head.start, table);
        builder = builder.trigger(trigger(table));
        positions.triggers.push(head.start);
    }
    root.finish();
    if reader.has_problems() {
        return None;
    }
    builder.build().map_err(|error| add_problems(reader, &error, &positions)).ok()
}

fn add_problems(reader: &Reader<'_>, error: &SystemError, positions: &Positions) {
    for problem in error.problems() {
        let at = match problem.part() {
            SystemPart::Whole if problem.to_string().contains("horizon") => Some(positions.horizon),
            SystemPart::Whole => Some(positions.users),
            SystemPart::Service(nth) => positions.services.get(nth).copied(),
            SystemPart::Edge(nth) => positions.edges.get(nth).copied(),
            SystemPart::Trigger(nth) => positions.triggers.get(nth).copied(),
        };
        reader.problem(at, problem.to_string());
    }
}

fn users<'a>(root: &mut Table<'a>, reader: &'a Reader<'a>) -> SystemBuilder {
    let mut users = root.table(USERS).unwrap_or_else(|| Table::missing(reader, "users.", 0));
    let arrivals = [("poisson", Arrivals::Poisson), ("fixed", Arrivals::Fixed)];
    if !users.has("rate") {
        users.is_missing("rate", "rate = \"50/s\" below [users]");
    }
    let builder = System::builder(users.rate("rate", 1.0));
    let builder = builder.arrivals(users.word("arrivals", &arrivals).unwrap_or_default());
    users.finish();
    builder
}

/// The longest name of a tier in bytes.
const LONGEST_NAME: usize = 100;

fn service<'a>(tiers: &Table<'a>, entry: &Entry<'a>) -> Service {
    let service = Service::new(entry.key);
    let Some(mut table) = tiers.as_table(entry, format!("tier.{}.", entry.key)) else {
        return service;
    };
    if entry.key == USERS {
        table.problem(
            entry.at..entry.at,
            "a tier cannot be named `users`, which are the start of the first edge; rename it",
        );
    }
    if entry.key.len() > LONGEST_NAME || !entry.key.chars().all(Outside::shows) {
        let name = Outside(entry.key);
        table.problem(
            entry.at..entry.at,
            format!("the name `{name}` is not one of printable characters, {LONGEST_NAME} bytes at most; rename it"),
        );
    }
    let times = [("fixed", ServiceTimes::Fixed), ("exponential", ServiceTimes::Exponential)];
    let stale = [("done", StaleWork::Done), ("expired", StaleWork::DropExpired), ("hopeless", StaleWork::DropHopeless)];
    let has_variation = table.has("service-cv");
    if has_variation && table.has("service-times") {
        table.problem(
            entry.at..entry.at,
            "both `service-cv` and `service-times` say how service times vary; remove one",
        );
    }
    let service = match table.lengths("service-times") {
        Some(quantiles) => {
            if table.has("service") {
                let problem = "`service` follows from the measured `service-times`; remove it";
                table.problem(entry.at..entry.at, problem);
            }
            service.measured_times(quantiles)
        }
        None => service
            .service_time(table.duration("service", Duration::from_millis(1)))
            .service_times(table.word("service-times", &times).unwrap_or_default()),
    };
    let service = if has_variation { service.service_cv(table.factor("service-cv", 1.0)) } else { service };
    let service = service
        .workers(table.count("workers", 1))
        .backlog(backlog(&mut table))
        .stale_work(table.word("stale", &stale).unwrap_or_default())
        .instances(table.count("instances", 10));
    let waits = table.word("waits", TRUTHS).unwrap_or_default();
    table.finish();
    if waits { service.hold_workers() } else { service }
}

const TRUTHS: &[(&str, bool)] = &[("false", false), ("true", true)];

/// Takes out the backlog, which may be `none`: without a bound.
fn backlog(table: &mut Table<'_>) -> u32 {
    if table.contains("backlog", "none") {
        table.take("backlog");
        return Service::MAX_BACKLOG;
    }
    table.count("backlog", 1_000)
}

fn edge<'a>(
    builder: SystemBuilder,
    reader: &'a Reader<'a>,
    table: &'a DeTable<'a>,
    head: Range<usize>,
    names: &mut Vec<String>,
) -> SystemBuilder {
    let at = head.start;
    let mut table = Table::new(reader, "", at, table);
    let [from, to] = ["from", "to"].map(|key| {
        let given = table.text(key).map(|(text, _)| text);
        if given.is_none() {
            let example = if key == "from" { "from = \"users\"" } else { "to = \"database\"" };
            table.is_missing(key, example);
        }
        given.unwrap_or_default()
    });
    let path = edge_path(names, format!("{from}-{to}"));
    table.path = format!("{path}.");
    reader.place(&path, head);
    let is_first = from == USERS;
    let edge = if is_first { Edge::from_users(to) } else { Edge::between(from, to) };
    let orders = [("sequence", CallOrder::Sequence), ("parallel", CallOrder::Parallel)];
    let nested = [
        ("multiply", NestedCalls::Multiply),
        ("stand-down", NestedCalls::StandDown),
        ("first-only", NestedCalls::FirstOnly),
    ];
    let refusals = [("retryable", Refusals::Retryable), ("permanent", Refusals::Permanent)];
    let one_way = one_way(&mut table);
    let mut edge = edge
        .calls(if is_first { table.parsed("calls", count).unwrap_or(1) } else { table.count("calls", 1) })
        .order(table.word("order", &orders).unwrap_or_default())
        .one_way_between(one_way[0], one_way[1])
        .timeout(table.duration("timeout", Duration::from_secs(1)))
        .nested(table.word("nested", &nested).unwrap_or_default())
        .refusals(table.word("refusals", &refusals).unwrap_or_default());
    if let Some(policy) = edge_policy(&mut table, reader) {
        edge = edge.policy(policy);
    }
    if let Some(guards) = edge_guards(&mut table) {
        edge = edge.guards(move |seed| guards(seed));
    }
    if let Some(cache) = cache(&mut table) {
        edge = edge.cache(cache);
    }
    if table.word("deadline", &[("hand-on", false), ("own", true)]) == Some(true) {
        edge = edge.keep_deadline();
    }
    // Only the users have processes of their own; those of a tier are its instances.
    let builder = if is_first { builder.processes(table.count("processes", 10)) } else { builder };
    if !is_first && table.has("processes") {
        let at = table.take("processes").map_or(at, |entry| entry.at);
        let problem = "only the edge from the users has `processes`; set `instances` of the calling tier instead";
        table.problem(at..at, problem);
    }
    table.finish();
    builder.edge(edge)
}

/// Returns the path of the next edge with this name, and adds the name to those of the edges before.
pub(super) fn edge_path(names: &mut Vec<String>, name: String) -> String {
    let same = names.iter().filter(|other| **other == name).count();
    let path = if same == 0 { format!("edge.{name}") } else { format!("edge.{name}#{}", same + 1) };
    names.push(name);
    path
}

/// Takes out a one-way delay: one length, or two with `..` between them.
fn one_way(table: &mut Table<'_>) -> [Duration; 2] {
    if table.contains("one-way", "..") {
        let range = table.parsed("one-way", |text| {
            let (least, most) = text.split_once("..").unwrap_or((text, text));
            Ok([duration(least)?, duration(most)?])
        });
        return range.unwrap_or_default();
    }
    [table.duration("one-way", Duration::from_millis(5)); 2]
}

fn cache(table: &mut Table<'_>) -> Option<Cache> {
    let mut cache = table.table("cache")?;
    let built = Cache::new(cache.share("hot", 0.9), cache.count("keys", 10_000));
    let late = [("drop", false), ("fill", true)];
    let fills_late = cache.word("late-answers", &late).unwrap_or_default();
    cache.finish();
    Some(if fills_late { built.fill_from_late_answers() } else { built })
}

/// The kinds of triggers, with the key of their size.
const KINDS: &[(&str, TriggerKind)] = &[
    ("stall", TriggerKind::Stall),
    ("share", TriggerKind::Share),
    ("reject", TriggerKind::Reject),
    ("error", TriggerKind::Error),
    ("workers", TriggerKind::Workers),
    ("slow", TriggerKind::Slow),
    ("spike", TriggerKind::Spike),
    ("cold", TriggerKind::Cold),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum TriggerKind {
    Stall,
    Share,
    Reject,
    Error,
    Workers,
    Slow,
    Spike,
    Cold,
}

fn trigger(mut table: Table<'_>) -> Trigger {
    let is_given = table.has("kind");
    let kind = table.word("kind", KINDS);
    if !is_given {
        table.is_missing("kind", "kind = \"stall\"");
    }
    let Some(kind) = kind else {
        // The other keys depend on the kind.
        return Trigger::stall();
    };
    let needs = |table: &Table<'_>, key, example: &str| {
        if !table.has(key) {
            table.is_missing(key, example);
        }
    };
    let trigger = match kind {
        TriggerKind::Stall => Trigger::stall(),
        TriggerKind::Reject => Trigger::reject(),
        TriggerKind::Cold => Trigger::cold(),
        TriggerKind::Share | TriggerKind::Error => {
            needs(&table, "share", "share = 0.2");
            let share = table.share("share", 0.5);
            if kind == TriggerKind::Share { Trigger::share(share) } else { Trigger::error(share) }
        }
        TriggerKind::Workers => {
            needs(&table, "workers", "workers = 1");
            Trigger::workers(table.count("workers", 1))
        }
        TriggerKind::Slow => {
            needs(&table, "factor", "factor = 4");
            needs(&table, "counted", "counted = \"arrival\", or \"start\"");
            let factor = table.factor("factor", 2.0);
            match table.word("counted", &[("arrival", true), ("start", false)]) {
                Some(true) => Trigger::slow_from_arrival(factor),
                _ => Trigger::slow_from_start(factor),
            }
        }
        TriggerKind::Spike => {
            needs(&table, "factor", "factor = 3");
            Trigger::spike(table.factor("factor", 2.0))
        }
    };
    let mut trigger = trigger.at(table.duration("at", Duration::from_secs(20)));
    if kind != TriggerKind::Cold {
        trigger = trigger.lasting(table.duration("for", Duration::from_secs(10)));
    }
    // A spike affects the users, and a cold start affects all caches.
    if !matches!(kind, TriggerKind::Spike | TriggerKind::Cold) {
        if let Some((name, _)) = table.text("on") {
            trigger = trigger.on(name);
        }
    }
    table.finish();
    trigger
}
