//! Checks of systems of services: what makes the retries between the services of a file cause storms.
//!
//! ```
//! use stagger_lint::system::check;
//! use stagger_sim::system::SystemFile;
//!
//! let text = r#"
//! users.rate = 90
//! tier.database = { service = "5ms", backlog = 100 }
//! edge = [{ from = "users", to = "database", policy = "zero max-attempts=3" }]
//! "#;
//! let found = check(&SystemFile::parse(text)?);
//! assert_eq!(found[0].finding().rule().name(), "unguarded-retries");
//! assert_eq!(found[0].place().unwrap().to_string(), "4:53");
//!
//! let fix = found[0].fix().unwrap();
//! assert!(fix.text().contains("budget = { tokens = 10, refund = 0.1 }"));
//! assert!(check(&SystemFile::parse(fix.applied_to(text).unwrap())?).is_empty());
//! # Ok::<(), stagger_sim::system::SystemFileError>(())
//! ```

use core::iter::successors;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_sim::system::{EdgeLayout, NestedCalls, ServiceLayout, SystemFile, SystemLayout};

use crate::file::{Edit, FileFinding, Fix, Place};
use crate::rules::system::{
    ATTEMPTS_MULTIPLY, DEADLINE_DROPPED, LOOP_GAIN, OVERLOADED, STALE_QUEUE, TIMEOUT_INVERTED, TIMEOUT_TOO_SHORT,
    UNGUARDED_RETRIES,
};
use crate::{Finding, Rule};

/// Checks a file by the [rules](crate::Rule::all) for systems. Returns the findings, ordered by code.
#[must_use]
pub fn check(file: &SystemFile) -> Vec<FileFinding> {
    type Check<'a> = fn(&SystemAnalysis<'a>, usize) -> Option<FileFinding>;
    let of_edges: [Check<'_>; 4] = [
        SystemAnalysis::attempts_multiply,
        SystemAnalysis::timeout_inverted,
        SystemAnalysis::unguarded_retries,
        SystemAnalysis::deadline_dropped,
    ];
    let of_services: [Check<'_>; 3] =
        [SystemAnalysis::loop_gain, SystemAnalysis::stale_queue, SystemAnalysis::overloaded];
    let analysis = SystemAnalysis::new(file);
    let mut findings = Vec::new();
    for check in of_edges {
        findings.extend((0..analysis.layout.edges.len()).filter_map(|edge| check(&analysis, edge)));
    }
    for check in of_services {
        findings.extend((0..analysis.layout.services.len()).filter_map(|service| check(&analysis, service)));
    }
    findings.extend((0..analysis.layout.edges.len()).filter_map(|edge| analysis.timeout_too_short(edge)));
    findings
}

/// A file, with what is known about its system without a run.
struct SystemAnalysis<'a> {
    file: &'a SystemFile,
    layout: SystemLayout,
    /// The paths of the edges.
    paths: Vec<String>,
}

impl<'a> SystemAnalysis<'a> {
    fn new(file: &'a SystemFile) -> Self {
        Self { file, layout: file.system().layout(), paths: file.edge_paths() }
    }

    /// Returns the name of an edge: `orders-database`.
    fn name(&self, nth: usize) -> &str {
        self.paths[nth].trim_start_matches("edge.")
    }

    /// Returns the edges that a service calls over.
    fn below(&self, service: usize) -> Vec<usize> {
        let edges = self.layout.edges.iter().enumerate();
        edges.filter(|(_, edge)| edge.from == Some(service)).map(|(nth, _)| nth).collect()
    }

    /// Returns whether an edge above makes several attempts and has no budget.
    fn is_retried_above(&self, nth: usize) -> bool {
        self.callers(nth).any(|caller| {
            let edge = &self.layout.edges[caller];
            attempts(edge) > 1.0 && !edge.has_guards || self.is_retried_above(caller)
        })
    }

    /// Returns the edges from the users to this one, on the way with the most attempts.
    fn way_to(&self, nth: usize) -> Vec<usize> {
        let worst = |edge: &usize| self.layout.edges[*edge].worst_attempts_per_request;
        let above = self.callers(nth).max_by(|a, b| worst(a).total_cmp(&worst(b)));
        let mut way = match above {
            Some(above) => self.way_to(above),
            None => Vec::new(),
        };
        way.push(nth);
        way
    }

    fn callers(&self, nth: usize) -> impl Iterator<Item = usize> + '_ {
        let from = self.layout.edges[nth].from;
        let edges = self.layout.edges.iter().enumerate();
        edges.filter(move |(_, caller)| Some(caller.to) == from).map(|(nth, _)| nth)
    }
}

impl SystemAnalysis<'_> {
    fn attempts_multiply(&self, nth: usize) -> Option<FileFinding> {
        if !self.multiplies(nth) {
            return None;
        }
        let edge = &self.layout.edges[nth];
        let factors = self.way_to(nth).into_iter().map(|nth| {
            let edge = &self.layout.edges[nth];
            let calls = if edge.calls > 1 { format!("{} calls of ", edge.calls) } else { String::new() };
            format!("{calls}{} over {}", counted(attempts(edge)), self.name(nth))
        });
        let facts = vec![
            factors.collect::<Vec<_>>().join(" times "),
            format!(
                "if no call succeeds, {} receives {} attempts per request of the users over this edge, instead of {}",
                self.layout.services[edge.to].name,
                number(edge.worst_attempts_per_request),
                number(edge.calls_per_request)
            ),
        ];
        let change = self.of_edge(nth, "nested", "\"stand-down\"".to_owned());
        finding(self.file, &ATTEMPTS_MULTIPLY, &self.policy(nth), facts, &[change], "or a budget on this edge")
    }

    /// Returns whether the attempts of an edge multiply with those of another above it.
    fn multiplies(&self, nth: usize) -> bool {
        let edge = &self.layout.edges[nth];
        edge.nested == NestedCalls::Multiply && !edge.has_guards && attempts(edge) > 1.0 && self.is_retried_above(nth)
    }

    fn timeout_inverted(&self, nth: usize) -> Option<FileFinding> {
        let edge = &self.layout.edges[nth];
        let to = &self.layout.services[edge.to];
        let below = self.below(edge.to);
        let drops = !to.does_stale_work;
        if drops && below.iter().all(|&below| self.layout.edges[below].hands_on_deadline) {
            return None;
        }
        let mut needed = Some(Duration::ZERO);
        let mut facts = vec![format!("{} waits {} for {}", self.name(nth), Compact(edge.timeout), to.name)];
        let mut changes =
            vec![Change { table: format!("tier.{}", to.name), key: "stale", value: "\"hopeless\"".to_owned() }];
        for &below in &below {
            let edge = &self.layout.edges[below];
            let longest = longest_calls(edge);
            needed = match (needed, longest) {
                (Some(needed), Some(longest)) => Some(needed.saturating_add(longest)),
                _ => None,
            };
            let calls =
                if edge.calls > 1 && !edge.is_parallel { format!("{} calls of ", edge.calls) } else { String::new() };
            let most = match longest {
                Some(longest) => format!("up to {}", length(longest)),
                None => "any time".to_owned(),
            };
            let (attempts, limit) = (counted(attempts(edge)), Compact(edge.timeout));
            let name = self.name(below);
            facts.push(format!("{name}: {calls}{attempts} of {limit} each take {most} with their delays"));
            if !edge.hands_on_deadline {
                changes.push(self.of_edge(below, "deadline", "\"hand-on\"".to_owned()));
            }
        }
        if matches!(needed, Some(needed) if needed <= edge.timeout) {
            return None;
        }
        let path = format!("{}.timeout", self.paths[nth]);
        let help = "or shorter time limits and fewer attempts below, so that all of them fit";
        finding(self.file, &TIMEOUT_INVERTED, &path, facts, &changes, help)
    }

    fn unguarded_retries(&self, nth: usize) -> Option<FileFinding> {
        let edge = &self.layout.edges[nth];
        let to = &self.layout.services[edge.to];
        let is_bounded = attempts(edge) <= 1.0 || edge.has_guards || to.worst_load <= to.capacity;
        // These name the edge for a stronger reason.
        let gains = self.file.system().loop_gains();
        let is_named = gains.iter().any(|gain| gain.sustains_overload() && gain.mend_first == Some(nth));
        if is_bounded || is_named || self.multiplies(nth) {
            return None;
        }
        let facts = vec![format!(
            "{} makes up to {} per call; if no call succeeds, {} receives {}/s and serves {}/s",
            self.name(nth),
            counted(attempts(edge)),
            to.name,
            number(to.worst_load),
            number(to.capacity)
        )];
        let change = self.of_edge(nth, "budget", BUDGET.to_owned());
        finding(self.file, &UNGUARDED_RETRIES, &self.policy(nth), facts, &[change], "")
    }

    fn deadline_dropped(&self, nth: usize) -> Option<FileFinding> {
        let edge = &self.layout.edges[nth];
        let to = &self.layout.services[edge.to];
        let work = queued_work(to);
        if edge.from.is_none() || edge.hands_on_deadline || to.does_stale_work || work <= patience(edge) {
            return None;
        }
        let facts = vec![format!(
            "the queue of {} holds {} of work, and {} tells it only its own time limit of {}",
            to.name,
            length(work),
            self.name(nth),
            Compact(edge.timeout)
        )];
        let path = format!("{}.deadline", self.paths[nth]);
        let change = self.of_edge(nth, "deadline", "\"hand-on\"".to_owned());
        finding(self.file, &DEADLINE_DROPPED, &path, facts, &[change], "")
    }

    fn loop_gain(&self, service: usize) -> Option<FileFinding> {
        let gain = *self.file.system().loop_gains().get(service)?;
        if !gain.sustains_overload() {
            return None;
        }
        let edge = gain.mend_first?;
        let name = &self.layout.services[service].name;
        let facts = vec![
            format!("{name}: a loop gain of {:.2} at {}/s of the users", gain.gain, number(self.file.system().rate())),
            format!(
                "the retries of {} raise it most; if it made one attempt per call, the gain would be {:.2}",
                self.name(edge),
                gain.gain_after_mending
            ),
        ];
        let mut changes = vec![];
        if self.layout.edges[edge].from.is_some() {
            changes.push(self.of_edge(edge, "nested", "\"stand-down\"".to_owned()));
        }
        changes.push(self.of_edge(edge, "budget", BUDGET.to_owned()));
        changes.push(self.of_edge(edge, "policy", "\"stop\"".to_owned()));
        // The first that suffices, or else the one that leaves least.
        let (mut left, mut best) = (f64::INFINITY, 0);
        for (at, change) in changes.iter().enumerate() {
            let gain = self.gain_with(change, service).unwrap_or(f64::INFINITY);
            if gain < left {
                (left, best) = (gain, at);
            }
            if left <= 1.0 {
                break;
            }
        }
        let help = if left > 1.0 { "not enough alone: check again, and mend the edge that is named then" } else { "" };
        finding(self.file, &LOOP_GAIN, &self.policy(edge), facts, &changes[best..=best], help)
    }

    /// Returns the loop gain of a service after a change; `None` if the file cannot be changed so.
    fn gain_with(&self, change: &Change, service: usize) -> Option<f64> {
        let fixed = with_fix(self.file, &fix(self.file, core::slice::from_ref(change)))?;
        Some(fixed.system().loop_gains().get(service)?.gain)
    }

    fn stale_queue(&self, service: usize) -> Option<FileFinding> {
        let of = &self.layout.services[service];
        let work = queued_work(of);
        let callers = self.layout.edges.iter().filter(|edge| edge.to == service);
        let shortest = callers.min_by_key(|edge| patience(edge))?;
        let in_time = (of.capacity * patience(shortest).as_secs_f64()).floor().max(1.0);
        if !of.does_stale_work || work <= patience(shortest) {
            return None;
        }
        let waits = Compact(shortest.timeout);
        let facts = match of.backlog {
            None => vec![format!("the queue of {} has no bound; callers wait {waits}", of.name)],
            Some(backlog) => {
                let seconds = (f64::from(backlog) - in_time) / (of.capacity - of.load).max(0.0);
                if seconds <= shortest.timeout.as_secs_f64() {
                    return None;
                }
                let lasts = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
                vec![
                    format!("{backlog} attempts are {} of work for {}; callers wait {waits}", length(work), of.name),
                    format!("once it is full, it answers nothing in time for {}", lasting(lasts)),
                ]
            }
        };
        let path = format!("tier.{}.backlog", of.name);
        let change = Change { table: format!("tier.{}", of.name), key: "backlog", value: number(in_time) };
        let help = "or stale = \"hopeless\", which drops what cannot be back in time";
        finding(self.file, &STALE_QUEUE, &path, facts, &[change], help)
    }

    fn overloaded(&self, service: usize) -> Option<FileFinding> {
        let of = &self.layout.services[service];
        if of.load <= of.capacity {
            return None;
        }
        let held = f64::from(of.workers) / of.capacity;
        let waits = if of.held_for_calls.is_zero() {
            String::new()
        } else {
            format!(", {} of it for calls", length(of.held_for_calls))
        };
        let facts = vec![
            format!("{} receives {}/s and serves {}/s when all is well", of.name, number(of.load), number(of.capacity)),
            format!(
                "{} for {}{waits}",
                if of.workers == 1 {
                    "an attempt takes its worker".to_owned()
                } else {
                    format!("an attempt takes one of its {} workers", of.workers)
                },
                length(Duration::try_from_secs_f64(held).unwrap_or(Duration::MAX))
            ),
        ];
        let enough = (of.load * held / ENOUGH).ceil();
        // Every file has a bound for its workers; beyond it, there is no change to name.
        let workers = Change { table: format!("tier.{}", of.name), key: "workers", value: number(enough) };
        let changes: &[Change] = if enough <= MOST_WORKERS { &[workers] } else { &[] };
        let path = format!("tier.{}.workers", of.name);
        finding(self.file, &OVERLOADED, &path, facts, changes, "or a lower rate, or less work for each attempt")
    }

    fn timeout_too_short(&self, nth: usize) -> Option<FileFinding> {
        let edge = &self.layout.edges[nth];
        let is_well = self.layout.services.iter().all(|service| service.load <= service.capacity);
        if !is_well || edge.timeout >= edge.usual_time {
            return None;
        }
        let to = &self.layout.services[edge.to];
        let facts = vec![format!(
            "{} waits {} for {}, which answers nine of ten attempts within {} when all is well, at {:.0}% of its \
             capacity",
            self.name(nth),
            Compact(edge.timeout),
            to.name,
            length(edge.usual_time),
            100.0 * to.load / to.capacity
        )];
        // So that hardly any attempt is cut off: one of ten takes longer than usual.
        let enough = rounded_up(edge.usual_time.saturating_mul(2));
        let change = self.of_edge(nth, "timeout", format!("\"{}\"", Compact(enough)));
        let path = format!("{}.timeout", self.paths[nth]);
        finding(self.file, &TIMEOUT_TOO_SHORT, &path, facts, &[change], "")
    }

    fn of_edge(&self, nth: usize, key: &'static str, value: String) -> Change {
        Change { table: self.paths[nth].clone(), key, value }
    }

    fn policy(&self, nth: usize) -> String {
        format!("{}.policy", self.paths[nth])
    }
}

/// The default of `budget` in files of systems.
const BUDGET: &str = "{ tokens = 10, refund = 0.1 }";

/// The share of its capacity at which a service is not overloaded.
const ENOUGH: f64 = 0.8;

/// The most workers of a service.
const MOST_WORKERS: f64 = 1e6;

/// Rounds a length up to two digits.
fn rounded_up(length: Duration) -> Duration {
    let seconds = length.as_secs_f64().max(1e-9);
    let step = 10_f64.powf(seconds.log10().floor() - 1.0);
    Duration::try_from_secs_f64((seconds / step).ceil() * step).unwrap_or(length).max(length)
}

fn counted(attempts: f64) -> String {
    if attempts <= 1.0 { "1 attempt".to_owned() } else { format!("{} attempts", number(attempts)) }
}

/// Returns the most attempts of a call over an edge: one if nested calls stand down.
fn attempts(edge: &EdgeLayout) -> f64 {
    if edge.from.is_some() && edge.nested == NestedCalls::StandDown {
        return 1.0;
    }
    edge.policy.max_attempts().map_or(f64::INFINITY, |most| f64::from(most.get()))
}

/// Returns how long the calls over an edge take that one attempt makes, if every attempt takes its time limit and every
/// delay is as long as it can be; `None` without a bound.
fn longest_calls(edge: &EdgeLayout) -> Option<Duration> {
    let attempts = attempts(edge);
    let mut all = None;
    if attempts.is_finite() {
        // A policy has at most u32::MAX attempts.
        let attempts = attempts as u32;
        let delays = edge.policy.elapsed_bounds(attempts.saturating_sub(1)).map(|bounds| bounds.1);
        all = Some(edge.timeout.saturating_mul(attempts).saturating_add(delays.unwrap_or_default()));
    }
    // No retry starts later, and none is interrupted.
    let limit = edge.policy.max_elapsed().map(|most| most.saturating_add(edge.timeout));
    let longest = [all, limit].into_iter().flatten().min()?;
    Some(longest.saturating_mul(if edge.is_parallel { 1 } else { edge.calls }))
}

/// Returns how long a service works on a full queue: the longest possible time if it has no bound.
fn queued_work(service: &ServiceLayout) -> Duration {
    let Some(backlog) = service.backlog else { return Duration::MAX };
    Duration::try_from_secs_f64(f64::from(backlog) / service.capacity).unwrap_or(Duration::MAX)
}

/// Returns how much of the time limit of an edge a queue may take: what the messages leave of it.
fn patience(edge: &EdgeLayout) -> Duration {
    edge.timeout.saturating_sub(edge.one_way.saturating_mul(2))
}

/// Formats a number without more digits than say anything.
fn number(value: f64) -> String {
    if value.is_infinite() {
        return "unlimited".to_owned();
    }
    let digits = 10_f64.powi((3 - value.abs().max(1e-9).log10().floor() as i32).max(0));
    format!("{}", (value * digits).round() / digits)
}

/// Formats a time that may have no end.
fn lasting(value: Duration) -> String {
    if value == Duration::MAX { "ever".to_owned() } else { length(value) }
}

fn length(value: Duration) -> String {
    if value == Duration::MAX { "any amount".to_owned() } else { format!("{:.2}", Compact(value)) }
}

/// A line of a table of a file: `nested = "stand-down"` in `edge.orders-database`.
struct Change {
    /// The path of the table: `edge.orders-database`, `tier.database`.
    table: String,
    key: &'static str,
    /// The value, in TOML.
    value: String,
}

/// Returns the file with a fix; `None` if it has no edits, or the file would not be valid.
fn with_fix(file: &SystemFile, fix: &Fix) -> Option<SystemFile> {
    let text = fix.applied_to(file.text())?;
    file.with_text(text).ok()
}

/// Creates a finding at a path; `help` goes on after the changes.
fn finding(
    file: &SystemFile,
    rule: &'static Rule,
    path: &str,
    facts: Vec<String>,
    changes: &[Change],
    help: &str,
) -> Option<FileFinding> {
    let lines = changes.iter().map(|change| format!("{} in {}", change.line(), change.table)).collect::<Vec<_>>();
    let mut advice = lines.join(", and ");
    if !help.is_empty() {
        if !advice.is_empty() {
            advice += "; ";
        }
        advice += help;
    }
    let finding = Finding::with_advice(rule, facts, &advice)?;
    let fix = if changes.is_empty() { None } else { Some(fix(file, changes)) };
    Some(FileFinding { finding, path: path.to_owned(), place: place(file, path), fix })
}

/// Returns the place of the value at a path, or of the table that would have it if the value is a default. `None` if
/// the file has neither.
fn place(file: &SystemFile, path: &str) -> Option<Place> {
    let mut tables = successors(Some(path), |path| path.rsplit_once('.').map(|(table, _)| table));
    let bytes = tables.find_map(|path| file.span(path))?;
    Some(Place::of(file.text(), &bytes))
}

/// Returns the fix that makes these changes. It has no edits if one of the tables is written as dotted keys.
fn fix(file: &SystemFile, changes: &[Change]) -> Fix {
    let edits: Option<Vec<_>> = changes.iter().map(|change| change.edit(file)).collect();
    let shown = changes.iter().map(|change| format!("{}\n{}", change.head(), change.line()));
    Fix { text: shown.collect::<Vec<_>>().join("\n"), edits: edits.unwrap_or_default() }
}

impl Change {
    fn edit(&self, file: &SystemFile) -> Option<Edit> {
        let all = file.text();
        if let Some(bytes) = file.span(&format!("{}.{}", self.table, self.key)) {
            return Some(Edit { place: Place::of(all, &bytes), text: self.value.clone() });
        }
        let head = file.span(&self.table)?;
        let written = all.get(head.clone())?;
        let insert = |at: usize, text: String| Edit { place: Place::of(all, &(at..at)), text };
        if let Some(rest) = written.strip_prefix('{') {
            let is_empty = rest.trim_start().starts_with('}');
            return Some(insert(head.start + 1, format!(" {}{}", self.line(), if is_empty { " " } else { "," })));
        }
        // A table written as dotted keys has no head below which a line could stand.
        if !written.starts_with('[') {
            return None;
        }
        // Below the head, of which the rest is a comment at most.
        Some(match all[head.end..].find('\n') {
            Some(end) => insert(head.end + end + 1, format!("{}\n", self.line())),
            None => insert(all.len(), format!("\n{}", self.line())),
        })
    }

    fn line(&self) -> String {
        format!("{} = {}", self.key, self.value)
    }

    /// Returns the head of the table, with the name of an edge.
    fn head(&self) -> String {
        match self.table.strip_prefix("edge.") {
            Some(name) => format!("[[edge]] # {name}"),
            None => format!("[{}]", self.table),
        }
    }
}
