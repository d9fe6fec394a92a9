use stagger_sim::storm::{RunFigures, StormReport};

use super::common::{ROWS, Shown, by_policy, first_runs, line, of_one_policy};
use crate::page::Chart;
use stagger_terminal::plot::{Axis, Bar, Figure, Point, Shape, Unit};

/// Returns the chart of attempts per client, one figure per policy, all on the same scale.
pub(super) fn chart(storm: &StormReport) -> Option<Chart> {
    let counts: Vec<(usize, &str, Vec<f64>)> = first_runs(storm)
        .filter_map(|(nth, name, figures)| match figures {
            RunFigures::Reconnect(figures) => {
                let share = |count: &u64| *count as f64 / figures.clients as f64;
                Some((nth, name, figures.clients_by_attempts.iter().map(share).collect()))
            }
            _ => None,
        })
        .collect();
    // Servers that cannot tell clients apart know nothing of it.
    let max_attempts = counts.iter().map(|(_, _, shares)| shares.len()).max().filter(|max| *max > 0)?;
    let highest = counts.iter().flat_map(|(_, _, shares)| shares).copied().fold(0.0, f64::max);
    let bars = |shares: &Vec<f64>| {
        let bar = |(attempts, height): (usize, &f64)| Bar {
            left: attempts as f64 - 0.5,
            right: attempts as f64 + 0.5,
            height: *height,
        };
        Shape::Bars(shares.iter().enumerate().skip(1).map(bar).collect())
    };
    // Over the bars of what was measured, a point where the simulation has the end of its bar.
    let tops = |shares: &Vec<f64>| {
        let top = |(attempts, &y): (usize, &f64)| Point { x: attempts as f64, y };
        Shape::Points(shares.iter().enumerate().skip(1).map(top).collect())
    };
    let figure = |shown: &Shown<'_, Vec<f64>>| Figure {
        title: shown.subject.name.to_owned(),
        description: format!("Distribution of the attempts per client of {}.", shown.subject.name),
        x: Axis::new("attempts", Unit::Count).including(0.5).including(max_attempts as f64 - 0.5),
        y: Axis::new("share of the clients", Unit::Share).including(highest),
        series: match shown.simulated {
            None => of_one_policy(shown, bars),
            Some(simulated) => vec![line("measured", 0, bars(shown.data)), line("simulated", 1, tops(simulated))],
        },
    };
    let mut heads = vec!["attempts".to_owned()];
    heads.extend(counts.iter().map(|(_, name, _)| format!("share of the clients, {name}")));
    let row = |attempts: usize| {
        let share = |(_, _, shares): &(usize, &str, Vec<f64>)| {
            // The last row includes all larger numbers.
            let upto = if attempts == ROWS { shares.len() } else { attempts + 1 };
            let share: f64 = shares.get(attempts..upto.min(shares.len())).unwrap_or_default().iter().sum();
            format!("{:.2}%", share * 100.0)
        };
        let head = if attempts == ROWS { format!("{attempts} or more") } else { attempts.to_string() };
        [head].into_iter().chain(counts.iter().map(share)).collect()
    };
    Some(Chart {
        slug: "attempts",
        title: "Attempts per client",
        caption: "Attempts that a client makes until it reconnects or gives up. All charts use the same scale."
            .to_owned(),
        figures: by_policy(storm, &counts).iter().map(figure).collect(),
        logarithmic: Vec::new(),
        heads,
        rows: (1..max_attempts.min(ROWS + 1)).map(row).collect(),
    })
}
