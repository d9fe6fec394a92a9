//! The report of a system: its figures, its tables and its sentences.

use stagger_report::report::{Figures, Metric, Named, Part, Report, Row, Run, Table, seconds, share};
use stagger_sim::storm::{MetricValue, Quantity, VerdictKind};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::to_json;
use stagger_terminal::plot::Unit;

use super::charts::{charts, graph, map, picture};
use super::document::{Document, EdgeEntry, RunEntry, ServiceEntry};
use super::find::SearchEntry;

/// Returns the report.
pub(super) fn report(document: &Document) -> Result<Report, CliError> {
    let named = |edge: &EdgeEntry| Named {
        name: format!("{} to {}", edge.from, edge.to),
        policy: edge.policy.clone(),
        guards: None,
    };
    let mut parts = vec![
        Part::Scenario,
        Part::Graph(graph(document)),
        Part::Table(edges(document)),
        Part::Table(services(document)),
    ];
    if let Some(run) = document.runs.first() {
        let floats = |counts: &[u64]| counts.iter().map(|&count| count as f64).collect();
        parts.push(Part::Curves(vec![("requests", floats(&run.requests)), ("served", floats(&run.goodput))]));
    }
    parts.push(Part::Answer);
    if let Some(frontier) = &document.frontier {
        let drawn = frontier.clone();
        parts.push(Part::Map(picture(frontier), Box::new(move |options| map(&drawn, options))));
    }
    parts.extend(charts(document).into_iter().map(Part::Chart));
    parts.push(Part::Policies("Policies", document.system.edges.iter().map(named).collect()));
    Ok(Report {
        heading: "System of services, simulated",
        scenario: describe(document),
        seeds: seeds(document),
        answer: conclusions(document),
        warnings: Vec::new(),
        figures: figures(document),
        parts,
        document: to_json(document)?,
    })
}

/// Returns the figures of all runs: of the system, of the services as `NAME.figure`, and of the edges as
/// `FROM/TO.figure`.
pub(super) fn figures(document: &Document) -> Figures {
    let runs = document.runs.iter().map(|run| Run {
        labels: vec![run.seed.to_string()],
        whose: format!("with seed {}", run.seed),
        values: values(document, run).into_iter().map(|(.., value)| value).collect(),
        absent: if run.verdict == VerdictKind::NotDecided { Some("not decided") } else { None },
    });
    let row = Row { name: document.file.clone(), is_asserted: true, runs: runs.collect(), ..Row::default() };
    let metrics = document.runs.first().map(|run| values(document, run)).unwrap_or_default();
    let metrics = metrics.into_iter().map(|(key, quantity, _)| Metric::detail(key, quantity)).collect();
    Figures { metrics, rows: vec![row], labels: &["seed"], curve: "" }
}

/// Returns the figures of a run, each with its name.
fn values(document: &Document, run: &RunEntry) -> Vec<(String, Quantity, Option<MetricValue>)> {
    use MetricValue::{Integer, Real};
    use Quantity::{Bool, Count, Number, Ratio, Seconds, Verdict};
    let mut all: Vec<(String, Quantity, Option<MetricValue>)> = [
        ("verdict", Verdict, Some(MetricValue::Verdict(run.verdict))),
        ("metastable", Bool, run.metastable.map(MetricValue::Bool)),
        ("down_before_fault", Bool, Some(MetricValue::Bool(run.down_before_fault))),
        ("fell_at_s", Seconds, run.fell_at_s.map(Real)),
        ("recovery_s", Seconds, run.recovery_s.map(Real)),
        ("success_ratio", Ratio, Some(Real(run.success_ratio))),
        ("served_in_the_end_ratio", Ratio, Some(Real(run.served_in_the_end_ratio))),
        ("latency_p50_s", Seconds, run.latency_p50_s.map(Real)),
        ("latency_p99_s", Seconds, run.latency_p99_s.map(Real)),
        ("success_ratio_during_fault", Ratio, Some(Real(run.success_ratio_during_fault))),
        ("final_success_ratio", Ratio, Some(Real(run.final_success_ratio))),
        ("amplification", Number, Some(Real(run.amplification))),
    ]
    .map(|(key, quantity, value)| (key.to_owned(), quantity, value))
    .into();
    for (service, of) in document.system.services.iter().zip(&run.services) {
        let figures = [
            ("throughput", Number, Real(of.throughput)),
            ("goodput", Number, Real(of.goodput)),
            ("wasted_ratio", Ratio, Real(of.wasted_ratio)),
            ("refused", Count, Integer(of.refused)),
            ("dropped", Count, Integer(of.dropped)),
            ("peak", Count, Integer(of.peak.into())),
        ];
        let figures = figures.map(|(key, quantity, value)| (format!("{}.{key}", service.name), quantity, Some(value)));
        all.extend(figures);
    }
    for (edge, of) in document.system.edges.iter().zip(&run.edges) {
        let figures = [
            ("attempts_per_request", Number, Real(of.attempts_per_request)),
            ("attempts_per_request_during_fault", Number, Real(of.attempts_per_request_during_fault)),
            ("timed_out", Count, Integer(of.timed_out)),
            ("cached", Count, Integer(of.cached)),
        ];
        let name = format!("{}/{}", edge.from, edge.to);
        all.extend(figures.map(|(key, quantity, value)| (format!("{name}.{key}"), quantity, Some(value))));
    }
    all
}

/// Returns the mean of a figure over the runs; `None` if it does not exist for at least one of them.
pub(super) fn mean<T>(runs: &[RunEntry], of: impl Fn(&RunEntry) -> T) -> Option<f64>
where
    T: Into<Option<f64>>,
{
    let sum: Option<f64> = runs.iter().map(|run| of(run).into()).sum();
    if runs.is_empty() { None } else { Some(sum? / runs.len() as f64) }
}

fn edges(document: &Document) -> Table {
    let (runs, has_cache) =
        (&document.runs, document.runs.iter().any(|run| run.edges.iter().any(|edge| edge.cached > 0)));
    let number = |value| or_dash(value, |value| format!("{value:.2}"));
    let rows = document.system.edges.iter().enumerate().map(|(nth, edge)| {
        let mut row = vec![
            format!("{} → {}", edge.from, edge.to),
            number(mean(runs, |run| run.edges[nth].attempts_per_request)),
            number(mean(runs, |run| run.edges[nth].attempts_per_request_during_fault)),
            match edge.worst_attempts_per_request {
                Some(most) => most.to_string(),
                None => "no limit".to_owned(),
            },
            count(mean(runs, |run| run.edges[nth].timed_out as f64)),
        ];
        if has_cache {
            row.push(count(mean(runs, |run| run.edges[nth].cached as f64)));
        }
        row
    });
    let mut heads = vec![
        ("edge", false),
        ("attempts per request", false),
        ("during trigger", true),
        ("at most", true),
        ("timed out", true),
    ];
    if has_cache {
        heads.push(("from cache", true));
    }
    Table { title: String::new(), heads, rows: rows.collect(), best: None }
}

fn services(document: &Document) -> Table {
    let runs = &document.runs;
    let rows = document.system.services.iter().enumerate().map(|(nth, service)| {
        let rate = |value| or_dash(value, |value| format!("{value:.1}"));
        vec![
            service.name.clone(),
            format!("{:.0}%", 100.0 * service.load / service.capacity),
            rate(mean(runs, |run| run.services[nth].goodput)),
            or_dash(mean(runs, |run| run.services[nth].wasted_ratio), share),
            count(mean(runs, |run| f64::from(run.services[nth].peak))),
            count(mean(runs, |run| run.services[nth].refused as f64)),
            count(mean(runs, |run| run.services[nth].dropped as f64)),
        ]
    });
    let heads = vec![
        ("service", false),
        ("load", true),
        ("goodput per s", false),
        ("wasted work", false),
        ("longest queue", true),
        ("refused", true),
        ("dropped", true),
    ];
    Table { title: String::new(), heads, rows: rows.collect(), best: None }
}

fn count(value: Option<f64>) -> String {
    or_dash(value, |value| Unit::Count.label(value.round()))
}

/// Returns a value as text, or a dash if it does not exist.
fn or_dash(value: Option<f64>, text: impl FnOnce(f64) -> String) -> String {
    match value {
        Some(value) => text(value),
        None => "-".to_owned(),
    }
}

/// Describes the system in one line.
fn describe(document: &Document) -> String {
    let system = &document.system;
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text = format!(
        "{}: {} requests/s, {}, {}",
        document.file,
        Unit::Count.label(system.rate),
        count(system.services.len(), "service"),
        count(system.edges.len(), "edge"),
    );
    for trigger in &system.triggers {
        text.push_str(&format!("; {trigger}"));
    }
    if system.triggers.is_empty() {
        text.push_str("; no trigger");
    }
    format!("{text}; horizon {}", seconds(system.horizon_s))
}

/// Says what became of the system, and what its retries cost.
fn conclusions(document: &Document) -> Vec<String> {
    let runs = &document.runs;
    let of = |verdict| runs.iter().filter(|run| run.verdict == verdict).count();
    let counts = VerdictKind::ALL.map(|verdict| (verdict, of(verdict)));
    let words = counts.into_iter().filter(|(_, count)| *count > 0).map(|(verdict, count)| {
        let words = match verdict {
            VerdictKind::NeverFell => "never fell",
            VerdictKind::Recovered => "recovered",
            VerdictKind::Relapsed => "relapsed",
            VerdictKind::StillDown => "still down",
            _ => "not decided",
        };
        if runs.len() == 1 { words.to_owned() } else { format!("{words} with {count} of {} seeds", runs.len()) }
    });
    let mut out = vec![format!("verdict: {}", words.collect::<Vec<_>>().join(", "))];
    let down = runs.iter().filter(|run| run.metastable == Some(true)).count();
    if let [run] = &runs[..] {
        match (run.verdict, run.recovery_s, run.fell_at_s) {
            (VerdictKind::Recovered, Some(after), _) => out[0] += &format!(", {} after the trigger", seconds(after)),
            (VerdictKind::StillDown, _, Some(at)) => {
                out[0] += &format!(" at {}, since {}", seconds(run.horizon_s), seconds(at));
            }
            _ => {}
        }
        if run.verdict == VerdictKind::Relapsed {
            let state = if run.metastable == Some(true) { "down" } else { "up" };
            out[0] += &format!(", and {state} at {}", seconds(run.horizon_s));
        }
    } else if down == 0
        && of(VerdictKind::NeverFell) == 0
        && let Some(after) = mean(runs, |run| run.recovery_s)
    {
        out[0] += &format!(", {} after the trigger on average", seconds(after));
    }
    out.extend(longer_runs(document));
    let ratio = |of: fn(&RunEntry) -> f64| share(mean(runs, of).unwrap_or(0.0));
    out.push(format!(
        "served: {} of the requests from the start of the trigger, {} at the end; {} of all in the end",
        ratio(|run| run.success_ratio),
        ratio(|run| run.final_success_ratio),
        ratio(|run| run.served_in_the_end_ratio),
    ));
    let latencies = [mean(runs, |run| run.latency_p50_s), mean(runs, |run| run.latency_p99_s)];
    if let [Some(half), Some(most)] = latencies {
        out.push(format!(
            "those served took {} in half of the cases, and {} at the 99th percentile",
            seconds(half),
            seconds(most)
        ));
    }
    let overloaded = document.system.services.iter().find(|service| service.load > service.capacity);
    if let Some(ServiceEntry { name, load, capacity, .. }) = overloaded {
        out.push(format!(
            "when all is well, {name} receives {load:.1} attempts/s and can serve {capacity:.1}: no policy helps"
        ));
    }
    if runs.iter().any(|run| run.down_before_fault) {
        let count = runs.iter().filter(|run| run.down_before_fault).count();
        let why = match overloaded {
            Some(_) => "the load exceeds the capacity",
            None => "random variation overloads the system",
        };
        out.push(format!("{count} of {} runs were down before the trigger: {why}", runs.len()));
    }
    if down > 0 {
        out.push(sustained(document));
    }
    out.extend(document.search.iter().flat_map(SearchEntry::sentences));
    out
}

/// Says which runs went on after the horizon, and what became of those that are not decided.
fn longer_runs(document: &Document) -> Vec<String> {
    let (runs, horizon) = (&document.runs, document.system.horizon_s);
    let longest = runs.iter().map(|run| run.horizon_s).fold(0.0, f64::max);
    let mut out = Vec::new();
    if longest > horizon {
        let count = runs.iter().filter(|run| run.horizon_s > horizon).count();
        out.push(match &runs[..] {
            [_] => format!("the run went on from {} to {}, to decide", seconds(horizon), seconds(longest)),
            _ => format!(
                "{count} of {} runs went on from {}, up to {}, to decide",
                runs.len(),
                seconds(horizon),
                seconds(longest)
            ),
        });
    }
    let open: Vec<_> = runs.iter().filter(|run| run.verdict == VerdictKind::NotDecided).collect();
    if !open.is_empty() {
        out.push(format!(
            "not decided: {} of {} runs still change after {}, the longest time that a run goes on; raise `horizon`",
            open.len(),
            runs.len(),
            seconds(longest)
        ));
    }
    out
}

/// Says what keeps the system down: the edge with most attempts, and the service that wastes most of its work.
fn sustained(document: &Document) -> String {
    let (system, runs) = (&document.system, &document.runs);
    let attempts = |nth: usize| mean(runs, |run| run.edges[nth].attempts_per_request).unwrap_or(0.0);
    let wasted = |nth: usize| mean(runs, |run| run.services[nth].wasted_ratio).unwrap_or(0.0);
    let edge = (0..system.edges.len()).max_by(|a, b| attempts(*a).total_cmp(&attempts(*b)));
    let service = (0..system.services.len()).max_by(|a, b| wasted(*a).total_cmp(&wasted(*b)));
    // A file without an edge or a service is not read.
    let (Some(edge), Some(service)) = (edge, service) else { return String::new() };
    let EdgeEntry { from, to, .. } = &system.edges[edge];
    let (attempts, wasted, name) = (attempts(edge), share(wasted(service)), &system.services[service].name);
    format!(
        "what keeps it down: {attempts:.1} attempts per request from {from} to {to}; {wasted} of the work of {name} is \
         for callers that have given up or fail"
    )
}

/// Names the seeds.
fn seeds(document: &Document) -> String {
    match &document.runs[..] {
        [] => String::new(),
        [run] => format!("seed {}", run.seed),
        [first, .., last] => format!("means of {} runs, seeds {} to {}", document.runs.len(), first.seed, last.seed),
    }
}
