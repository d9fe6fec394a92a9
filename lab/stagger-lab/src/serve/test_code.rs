use core::fmt::Write as _;

use stagger_core::Policy;
use stagger_sim::storm::{
    FirstAttemptSpec, ReconnectReport, ReconnectSpec, RetryAfterSpec, RunFigures, ScenarioSpec, StormReport,
};

/// Returns a test in Rust that a policy has the figures of the last strategy, or better ones, in the same scenario. `command`
/// is the command line that computes them.
pub(super) fn test_code(command: &str, policy: &Policy, storm: &StormReport) -> String {
    let run = storm.strategies.last().and_then(|last| last.runs.first());
    let (Some(run), ScenarioSpec::Reconnect(spec)) = (run, &storm.scenario) else { return String::new() };
    let RunFigures::Reconnect(figures) = &run.figures else { return String::new() };
    let scenario = scenario(spec);
    let of_reconnect =
        [("FirstAttempt, ", "FirstAttempt::"), ("ReconnectScenario", ""), (", RetryAfter", "RetryAfter::")];
    let used = of_reconnect.iter().filter(|(_, used)| scenario.contains(used));
    let names: String = used.map(|(name, _)| *name).collect();
    let names = if names.contains(", ") { format!("{{{names}}}") } else { names };
    let body = format!(
        "    let policy: Policy = {:?}.parse()?;\n    let scenario = {scenario}\n        .build()?;\n    \
         StormTest::run_with_seed(&scenario, &policy, Seed::new({})){};\n    Ok(())\n",
        policy.to_string(),
        run.seed,
        claims(figures)
    );
    let durations = if body.contains("Duration::") { "use core::time::Duration;\n\n" } else { "" };
    format!(
        "//! The claims are the figures of: {}\n\n{durations}use stagger_core::{{Policy, Seed}};\nuse \
         stagger_sim::reconnect::{names};\nuse stagger_sim::testing::StormTest;\n\n#[test]\nfn \
         clients_that_lose_their_connections_come_back_in_time() -> Result<(), Box<dyn core::error::Error>> {{\n{body}}}\n",
        command.replace(char::is_control, " ")
    )
}

fn claims(figures: &ReconnectReport) -> String {
    let mut text = format!(
        "\n        .peak_second_at_most({})\n        .attempts_per_client_at_most({:?})",
        figures.peak_1s,
        // Rounded up, because the assertion compares exact values.
        (figures.attempts_per_client * 1e3).ceil() / 1e3
    );
    if let Some(p99) = figures.recovered_p99_s {
        let _ = write!(text, "\n        .recovered_p99_within({})", duration(p99));
    }
    if figures.t100_s.is_some() {
        text.push_str("\n        .all_clients_recover()");
    }
    text
}

/// Returns a length in seconds as code, rounded up to microseconds.
fn duration(seconds: f64) -> String {
    // Microseconds are exact in the document, except for the last bit of the floating-point number.
    match (seconds * 1e6 - 1e-3).ceil().max(0.0) as u64 {
        micros if micros % 1_000_000 == 0 => format!("Duration::from_secs({})", micros / 1_000_000),
        micros if micros % 1_000 == 0 => format!("Duration::from_millis({})", micros / 1_000),
        micros => format!("Duration::from_micros({micros})"),
    }
}

/// Returns the code that builds a scenario.
fn scenario(spec: &ReconnectSpec) -> String {
    let mut text = format!("ReconnectScenario::builder({})", spec.clients);
    let mut set = |call: String| {
        let _ = write!(text, "\n        .{call}");
    };
    set(format!("rate({:?})", spec.rate));
    set(format!("backlog({})", spec.backlog));
    set(format!("one_way({}, {})", duration(spec.one_way_min_s), duration(spec.one_way_max_s)));
    set(format!("disconnect_window({})", duration(spec.disconnect_window_s)));
    set(format!("down_for({})", duration(spec.down_for_s)));
    set(format!("horizon({})", duration(spec.horizon_s)));
    if spec.first_attempt == FirstAttemptSpec::Immediate {
        set("first_attempt(FirstAttempt::Immediate)".to_owned());
    }
    match (spec.retry_after, spec.retry_after_s) {
        (RetryAfterSpec::Fixed, Some(after)) => set(format!("retry_after(RetryAfter::Fixed({}))", duration(after))),
        (RetryAfterSpec::Staggered, _) => set("retry_after(RetryAfter::Staggered)".to_owned()),
        (RetryAfterSpec::Reservations, _) => set("retry_after(RetryAfter::Reservations)".to_owned()),
        _ => {}
    }
    if let Some(crash_loop) = spec.crash_loop {
        set(format!("crash_loop({}, {:?})", crash_loop.most, crash_loop.above));
    }
    text
}
