//! The report of an outage.

use stagger_report::report::{self, Metric, Named, Part, Report, Row, Run, seconds};
use stagger_report::storm::{unreliable, verdict_on};
use stagger_sim::storm::{Importance, MetricValue, Quantity, VerdictKind};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::to_json;
use stagger_terminal::plot::Unit;

use super::charts::charts;
use super::document::{Compared, Document, Figures, PolicyEntry};

/// A figure, with its heading in tables, its quantity and its importance.
type Column = (&'static str, &'static str, Quantity, Importance);

const COLUMNS: [Column; 8] = [
    ("verdict", "verdict", Quantity::Verdict, Importance::Detail),
    ("success_ratio", "success", Quantity::Ratio, Importance::Primary),
    ("success_ratio_during_fault", "during fault", Quantity::Ratio, Importance::Secondary),
    ("attempts_per_request", "attempts per request", Quantity::Number, Importance::Primary),
    ("longest_queue", "longest queue", Quantity::Count, Importance::Primary),
    ("refused", "refused", Quantity::Count, Importance::Secondary),
    ("timed_out", "timed out", Quantity::Count, Importance::Secondary),
    ("recovery_s", "recovered after", Quantity::Seconds, Importance::Primary),
];

/// Returns the metrics, which do not depend on the run: those of [`COLUMNS`], and whether the simulation agrees.
pub(super) fn metrics() -> Vec<Metric> {
    let columns = COLUMNS.map(|(key, heading, quantity, importance)| {
        let heading = heading.to_owned();
        Metric { heading, importance, ..Metric::detail(key, quantity) }
    });
    columns.into_iter().chain([Metric::detail("agrees", Quantity::Bool)]).collect()
}

/// Returns the report.
pub(super) fn report(document: &Document) -> Result<Report, CliError> {
    let policies = document.policies.iter();
    let named = |policy: &PolicyEntry| Named { name: policy.name.clone(), policy: policy.policy.clone(), guards: None };
    let mut charts = charts(document).into_iter().map(Part::Chart);
    let mut parts: Vec<Part> = [Part::Scenario].into_iter().chain(charts.next()).collect();
    parts.extend([
        Part::Figures,
        Part::Policies("Policies", policies.clone().map(named).collect()),
        Part::Answer,
        Part::Notes("How it was measured", policies.clone().map(machine).collect()),
    ]);
    parts.extend(charts);
    let doubtful = policies.filter(|policy| !policy.machine.warnings.is_empty());
    Ok(Report {
        heading: "Outage, measured and simulated",
        scenario: describe(document),
        seeds: String::new(),
        answer: answer(document),
        warnings: doubtful.map(|policy| unreliable(&[&policy.name], &policy.machine.warnings)).collect(),
        figures: figures(document),
        parts,
        document: to_json(document)?,
    })
}

/// Returns the measured and the simulated figures of each policy. Assertions apply to those measured.
fn figures(document: &Document) -> report::Figures {
    let row = |policy: &PolicyEntry, kind: &str, figures: &Figures, agrees: Option<bool>| {
        let values = vec![
            Some(MetricValue::Verdict(figures.verdict)),
            Some(MetricValue::Real(figures.success_ratio)),
            Some(MetricValue::Real(figures.success_ratio_during_fault)),
            Some(MetricValue::Real(figures.attempts_per_request)),
            Some(MetricValue::Integer(figures.longest_queue.into())),
            Some(MetricValue::Integer(figures.refused)),
            Some(MetricValue::Integer(figures.timed_out)),
            figures.recovery_s.map(MetricValue::Real),
            agrees.map(MetricValue::Bool),
        ];
        let name = format!("{}, {kind}", policy.name);
        let run = Run {
            labels: vec![policy.name.clone(), kind.to_owned()],
            whose: format!("for {name}"),
            values,
            absent: if figures.verdict == VerdictKind::NeverFell { Some("never fell") } else { None },
        };
        Row { name, is_asserted: kind == "measured", runs: vec![run], ..Row::default() }
    };
    let rows = document.policies.iter().flat_map(|policy| {
        let simulated = row(policy, "simulated", &policy.simulated, None);
        [row(policy, "measured", &policy.measured, policy.agrees), simulated]
    });
    report::Figures { metrics: metrics(), rows: rows.collect(), labels: &["policy", "kind"], curve: "" }
}

/// Describes the scenario.
fn describe(document: &Document) -> String {
    let scenario = &document.scenario;
    let fault = match scenario.slow {
        Some(slow) => format!("{slow}x service time"),
        None => "stall".to_owned(),
    };
    format!(
        "outage: {}/s at equal intervals to {} with a service time of {} ({}/s), backlog {}, timeout {}, {fault} from \
         {} to {}, horizon {}",
        Unit::Count.label(scenario.rate),
        if scenario.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", scenario.workers) },
        Unit::Seconds.label(scenario.service_s),
        Unit::Count.label((10.0 * scenario.capacity()).round() / 10.0),
        Unit::Count.label(f64::from(scenario.backlog)),
        Unit::Seconds.label(scenario.timeout_s),
        Unit::Seconds.label(scenario.fault_start_s),
        Unit::Seconds.label(scenario.fault_end_s),
        Unit::Seconds.label(scenario.horizon_s)
    )
}

/// Returns how each policy came through the fault, as measured, and then a sentence on each policy's agreement.
fn answer(document: &Document) -> Vec<String> {
    let outcome = |PolicyEntry { name, measured, .. }: &PolicyEntry| match (measured.verdict, measured.recovery_s) {
        (VerdictKind::NeverFell, _) => format!("{name}: never fell"),
        (_, Some(after)) => format!("{name}: recovered {} after the fault", Unit::Seconds.label(after)),
        (_, None) => format!("{name}: still down at the horizon"),
    };
    let outcomes: Vec<String> = document.policies.iter().map(outcome).collect();
    [outcomes.join("; ")].into_iter().chain(document.policies.iter().map(agreement)).collect()
}

fn agreement(policy: &PolicyEntry) -> String {
    let name = &policy.name;
    let figure = |compared: &Compared| {
        let column = COLUMNS.iter().find(|(key, ..)| *key == compared.figure);
        let heading = column.map_or(compared.figure, |(_, heading, ..)| heading);
        let text = |value: f64| match compared.figure {
            "longest_queue" => Unit::Count.label(value.round()),
            "attempts_per_request" => format!("{value:.2}"),
            _ => format!("{:.1}%", 100.0 * value),
        };
        format!("{heading} {} measured, {} simulated", text(compared.measured), text(compared.simulated))
    };
    let (verdict, by_differences) = verdict_on(policy.agrees);
    let figures = policy.comparison.iter().filter(|compared| !by_differences || !compared.agrees).map(figure);
    format!("{name}: {verdict}: {}", figures.collect::<Vec<_>>().join("; "))
}

fn machine(policy: &PolicyEntry) -> String {
    let machine = &policy.machine;
    let cpu = match (machine.peak_cpu_ratio, machine.peak_client_processors, machine.peak_server_processors) {
        (Some(all), Some(clients), Some(server)) => format!(
            "; in the busiest second the clients used {:.0}% of a processor, the server {:.0}%, and all programs \
             {:.0}% of the machine",
            100.0 * clients,
            100.0 * server,
            100.0 * all
        ),
        _ => String::new(),
    };
    format!(
        "{}, measured: one-way latency {} to {}; timers of the clients up to {} late, of the server up to {}{cpu}",
        policy.name,
        seconds(machine.one_way_min_s),
        seconds(machine.one_way_max_s),
        seconds(machine.max_timer_delay_s),
        seconds(machine.max_server_timer_delay_s)
    )
}
