//! Our own profiles: what they were before the law about them, their criterion, and the figures of the guide.

use stagger::{Policy, Seed, profile};

use super::criterion::CALLS;
use super::grid::{Figures, Grid, Kind};
use super::profiles::dominates;

/// What the profiles were when they had no criterion, and what was better in every figure.
#[test]
fn the_former_profiles_are_dominated() {
    let policy = |text: &str| text.parse::<Policy>().unwrap();
    for (former, kind, by) in [
        (
            "exponential base=500ms cap=30s spread=10s max-attempts=inf stable-after=10s",
            Kind::Connections,
            profile::RECONNECTING_WEBSOCKET.policy(),
        ),
        (
            "exponential base=1s cap=60s jitter=decorrelated max-attempts=10",
            Kind::Jobs,
            profile::BACKGROUND_JOB.policy(),
        ),
        (
            "exponential base=50ms cap=30s jitter=none max-attempts=4 max-hint=30s",
            Kind::Calls,
            profile::DEFAULT.policy(),
        ),
    ] {
        let grid = Grid::new(kind).unwrap();
        assert!(dominates(&grid, &by, &policy(former), Seed::new(1)).is_some(), "{former}");
    }
}

/// The cap is not among the settings that are chosen: so few attempts do not reach it.
#[test]
fn our_profiles_for_calls_are_chosen_by_their_criterion() {
    for limits in CALLS {
        let (ours, chosen) = (limits.profile.policy(), limits.choose().unwrap());
        let settings = |policy: &Policy| (policy.base(), policy.max_attempts(), policy.jitter());
        assert_eq!(settings(&ours), settings(&chosen), "{}: {chosen}", limits.profile.name());
        for retry in 1..ours.max_attempts().unwrap().get() {
            assert_eq!(ours.bounds(retry), chosen.bounds(retry), "{}: {chosen}", limits.profile.name());
        }
    }
}

/// The tables of the guide, "How the profiles were chosen".
#[test]
fn the_guide_has_the_figures() {
    const GUIDE: &str = include_str!("../../../../docs/guide/choosing.md");
    let mut rows = 0;
    let mut grid = None;
    for line in GUIDE.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            ["connections", "cost", ..] => grid = Some(Grid::new(Kind::Connections).unwrap()),
            ["jobs", "cost", ..] => grid = Some(Grid::new(Kind::Jobs).unwrap()),
            [name, cost, peak, recovery, attempts] if name.starts_with('`') => {
                let (Some(grid), Ok(policy)) = (&grid, name.trim_matches('`').parse::<Policy>()) else { continue };
                let runs: Vec<_> = (0..4).map(|seed| grid.figures(&policy, Seed::new(seed))).collect();
                let mean = |of: &dyn Fn(&Figures) -> f64| runs.iter().map(of).sum::<f64>() / 4.0;
                let figures =
                    [mean(&Figures::cost), mean(&|run| run.peak), mean(&|run| run.recovery), mean(&|run| run.attempts)];
                let [got_cost, got_peak, got_recovery, got_attempts] = figures;
                let got = format!("{got_cost:.2} {got_peak:.2} {got_recovery:.1} s {got_attempts:.2}");
                assert_eq!(got, [cost, peak, recovery, attempts].join(" "), "{name}");
                rows += 1;
            }
            [""] => grid = None,
            _ => {}
        }
    }
    assert_eq!(rows, 11);
}
