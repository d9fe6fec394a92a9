use stagger_sim::storm::{Scene, Storm};

use super::measure::Place;
use super::observed::{doubtful, observed};
use super::record::{Cell, Records, described};
use super::sampled::{Timeline, sums};
use crate::plot::{Align, Column, Keep, RenderOptions, paragraph, sparkline, table};

/// Characters of a sparkline.
const CELLS: usize = 20;

/// What the last few stragglers do is not worth half of a line.
pub(crate) const NEARLY_ALL: f64 = 0.995;

/// What people read: the scenario, the figures, a line of what arrived when, and what to make of it.
pub(crate) fn summary(storm: &Storm, records: &Records, look: RenderOptions) -> String {
    let mut out = paragraph(&described(&storm.scenario), "  ", look);
    out.push('\n');
    let until = until(storm, NEARLY_ALL);
    let mut columns = vec![Column { heading: "", align: Align::Left, keep: Keep::Always }];
    columns.extend(records.shown().map(|measure| Column {
        heading: measure.heading,
        align: Align::Right,
        keep: if measure.place == Place::Always { Keep::Always } else { Keep::WithRoom },
    }));
    if until > 0.0 {
        columns.push(Column { heading: "arrivals", align: Align::Left, keep: Keep::WithRoom });
    }
    let rows = records.table(records.shown()).into_iter().zip(&storm.strategies).map(|((name, cells), strategy)| {
        let quiet = |text| Cell { value: None, text, is_best: false };
        let mut row = vec![quiet(plain(name))];
        row.extend(cells);
        if let Some(timeline) = strategy.runs.first().and_then(|run| Timeline::of(&run.figures)) {
            row.push(quiet(sparkline(&sums(&timeline.attempts, timeline.bin_s, until, CELLS), look.glyphs)));
        }
        row
    });
    out.push_str(&table(&columns, &rows.collect::<Vec<_>>(), look));
    out.push('\n');
    for (name, policy, guards) in records.policies() {
        let guards = guards.map_or(String::new(), |guards| format!(", guards {guards}"));
        out.push_str(&paragraph(&format!("{}: {policy}{guards}", plain(name)), "  ", look));
    }
    let remarks = [runs(records), verdict(storm, records)].into_iter().flatten();
    let seen = observed(storm).into_iter().chain(doubtful(storm)).map(|remark| plain(&remark));
    for remark in remarks.chain(seen) {
        out.push_str(&paragraph(&remark, "  ", look));
    }
    look.glyphs.transliterate(&out).into_owned()
}

/// Until when this share of the attempts was made, with the strategy for which that is latest; 0 without any.
pub(crate) fn until(storm: &Storm, share: f64) -> f64 {
    let runs = storm.strategies.iter().filter_map(|strategy| strategy.runs.first());
    runs.filter_map(|run| Timeline::of(&run.figures)).map(|timeline| timeline.until(share)).fold(0.0, f64::max)
}

/// Which seeds the figures are of.
pub(crate) fn runs(records: &Records) -> Option<String> {
    let most = records.rows.iter().max_by_key(|row| row.runs.len())?;
    let seeds: Vec<u64> = most.runs.iter().filter_map(|run| run["seed"].as_u64()).collect();
    match seeds[..] {
        [] => None,
        [seed] => Some(format!("seed {seed}")),
        [first, .., last] => Some(format!("means of {} seeds, {first} to {last}", seeds.len())),
    }
}

/// What the figures come to, in a sentence.
pub(crate) fn verdict(storm: &Storm, records: &Records) -> Option<String> {
    let find = |key: &str| records.measures.iter().find(|measure| measure.key == key);
    match &storm.scenario {
        Scene::Reconnect(scene) | Scene::Fluid(scene) => {
            let peak = find("peak_1s")?;
            let records = records.asserted();
            let column = records.column(peak);
            let worst = column
                .iter()
                .zip(&records.rows)
                .max_by(|(one, _), (other, _)| one.value.unwrap_or(0.0).total_cmp(&other.value.unwrap_or(0.0)))?;
            let (cell, row) = worst;
            if cell.value? <= scene.rate {
                return Some("nobody sends more in a second than the server takes".to_owned());
            }
            let spread = crate::plot::Unit::Seconds.label((scene.clients as f64 / scene.rate).ceil());
            Some(format!(
                "{} sends {} in one second, and the server takes {}: with a spread of {spread} or more the first wave is no \
                 faster than that, on average",
                plain(&row.name),
                cell.text,
                crate::plot::Unit::Count.label(scene.rate),
            ))
        }
        Scene::Outage(_) => {
            let column = records.column(find("metastable")?);
            let down = column.iter().zip(&records.rows).filter(|(cell, _)| cell.value > Some(0.0));
            let down: Vec<String> = down.map(|(_, row)| plain(&row.name)).collect();
            Some(if down.is_empty() {
                "the outage ends for all of them".to_owned()
            } else {
                format!("the outage never ends for {}: retries alone keep the server busy", down.join("; "))
            })
        }
        _ => None,
    }
}

/// A name without what a terminal would obey.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
