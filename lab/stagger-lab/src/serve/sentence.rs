use stagger_sim::storm::{ReconnectReport, RunFigures, StormReport};

use crate::simulate::Race;
use stagger_terminal::plot::Unit;

/// What the page calls the policies.
const LETTERS: [char; 2] = ['A', 'B'];

/// Share of the clients that are back at `t99_s`.
const MOST: &str = "99 %";

/// Returns the answer, a sentence for each policy: what it does to the server, and when its clients are back.
pub(super) fn sentences(race: &Race, storm: &StormReport) -> Vec<String> {
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
    use super::*;
    use stagger_sim::reconnect::ReconnectFigures;

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
            "ours sends up to 250 attempts in a second, 2.5 times the capacity; all clients are back after 12s. The server crashes again."
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
