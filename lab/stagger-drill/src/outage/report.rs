//! The report of an outage as text, Markdown and CSV.

use stagger_report::metric::{Metric, VerdictEntry, seconds};
use stagger_report::storm::{csv_text, markdown_text, unreliable, verdict_on};
use stagger_terminal::output::error::CliError;
use stagger_terminal::plot::{Cell, Column, RenderOptions, Unit, paragraph, table};

use super::document::{Compared, Document, Figures, PolicyEntry};

/// The columns of the table, each with the key of its figure. The last are left out of a narrow one.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("success", "success_ratio", true),
    ("during fault", "success_ratio_during_fault", false),
    ("attempts per request", "attempts_per_request", true),
    ("longest queue", "longest_queue", true),
    ("refused", "refused", false),
    ("timed out", "timed_out", false),
    ("recovered after", "recovery_s", true),
];

/// Returns the summary for a terminal.
pub(super) fn summary(document: &Document, options: RenderOptions) -> String {
    let mut out = paragraph(&describe(document), "  ", options);
    out.push('\n');
    let columns = [Column::left("")].into_iter().chain(COLUMNS.map(|(heading, _, is_kept)| {
        let column = Column::right(heading);
        if is_kept { column } else { column.optional() }
    }));
    let rows = rows(document).into_iter().map(|row| row.into_iter().map(Cell::from).collect::<Vec<_>>());
    out.push_str(&table(&columns.collect::<Vec<_>>(), rows, options));
    out.push('\n');
    for policy in &document.policies {
        out.push_str(&paragraph(&format!("{}: {}", policy.name, policy.policy), "  ", options));
    }
    for remark in remarks(document) {
        out.push_str(&paragraph(&remark, "  ", options));
    }
    options.glyphs.transliterate(&out).into_owned()
}

/// Returns the table and the remarks as Markdown.
pub(super) fn markdown(document: &Document) -> String {
    let heads: Vec<_> = COLUMNS.iter().map(|(heading, ..)| *heading).collect();
    let mut out =
        format!("{}\n\n| | {} |\n|---|{}\n", markdown_text(&describe(document)), heads.join(" | "), "--:|".repeat(7));
    for row in rows(document) {
        out.push_str(&format!("| {} |\n", row.iter().map(|cell| markdown_text(cell)).collect::<Vec<_>>().join(" | ")));
    }
    out.push('\n');
    out.extend(remarks(document).iter().map(|remark| format!("- {}\n", markdown_text(remark))));
    out
}

/// Returns the figures as CSV, two rows per policy.
pub(super) fn csv(document: &Document) -> Result<Vec<u8>, CliError> {
    let mut rows = Vec::new();
    for (name, kind, figures) in sides(document) {
        let metrics = figures.metrics();
        if rows.is_empty() {
            let heads = ["policy", "kind"].map(str::to_owned).into_iter();
            rows.push(heads.chain(metrics.iter().map(|metric| metric.key.clone())).collect::<Vec<_>>());
        }
        let value = |metric: &Metric| match metric.value {
            Some(_) if metric.key == "verdict" => metric.text(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        rows.push([name.to_owned(), kind.to_owned()].into_iter().chain(metrics.iter().map(value)).collect());
    }
    csv_text(rows)
}

/// Returns the time series as CSV, one row per 100 ms.
pub(super) fn csv_series(document: &Document) -> Result<Vec<u8>, CliError> {
    let mut rows = vec![["policy", "kind", "t_s", "requests", "attempts", "served"].map(str::to_owned).to_vec()];
    for (name, kind, figures) in sides(document) {
        let bins = figures.requests.len().max(figures.attempts.len()).max(figures.served.len());
        for bin in 0..bins {
            let at = |series: &[u32]| series.get(bin).copied().unwrap_or(0).to_string();
            let counts = [&figures.requests, &figures.attempts, &figures.served].map(|series| at(series));
            let time = format!("{:.1}", bin as f64 * 0.1);
            rows.push([name.to_owned(), kind.to_owned(), time].into_iter().chain(counts).collect());
        }
    }
    csv_text(rows)
}

/// Returns the measured and the simulated figures of each policy.
fn sides(document: &Document) -> impl Iterator<Item = (&str, &'static str, &Figures)> {
    document.policies.iter().flat_map(|policy| {
        [(&*policy.name, "measured", &policy.measured), (&*policy.name, "simulated", &policy.simulated)]
    })
}

/// Returns the rows of the table, each beginning with its name.
pub(super) fn rows(document: &Document) -> Vec<Vec<String>> {
    let row = |(name, kind, figures): (&str, &str, &Figures)| {
        let metrics = figures.metrics();
        let cell = |key: &str| match figures.verdict {
            VerdictEntry::NeverFell if key == "recovery_s" => "never fell".to_owned(),
            _ => metrics.iter().find(|metric| metric.key == key).map_or("-".to_owned(), Metric::text),
        };
        [format!("{name}, {kind}")].into_iter().chain(COLUMNS.map(|(_, key, _)| cell(key))).collect()
    };
    sides(document).map(row).collect()
}

/// Returns the headings of the table.
pub(super) fn heads() -> impl Iterator<Item = &'static str> {
    [""].into_iter().chain(COLUMNS.map(|(heading, ..)| heading))
}

/// Describes the scenario.
pub(super) fn describe(document: &Document) -> String {
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

/// Returns a sentence on each policy's agreement, and one on the machine.
pub(super) fn remarks(document: &Document) -> Vec<String> {
    document.policies.iter().map(agreement).chain(machines(document)).collect()
}

/// Returns how each policy came through the fault, as measured, and then a sentence on each policy's agreement.
pub(super) fn answer(document: &Document) -> Vec<String> {
    let outcome = |PolicyEntry { name, measured, .. }: &PolicyEntry| match (measured.verdict, measured.recovery_s) {
        (VerdictEntry::NeverFell, _) => format!("{name}: never fell"),
        (_, Some(after)) => format!("{name}: recovered {} after the fault", Unit::Seconds.label(after)),
        (_, None) => format!("{name}: still down at the horizon"),
    };
    let outcomes: Vec<String> = document.policies.iter().map(outcome).collect();
    [outcomes.join("; ")].into_iter().chain(document.policies.iter().map(agreement)).collect()
}

/// Returns a sentence on the machine for each policy, and one for each whose run is unreliable.
pub(super) fn machines(document: &Document) -> impl Iterator<Item = String> {
    let doubtful = document.policies.iter().filter(|policy| !policy.machine.warnings.is_empty());
    let unreliable = doubtful.map(|policy| unreliable(&[&policy.name], &policy.machine.warnings));
    document.policies.iter().map(machine).chain(unreliable)
}

fn agreement(policy: &PolicyEntry) -> String {
    let name = &policy.name;
    let figure = |compared: &Compared| {
        let heading =
            COLUMNS.iter().find(|(_, key, _)| *key == compared.figure).map_or(compared.figure, |(heading, ..)| heading);
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
