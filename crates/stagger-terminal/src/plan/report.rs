use stagger_core::schedule::Backoff;
use stagger_core::{Jitter, Policy};

use super::forecast::{Client, Forecast, brief, span};
use super::notes::Note;
use super::pictures::{ClientStyle, Quantity, over_retries};
use super::verdict::{Verdict, p_value, percent};
use crate::plot::{Column, RenderOptions, Spacing, paragraph, sparkline, table, terminal};

/// Formats the plan for humans: the policy, the table, the notes and the plot.
pub(super) fn report(
    forecast: &Forecast,
    notes: &[Note],
    clients: &[Client],
    spacing: Spacing,
    options: RenderOptions,
) -> String {
    let mut out = paragraph(&heading(&forecast.policy), "", options);
    if !forecast.rows.is_empty() {
        out.push_str(&figures(forecast, options));
    }
    for note in notes {
        out.push_str(&paragraph(&format!("note: {}", note.text), "      ", options));
    }
    if !forecast.rows.is_empty() {
        out.push('\n');
        let figure = over_retries(Quantity::Delay, forecast, clients, ClientStyle::Marks, spacing);
        out.push_str(&terminal::paint(&figure, options));
    }
    out
}

/// Returns the policy, and what its delays are if their name suggests that they are not drawn.
fn heading(policy: &Policy) -> String {
    match (policy.backoff(), policy.jitter()) {
        (Backoff::Constant { delay }, Jitter::Equal) => {
            let (least, delay) = (brief(*delay / 2), brief(*delay));
            format!("{policy} (each delay is drawn from {least} to {delay}; jitter=none: exactly {delay})")
        }
        (Backoff::List(_), Jitter::Equal) => {
            format!("{policy} (each delay is drawn from half of it to all of it; jitter=none: exactly these delays)")
        }
        _ => policy.to_string(),
    }
}

/// Formats the drawn delays and the verdict on them.
pub(super) fn sample(verdict: &Verdict, seed: u64, clients: usize, options: RenderOptions) -> String {
    let mut out = format!("\nDelays of {clients} clients, seed {seed}\n");
    let mut rows: Vec<Vec<String>> = Vec::new();
    for check in &verdict.checks {
        let mut row = vec![check.retry.to_string(), span(check.min, check.max), span(check.drawn_min, check.drawn_max)];
        if let Some(fit) = &check.fit {
            let reach = format!("{}–{}", percent(fit.reach.0), percent(fit.reach.1));
            row.extend([reach, sparkline(&fit.decile_counts(), options.glyphs), p_value(fit.p_value)]);
        } else {
            row.resize(SAMPLE.len(), String::new());
        }
        rows.push(row);
    }
    if !rows.is_empty() {
        out.push_str(&table(&SAMPLE, rows, options));
    }
    out.push_str(&paragraph(&format!("verdict: {}", verdict.text), "         ", options));
    out
}

const FIGURES: [Column<'static>; 6] = [
    Column::right("retry"),
    Column::left("delay"),
    Column::right("mean").optional(),
    Column::right("elapsed: p50"),
    Column::right("p99"),
    Column::right("max"),
];

/// The optional columns repeat what is in the first table, or in `reach` as shares.
const SAMPLE: [Column<'static>; 6] = [
    Column::right("retry"),
    Column::left("interval").optional(),
    Column::left("drawn").optional(),
    Column::left("reach"),
    Column::left("deciles"),
    Column::right("KS p"),
];

fn figures(forecast: &Forecast, options: RenderOptions) -> String {
    let row = |row: &super::forecast::Row| {
        vec![
            row.retry.to_string(),
            span(row.delay.min, row.delay.max),
            brief(row.delay.mean),
            brief(row.elapsed.p50),
            brief(row.elapsed.p99),
            brief(row.elapsed.max),
        ]
    };
    table(&FIGURES, forecast.rows.iter().map(row), options)
}

#[cfg(test)]
mod tests {
    use stagger_core::Seed;

    use super::*;
    use crate::plan::forecast::draw;
    use crate::plan::notes::notes;
    use crate::plot::Glyphs;

    const OPTIONS: RenderOptions = RenderOptions { columns: 80, glyphs: Glyphs::Unicode, color: false };

    fn text(policy: &str, options: RenderOptions) -> String {
        let forecast = Forecast::new(policy.parse().unwrap(), None);
        let clients = draw(&forecast.policy, Seed::new(1), 200, forecast.rows.len());
        let verdict = Verdict::new(&forecast, &clients);
        let text = report(&forecast, &notes(&forecast), &clients[..3], Spacing::Linear, options);
        text + &sample(&verdict, 1, clients.len(), options)
    }

    #[test]
    fn the_table_has_a_row_for_each_retry() {
        let text = text("exponential base=1s cap=30s max-attempts=6", OPTIONS);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "exponential base=1s cap=30s multiplier=2 jitter=full max-attempts=6",
                "retry   delay    mean   elapsed: p50     p99   max",
                "    1   0–1s    500ms          500ms   990ms    1s",
            ]
        );
        // The library computes p50 and p99 of a sum on a grid; the maximum is exact.
        assert!(lines[6].starts_with("    5   0–16s      8s"), "{}", lines[6]);
        assert!(lines[6].ends_with("31s"), "{}", lines[6]);
    }

    #[test]
    fn a_constant_or_a_list_with_jitter_says_what_is_drawn_before_anything_else() {
        let options = RenderOptions { columns: 1000, ..OPTIONS };
        for (policy, want) in [
            ("constant base=5s", " (each delay is drawn from 2.5s to 5s; jitter=none: exactly 5s)"),
            (
                "list delays=1s,2s",
                " (each delay is drawn from half of it to all of it; jitter=none: exactly these delays)",
            ),
            ("constant base=5s jitter=none", " max-attempts=4"),
            ("exponential base=5s jitter=equal", " max-attempts=4"),
        ] {
            let text = text(policy, options);
            let first = text.lines().next().unwrap();
            assert!(first.ends_with(want), "{policy}: {first}");
        }
    }

    #[test]
    fn a_sample_ends_with_the_verdict() {
        for (policy, want) in [
            ("exponential base=1s cap=30s", "verdict: yes: "),
            ("exponential base=1s cap=30s jitter=none", "verdict: no: "),
            ("stop", "verdict: the policy does not retry"),
        ] {
            let text = text(policy, RenderOptions { columns: 1000, ..OPTIONS });
            let last = text.lines().last().unwrap();
            assert!(last.starts_with(want), "{last}");
        }
    }

    #[test]
    fn a_policy_without_retries_has_neither_table_nor_plot() {
        let text = text("stop", OPTIONS);
        assert!(!text.contains("retry  "), "{text}");
        assert!(!text.contains('┤'), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for jitter in ["full", "none", "±20%"] {
            let policy = format!("exponential base=1s cap=30s jitter={jitter} max-attempts=9 max-elapsed=20s");
            for columns in [40, 60, 80, 120] {
                for line in text(&policy, RenderOptions { columns, ..OPTIONS }).lines() {
                    assert!(line.chars().count() <= usize::from(columns), "{columns}, {jitter}: {line}");
                }
            }
        }
    }
}
