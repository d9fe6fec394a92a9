//! The race of two policies: its figures, its answer in words, and its clients one by one.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use stagger_sim::Progress;
use stagger_sim::reconnect::ReconnectFigures;
use stagger_sim::storm::{Better, Importance, Metric, Quantity, ReconnectReport, RunFigures, StormReport};
use stagger_terminal::plot::Unit;

use super::limits::{Jobs, MAX_BINS, MAX_DOTS, MAX_SHOWN_ATTEMPTS, Place, Work};
use super::question::{Question, RaceQuestion};
use super::reply::{Events, Failure, Gone, answer_with_events};
use crate::simulate::Race;

/// Number of clients in one event.
const CHUNK: usize = 500;

/// Answers with the figures of all policies, and then with what the clients of each do.
pub(super) async fn answer(
    State(jobs): State<Arc<Jobs>>,
    Question(question): Question<RaceQuestion>,
) -> Result<Response, Failure> {
    let race = Arc::new(question.race()?);
    let place = jobs.admit(Work::Simulation)?;
    Ok(answer_with_events(move |events| send(race, place, events)))
}

/// Runs each simulation twice: once for the figures, and again to record as many clients as the browser can show. Their
/// number follows from the attempts of the first run. One run that records everything would need memory in proportion
/// to the attempts.
async fn send(race: Arc<Race>, place: Place, events: Events) -> Result<Result<(), Failure>, Gone> {
    let progress = Arc::new(Progress::new());
    let shared = Arc::clone(&race);
    let run = place.run(Arc::clone(&progress), move |progress| shared.run(progress));
    let storm = match events.with_progress(&progress, run).await? {
        Ok(Ok(Some(storm))) => storm,
        Ok(Ok(None)) => return Err(Gone),
        Ok(Err(error)) => return Ok(Err(error.into())),
        Err(failure) => return Ok(Err(failure)),
    };
    events.send("figures", &figures(&race, &storm)).await?;
    for (nth, strategy) in storm.strategies.iter().enumerate() {
        let attempts = match strategy.runs.first().map(|run| &run.figures) {
            Some(RunFigures::Reconnect(figures)) => figures.attempts_per_client,
            _ => 1.0,
        };
        let clients = shown(race.scenario().clients(), attempts);
        let shared = Arc::clone(&race);
        let sampled =
            place.run(Arc::new(Progress::new()), move |progress| shared.sampled(nth, clients, progress)).await;
        match sampled {
            Ok(Some(sampled)) => send_clients(nth, clients, &sampled, &events).await?,
            Ok(None) => return Err(Gone),
            Err(failure) => return Ok(Err(failure)),
        }
    }
    Ok(Ok(()))
}

/// Returns the number of clients to show, with so many attempts each.
fn shown(clients: u64, attempts_each: f64) -> u32 {
    let most = (MAX_SHOWN_ATTEMPTS as f64 / attempts_each.max(1.0)).max(1.0) as u64;
    u32::try_from(clients.min(MAX_DOTS).min(most)).unwrap_or(1)
}

/// Sends the clients, each with the times at which it lost its connection, made an attempt, and was connected.
async fn send_clients(nth: usize, clients: u32, figures: &ReconnectFigures, events: &Events) -> Result<(), Gone> {
    let ids: Vec<usize> = (0..clients as usize).collect();
    events.send("clients", &json!({ "policy": nth, "count": clients, "latency": latency(figures) })).await?;
    for chunk in ids.chunks(CHUNK) {
        let times = |all: &[Vec<core::time::Duration>], id: usize| -> Vec<u64> {
            let own = all.get(id).map_or(&[][..], Vec::as_slice);
            own.iter().map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).collect()
        };
        let lists: Vec<[Vec<u64>; 3]> = chunk
            .iter()
            .map(|&id| [&figures.sample_losses, &figures.sample, &figures.sample_connects].map(|all| times(all, id)))
            .collect();
        events.send("events", &json!({ "policy": nth, "clients": lists })).await?;
    }
    Ok(())
}

/// Number of intervals in which the latency is shown.
const LATENCY_INTERVALS: f64 = 200.0;

/// The least length of such an interval, in seconds.
const MIN_LATENCY_BIN_S: f64 = 0.5;

/// Returns how long the handshakes of the shown clients took, from the arrival of the attempt: the median and the 99th
/// percentile of those that ended in each interval; null if none did.
fn latency(figures: &ReconnectFigures) -> Value {
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (connects, arrivals) in figures.sample_connects.iter().zip(&figures.sample) {
        for connect in connects {
            let before = arrivals.partition_point(|arrival| arrival <= connect);
            if let Some(arrival) = before.checked_sub(1).map(|at| arrivals[at]) {
                taken.push((connect.as_secs_f64(), (*connect - arrival).as_secs_f64()));
            }
        }
    }
    let end = taken.iter().map(|(at, _)| *at).fold(0.0, f64::max);
    let bin_s = (end / LATENCY_INTERVALS).max(MIN_LATENCY_BIN_S);
    let mut bins = vec![Vec::new(); (end / bin_s) as usize + 1];
    for (at, length) in taken {
        bins[(at / bin_s) as usize].push(length);
    }
    let quantile = |bin: &mut Vec<f64>, share: f64| {
        bin.sort_by(f64::total_cmp);
        let at = ((bin.len() as f64 * share).ceil() as usize).saturating_sub(1);
        bin.get(at).copied()
    };
    let p50: Vec<_> = bins.iter_mut().map(|bin| quantile(bin, 0.5)).collect();
    let p99: Vec<_> = bins.iter_mut().map(|bin| quantile(bin, 0.99)).collect();
    json!({ "bin_s": bin_s, "p50_s": p50, "p99_s": p99 })
}

/// Returns the figures of all policies, with their curves, and the sentences that answer which is better.
fn figures(race: &Race, storm: &StormReport) -> Value {
    let policies = storm.strategies.iter().map(|strategy| {
        let (mut values, mut curves) = (Value::Null, Value::Null);
        if let Some(run) = strategy.runs.first() {
            (values, curves) = (json!(run.figures), curves_of(&run.figures));
        }
        if let Value::Object(values) = &mut values {
            // The curves follow, and the rest is in the export.
            for series in ["clients_by_attempts", "recovered_percentiles_s", "sample_s", "arrivals", "connects"] {
                values.remove(series);
            }
        }
        json!({
            "name": strategy.name,
            "policy": strategy.policy,
            "figures": values,
            "curves": curves,
        })
    });
    json!({
        "command": race.command(),
        "sentences": sentences(race, storm),
        "scenario": storm.scenario,
        "metrics": storm.scenario.metrics().iter().map(metric).collect::<Vec<_>>(),
        "policies": policies.collect::<Vec<_>>(),
    })
}

fn metric(metric: &Metric) -> Value {
    json!({
        "key": metric.key,
        "heading": metric.heading,
        "quantity": match metric.quantity {
            Quantity::Count => "count",
            Quantity::Seconds => "seconds",
            Quantity::Ratio => "ratio",
            _ => "number",
        },
        "better": match metric.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "neither",
        },
        "is_primary": metric.importance == Importance::Primary,
    })
}

/// Returns arrivals and connections per bin, in at most [`MAX_BINS`] bins.
fn curves_of(figures: &RunFigures) -> Value {
    let RunFigures::Reconnect(figures) = figures else { return Value::Null };
    let longest = figures.arrivals.len().max(figures.connects.len());
    let factor = longest.div_ceil(MAX_BINS).max(1);
    let added = |bins: &[u32]| -> Vec<u64> {
        bins.chunks(factor).map(|chunk| chunk.iter().map(|&count| u64::from(count)).sum()).collect()
    };
    json!({
        "bin_s": figures.bin_s * factor as f64,
        "arrivals": added(&figures.arrivals),
        "connects": added(&figures.connects),
    })
}

/// What the page calls the policies.
const LETTERS: [char; 2] = ['A', 'B'];

/// Share of the clients that are back at `t99_s`.
const MOST: &str = "99 %";

/// Returns the answer, a sentence for each policy: what it does to the server, and when its clients are back.
fn sentences(race: &Race, storm: &StormReport) -> Vec<String> {
    let capacity = race.scenario().rate();
    let of_each = LETTERS.iter().zip(&storm.strategies).filter_map(|(letter, strategy)| {
        match strategy.runs.first().map(|run| &run.figures) {
            Some(RunFigures::Reconnect(figures)) => {
                Some(of_policy(&format!("Policy {letter} ({})", strategy.name), figures, capacity))
            }
            _ => None,
        }
    });
    of_each.collect()
}

fn of_policy(name: &str, figures: &ReconnectReport, capacity: f64) -> String {
    let peak = figures.peak_1s as f64;
    let load = if peak <= capacity {
        format!("never exceeds the capacity: at most {} attempts in a second", Unit::Count.label(peak))
    } else {
        let times = peak / capacity;
        let times = if times < 10.0 { format!("{times:.1}") } else { format!("{times:.0}") };
        format!("sends up to {} attempts in a second, {times} times the capacity", Unit::Count.label(peak))
    };
    let crashes = match figures.crashes {
        0 => String::new(),
        1 => " The server crashes again.".to_owned(),
        times => format!(" The server crashes {times} times more."),
    };
    // Three digits say it.
    let time = |s: f64| Unit::Seconds.label(if s < 100.0 { (s * 10.0).round() / 10.0 } else { s.round() });
    let back = match (figures.t100_s, figures.t99_s) {
        (Some(all), _) => format!("all clients are back after {}", time(all)),
        (None, Some(most)) => format!("{MOST} of the clients are back after {}, some never", time(most)),
        (None, None) => {
            let share = figures.connected as f64 / figures.clients.max(1) as f64;
            format!("only {} of the clients come back", Unit::Share.label(share))
        }
    };
    format!("{name} {load}; {back}.{crashes}")
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use stagger_sim::reconnect::ReconnectFigures;

    use super::*;

    #[test]
    fn the_latency_is_from_the_last_attempt_before_the_connection() {
        let ms = Duration::from_millis;
        let mut figures = ReconnectFigures::default();
        figures.sample = vec![vec![ms(10), ms(100)], vec![ms(200)], vec![ms(50), ms(900), ms(1_100)], vec![ms(5)]];
        // The third client is connected twice, and the last never.
        figures.sample_connects = vec![vec![ms(400)], vec![ms(210)], vec![ms(950), ms(1_600)]];
        let want = json!({ "bin_s": 0.5, "p50_s": [0.01, 0.05, null, 0.5], "p99_s": [0.3, 0.05, null, 0.5] });
        assert_eq!(latency(&figures), want);
        assert_eq!(latency(&ReconnectFigures::default()), json!({ "bin_s": 0.5, "p50_s": [null], "p99_s": [null] }));
    }

    #[test]
    fn long_curves_are_added_up_without_losing_a_count() {
        let RunFigures::Reconnect(mut report) = (&ReconnectFigures::default()).into() else { panic!("a reconnect") };
        report.arrivals = (0..20_001).map(|bin| bin % 7).collect();
        report.connects = vec![1, 2, 3, 4, 5];
        let total: u32 = report.arrivals.iter().sum();
        let curves = curves_of(&RunFigures::Reconnect(report));
        let arrivals: Vec<u64> =
            curves["arrivals"].as_array().unwrap().iter().map(|bin| bin.as_u64().unwrap()).collect();
        assert!(arrivals.len() <= MAX_BINS, "{}", arrivals.len());
        assert_eq!(arrivals.iter().sum::<u64>(), u64::from(total));
        assert_eq!(curves["connects"], json!([10, 5]));
        assert!((curves["bin_s"].as_f64().unwrap() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn fewer_clients_are_shown_the_more_attempts_each_makes() {
        assert_eq!(shown(500, 1.0), 500);
        assert_eq!(shown(1_000_000, 2.0), 10_000);
        assert_eq!(shown(10_000, 100.0), 3_000);
        assert_eq!([shown(10_000, 1e12), shown(1, f64::NAN), shown(7, f64::INFINITY)], [1, 1, 1]);
    }

    fn report(change: impl FnOnce(&mut ReconnectReport)) -> String {
        let RunFigures::Reconnect(mut report) = (&ReconnectFigures::default()).into() else { panic!("a reconnect") };
        (report.clients, report.connected, report.peak_1s) = (1_000, 1_000, 100);
        (report.t100_s, report.t99_s) = (Some(12.04), Some(9.0));
        change(&mut report);
        of_policy("ours", &report, 100.0)
    }

    #[test]
    fn the_sentence_says_how_high_the_peak_is_and_when_clients_are_back() {
        assert_eq!(
            report(|_| ()),
            "ours never exceeds the capacity: at most 100 attempts in a second; all clients are back after 12s."
        );
        assert_eq!(
            report(|figures| (figures.peak_1s, figures.crashes) = (250, 1)),
            "ours sends up to 250 attempts in a second, 2.5 times the capacity; all clients are back after 12s. The \
             server crashes again."
        );
        assert!(
            report(|figures| figures.t100_s = None).ends_with("99 % of the clients are back after 9s, some never.")
        );
        let few = report(|figures| {
            (figures.t100_s, figures.t99_s, figures.connected) = (None, None, 250);
        });
        assert!(few.ends_with("; only 25% of the clients come back."), "{few}");
    }
}
