//! Our own profiles: what they were before the law about them, their criterion, and their figures.

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

/// What our profiles cost on their grids, beside a neighbor and what each was before: cost, peak, recovery and attempts.
#[test]
fn our_profiles_have_these_figures_on_their_grids() {
    for (kind, policy, want) in [
        (Kind::Connections, "web-socket", "4.89 2.10 29.9 s 4.47"),
        (
            Kind::Connections,
            "exponential base=10s cap=20s jitter=equal spread=10s max-attempts=inf",
            "4.99 2.55 24.7 s 5.50",
        ),
        (Kind::Connections, "exponential base=500ms cap=30s spread=10s max-attempts=inf", "6.13 5.43 28.2 s 8.92"),
        (Kind::Jobs, "exponential base=20s cap=2m jitter=50% max-attempts=10", "5.37 1.50 78.0 s 3.35"),
        (Kind::Jobs, "background-job", "5.38 1.31 93.4 s 3.12"),
        (Kind::Jobs, "exponential base=1s cap=60s jitter=decorrelated max-attempts=10", "11.66 5.67 5865.7 s 6.08"),
    ] {
        let (grid, policy): (_, Policy) = (Grid::new(kind).unwrap(), policy.parse().unwrap());
        let runs: Vec<_> = (0..4).map(|seed| grid.figures(&policy, Seed::new(seed))).collect();
        let mean = |of: &dyn Fn(&Figures) -> f64| runs.iter().map(of).sum::<f64>() / 4.0;
        let (peak, recovery) = (mean(&|run| run.peak), mean(&|run| run.recovery));
        let (cost, attempts) = (mean(&Figures::cost), mean(&|run| run.attempts));
        assert_eq!(format!("{cost:.2} {peak:.2} {recovery:.1} s {attempts:.2}"), want, "{policy}");
    }
}
