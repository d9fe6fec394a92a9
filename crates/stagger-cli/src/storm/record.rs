use serde_json::Value;
use stagger_sim::storm::{Scene, Storm};

use super::measure::{Measure, Place, measures};
use crate::error::CliError;

/// The figures of a storm, by name.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    pub(crate) measures: &'static [Measure],
    pub(crate) rows: Vec<Record>,
}

/// A strategy, and its runs as they stand in the JSON.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) guards: Option<String>,
    pub(crate) runs: Vec<Value>,
}

/// A figure of a strategy, the mean of its seeds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// `None` if it never came to be, with one seed at least.
    pub(crate) value: Option<f64>,
    pub(crate) text: String,
    /// No other strategy has a better one, and one has a worse one.
    pub(crate) is_best: bool,
}

impl crate::plot::Cell for Cell {
    fn text(&self) -> &str {
        &self.text
    }

    fn is_highlighted(&self) -> bool {
        self.is_best
    }
}

impl Records {
    /// # Errors
    /// It cannot be written as JSON.
    pub(crate) fn of(storm: &Storm) -> Result<Self, CliError> {
        let row = |strategy: &stagger_sim::storm::Strategy| {
            let runs = strategy.runs.iter().map(serde_json::to_value).collect::<Result<_, _>>();
            let runs = runs.map_err(|error| CliError::io("cannot write JSON", error))?;
            Ok(Record {
                name: strategy.name.clone(),
                policy: strategy.policy.clone(),
                guards: strategy.guards.clone(),
                runs,
            })
        };
        let rows = storm.strategies.iter().map(row).collect::<Result<_, CliError>>()?;
        Ok(Self { measures: measures(&storm.scenario), rows })
    }

    /// The policies, each with its name and its guards; rows that differ in nothing else are one.
    pub(crate) fn policies(&self) -> Vec<(&str, &str, Option<&str>)> {
        let mut policies: Vec<(&str, &str, Option<&str>)> = Vec::new();
        for row in &self.rows {
            let guards = row.guards.as_deref();
            let family = |name: &'_ str| name.rsplit_once(", ").map(|(family, _)| family.len());
            let last = policies.last_mut().filter(|(_, policy, guarded)| *policy == row.policy && *guarded == guards);
            match (last, family(&row.name)) {
                (Some((name, ..)), Some(end)) if family(name) == Some(end) && name[..end] == row.name[..end] => {
                    *name = &name[..end];
                }
                _ => policies.push((&row.name, &row.policy, guards)),
            }
        }
        policies
    }

    /// The rows that assertions are about: of a storm that was really made, not what is simulated beside it.
    pub(crate) fn asserted(&self) -> Self {
        let is_made = |row: &&Record| row.runs.iter().any(|run| !run["measured"].is_null());
        let made: Vec<Record> = self.rows.iter().filter(is_made).cloned().collect();
        Self { measures: self.measures, rows: if made.is_empty() { self.rows.clone() } else { made } }
    }

    /// The measures that a table for people has.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &'static Measure> {
        self.measures.iter().filter(|measure| measure.place != Place::Files)
    }

    /// A measure of every strategy.
    pub(crate) fn column(&self, measure: &Measure) -> Vec<Cell> {
        let values: Vec<Option<f64>> = self.rows.iter().map(|row| row.mean(measure)).collect();
        let is_best = |value: Option<f64>| {
            !values.iter().any(|other| measure.is_better(*other, value))
                && values.iter().any(|other| measure.is_better(value, *other))
        };
        let cell = |&value: &Option<f64>| Cell { value, text: measure.show(value), is_best: is_best(value) };
        values.iter().map(cell).collect()
    }

    /// The rows of a table: the strategy's name, and a cell for each of these measures.
    pub(crate) fn table<'a>(&self, shown: impl Iterator<Item = &'a Measure>) -> Vec<(&str, Vec<Cell>)> {
        let mut rows: Vec<(&str, Vec<Cell>)> = self.rows.iter().map(|row| (&*row.name, Vec::new())).collect();
        for measure in shown {
            for ((_, cells), cell) in rows.iter_mut().zip(self.column(measure)) {
                cells.push(cell);
            }
        }
        rows
    }
}

impl Record {
    fn mean(&self, measure: &Measure) -> Option<f64> {
        let values: Option<Vec<f64>> = self.runs.iter().map(|run| measure.read(run)).collect();
        values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// What was simulated, in a line.
pub(crate) fn described(scene: &Scene) -> String {
    use crate::plot::Unit::{Count, Seconds};
    let (count, time) = (|n: f64| Count.label(n), |s: f64| Seconds.label(s));
    let herd = |kind: &str, scene: &stagger_sim::storm::ReconnectScene| {
        let mut text = format!(
            "{kind}: {} clients lose their connection within {}; the server takes {}/s, {} may wait, messages take {} to {}",
            count(scene.clients as f64),
            time(scene.hits_within_s),
            count(scene.rate),
            count(f64::from(scene.backlog)),
            time(scene.one_way_min_s),
            time(scene.one_way_max_s),
        );
        if scene.down_for_s > 0.0 {
            text.push_str(&format!(", and it is down for {}", time(scene.down_for_s)));
        }
        match (scene.hints, scene.hint_s) {
            (_, Some(hint)) => text.push_str(&format!("; it says \"not before {}\"", time(hint))),
            (stagger_sim::storm::Hints::Slots, _) => text.push_str("; it gives slots"),
            (stagger_sim::storm::Hints::Appointments, _) => text.push_str("; it gives appointments"),
            _ => {}
        }
        text
    };
    match scene {
        Scene::Reconnect(scene) => herd("reconnect", scene),
        Scene::Fluid(scene) => herd("fluid", scene),
        Scene::Outage(scene) => format!(
            "outage: {} requests/s from {} processes; the server does {}/s, {} may wait, and from {} on it {} for {}; clients wait {}",
            count(scene.rate),
            count(f64::from(scene.processes)),
            count(scene.capacity),
            count(f64::from(scene.queue)),
            time(scene.begins_s),
            match scene.outage {
                stagger_sim::storm::Outage::Reject => "turns everyone away",
                _ => "stands still",
            },
            time(scene.lasts_s),
            time(scene.timeout_s),
        ),
        Scene::Occ(scene) => format!(
            "occ: {} clients write one row; messages take {}, give or take {}",
            count(scene.clients as f64),
            time(scene.one_way_mean_s),
            time(scene.one_way_deviation_s),
        ),
        _ => String::new(),
    }
}
