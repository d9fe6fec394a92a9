//! Scenarios of the simulators, built from settings.

use core::time::Duration;

use stagger_core::{Ratio, Seed};
use stagger_report::parse;
use stagger_report::storm::SAMPLED_CLIENTS;
use stagger_sim::outage::{OutageScenarioBuilder, StoreFaults};
use stagger_sim::reconnect::{FirstAttempt, ReconnectScenarioBuilder, RetryAfter};
use stagger_sim::storm::{FluidReport, RunFigures, ScenarioSpec};
use stagger_sim::{Progress, ScenarioError, fluid, occ, outage, reconnect};
use stagger_terminal::output::error::CliError;

use super::args::ScenarioKind;
use super::guards::ratio;
use super::guards::{Guards, parse_list};
use super::settings::Settings;
use super::strategy::Strategy;

/// Scenario of any kind.
#[derive(Debug)]
pub(super) enum AnyScenario {
    Reconnect(reconnect::ReconnectScenario, Vec<Guards>),
    Fluid(reconnect::ReconnectScenario),
    Outage(outage::OutageScenario, Vec<Guards>),
    Occ(occ::OccScenario),
}

const CLIENTS: u64 = 10_000;
/// Default capacity, for the load under which a server crashes.
const CAPACITY: f64 = 1_000.0;
/// Maximum number of crashes. Each takes as long as the start of a run.
const MAX_CRASHES: u32 = 1_000;
/// Default number of clients of `occ`, all of which contend for one row.
const OCC_CLIENTS: u64 = 100;
/// Default request rate of `outage`, per second.
const REQUEST_RATE: f64 = 800.0;

impl AnyScenario {
    /// Builds the scenario of this kind from its settings.
    pub(super) fn new(kind: ScenarioKind, mut settings: Settings) -> Result<Self, CliError> {
        let name = kind.name();
        let scenario = match kind {
            ScenarioKind::Reconnect => guarded_reconnect(&mut settings)?,
            ScenarioKind::Fluid => reconnect(&mut settings, kind)?.build().map(Self::Fluid),
            ScenarioKind::Outage => outage(&mut settings)?,
            ScenarioKind::Occ => occ(&mut settings)?.map(Self::Occ),
        };
        // Report an unknown setting first: the scenario may be invalid only because of it.
        settings.finish(name)?;
        scenario.map_err(|error| CliError::usage(format_args!("{name}: {error}")))
    }

    /// Returns the description of the scenario for the report.
    pub(super) fn spec(&self) -> ScenarioSpec {
        match self {
            Self::Reconnect(scenario, _) => scenario.into(),
            Self::Fluid(scenario) => ScenarioSpec::fluid(scenario),
            Self::Outage(scenario, _) => scenario.into(),
            Self::Occ(scenario) => scenario.into(),
        }
    }

    /// Returns the guards to compare; empty for scenarios without guards.
    pub(super) fn guards(&self) -> &[Guards] {
        match self {
            Self::Reconnect(_, guards) | Self::Outage(_, guards) => guards,
            _ => &[],
        }
    }

    /// Runs the scenario with a strategy; returns `None` if the run was cancelled.
    pub(super) fn run(
        &self,
        strategy: &Strategy,
        seed: Seed,
        progress: &Progress,
    ) -> Result<Option<RunFigures>, fluid::NotSimulable> {
        let policy = &strategy.policy;
        Ok(match self {
            Self::Reconnect(scenario, _) => {
                let figures = match &strategy.guards {
                    // The crash loop is no part of a scenario with guards.
                    Some(guards) => scenario
                        .run_with_guards(policy, |seed| guards.process(seed), seed, progress)
                        .unwrap_or_default(),
                    None => scenario.run_with_progress(policy, seed, progress),
                };
                figures.map(|figures| (&figures).into())
            }
            Self::Fluid(scenario) => {
                Some(FluidReport::from_figures(scenario.clients(), &fluid::run(scenario, policy)?).into())
            }
            Self::Outage(scenario, _) => {
                let process = |seed| match &strategy.guards {
                    Some(guards) => guards.process(seed),
                    None => outage::ProcessGuards::none(),
                };
                scenario.run_with_progress(policy, process, seed, progress).map(|figures| (&figures).into())
            }
            Self::Occ(scenario) => scenario.run_with_progress(policy, seed, progress).map(|figures| (&figures).into()),
        })
    }
}

/// Result of building a scenario: the outer error is a setting that cannot be parsed, the inner one an invalid
/// scenario.
type Built<T> = Result<Result<T, ScenarioError>, CliError>;

/// A mass disconnect whose clients may have guards.
fn guarded_reconnect(settings: &mut Settings) -> Built<AnyScenario> {
    let has_crashes = settings.has("crash-loop");
    let builder = reconnect(settings, ScenarioKind::Reconnect)?;
    let processes = settings.take("processes", parse::count_u32)?;
    let guards = settings.take("guards", parse_list)?.unwrap_or_default();
    if processes.is_some() && guards.is_empty() {
        return Err(CliError::usage(
            "--processes has no effect without --guards; add them, such as --guards quiet, or remove --processes",
        ));
    }
    if has_crashes && !guards.is_empty() {
        return Err(CliError::usage("--guards and --crash-loop cannot be simulated together; remove one of them"));
    }
    let builder = processes.into_iter().fold(builder, ReconnectScenarioBuilder::processes);
    let builder = builder.store(store_faults(settings, &guards)?);
    Ok(builder.build().map(|scenario| AnyScenario::Reconnect(scenario, guards)))
}

/// Takes the faults of the store, which is that of a lease.
fn store_faults(settings: &mut Settings, guards: &[Guards]) -> Result<StoreFaults, CliError> {
    let down = settings.take("store-down", period)?;
    let lost = settings.take("store-lost", period)?;
    let cut = settings.take("store-cut", share_and_period)?;
    if down.is_some() && lost.is_some() {
        return Err(CliError::usage("--store-down and --store-lost are one fault; keep one of them"));
    }
    let given = [("--store-down", down.is_some()), ("--store-lost", lost.is_some()), ("--store-cut", cut.is_some())];
    if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given && !guards.iter().any(|one| one.has_lease)) {
        return Err(CliError::usage(format_args!(
            "{flag} has no effect without a lease; add one, such as --guards 'lease tokens=500', or remove {flag}"
        )));
    }
    let mut faults = StoreFaults::none();
    if let Some((from, until)) = down {
        faults = faults.down(from, until);
    }
    if let Some((from, until)) = lost {
        faults = faults.lost(from, until);
    }
    if let Some((share, (from, until))) = cut {
        faults = faults.cut(share, from, until);
    }
    Ok(faults)
}

/// Parses when a fault begins and ends: `25s..40s`.
fn period(text: &str) -> Result<(Duration, Duration), String> {
    match parse::duration_pair(text.trim(), &[".."])? {
        (from, Some(until)) if from < until => Ok((from, until)),
        (from, Some(until)) => Err(format!("`{text}` ends at {until:?}, not after {from:?}; swap the times")),
        (_, None) => Err(format!("`{text}` has no end; expected a form like 25s..40s")),
    }
}

/// Parses a share of the processes, and when a fault begins and ends: `30% 25s..40s`.
fn share_and_period(text: &str) -> Result<(Ratio, (Duration, Duration)), String> {
    let Some((share, times)) = text.trim().split_once(char::is_whitespace) else {
        return Err(format!("`{text}` is not a share and its times; expected a form like '30% 25s..40s'"));
    };
    let share = ratio(share)?;
    if share.is_above_one() {
        return Err(format!("`{text}` cuts off more than all processes; use at most 100%"));
    }
    Ok((share, period(times)?))
}

fn reconnect(settings: &mut Settings, kind: ScenarioKind) -> Result<ReconnectScenarioBuilder, CliError> {
    let clients = settings.take("clients", parse::count)?.unwrap_or(CLIENTS);
    let builder = reconnect::ReconnectScenario::builder(clients);
    let capacity = settings.take("capacity", parse::rate)?;
    let builder = match capacity {
        Some(rate) => builder.rate(rate),
        None => builder,
    };
    let builder = settings.apply(builder, "backlog", parse::count_u32, ReconnectScenarioBuilder::backlog)?;
    let range = |text: &str| parse::duration_pair(text, &[".."]);
    let set_range =
        |builder: ReconnectScenarioBuilder, (min, max): (_, Option<_>)| builder.one_way(min, max.unwrap_or(min));
    let builder = settings.apply(builder, "one-way", range, set_range)?;
    let builder =
        settings.apply(builder, "disconnect-window", parse::duration, ReconnectScenarioBuilder::disconnect_window)?;
    let builder = settings.apply(builder, "down", parse::duration, ReconnectScenarioBuilder::down_for)?;
    let firsts = [("after-delay", FirstAttempt::AfterDelay), ("immediate", FirstAttempt::Immediate)];
    let first = |text: &str| parse::keyword(text, &firsts);
    let mut builder = settings.apply(builder, "first-attempt", first, ReconnectScenarioBuilder::first_attempt)?;
    // The fluid model has no individual clients to which a server could send a `Retry-After`, and no crashes.
    if kind == ScenarioKind::Reconnect {
        builder = settings.apply(builder, "retry-after", retry_after, ReconnectScenarioBuilder::retry_after)?;
        let most = settings.take("crash-loop", crashes)?.unwrap_or(0);
        let above = settings.take("crash-above", parse::rate)?;
        if above.is_some() && most == 0 {
            return Err(CliError::usage(
                "--crash-above has no effect without --crash-loop; add it, such as --crash-loop 5, or remove \
                 --crash-above",
            ));
        }
        builder = builder.crash_loop(most, above.unwrap_or(2.0 * capacity.unwrap_or(CAPACITY)));
    }
    let builder = settings.apply(builder, "horizon", parse::duration, ReconnectScenarioBuilder::horizon)?;
    Ok(builder.sample(SAMPLED_CLIENTS))
}

/// Parses the maximum number of crashes, which may be 0.
fn crashes(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(most @ 0..=MAX_CRASHES) => Ok(most),
        _ => Err(format!("`{text}` is not a number of crashes; use a whole number from 0 to {MAX_CRASHES}")),
    }
}

fn retry_after(text: &str) -> Result<RetryAfter, String> {
    let keywords =
        [("none", RetryAfter::None), ("staggered", RetryAfter::Staggered), ("reservations", RetryAfter::Reservations)];
    match (parse::keyword(text, &keywords), parse::duration(text)) {
        (Ok(known), _) => Ok(known),
        (Err(_), Ok(delay)) => Ok(RetryAfter::Fixed(delay)),
        (Err(error), Err(_)) => Err(format!("{error}, or a duration like 5s")),
    }
}

/// Parses the hint of an outage, whose clients have no reservations.
fn fixed_retry_after(text: &str) -> Result<Option<Duration>, String> {
    match retry_after(text)? {
        RetryAfter::None => Ok(None),
        RetryAfter::Fixed(after) => Ok(Some(after)),
        _ => Err(format!("`{text}` is for reconnect; use none or a duration like 5s")),
    }
}

fn outage(settings: &mut Settings) -> Built<AnyScenario> {
    let rate = settings.take("rate", parse::rate)?.unwrap_or(REQUEST_RATE);
    let builder = outage::OutageScenario::builder(rate);
    let builder = settings.apply(builder, "capacity", parse::rate, OutageScenarioBuilder::capacity)?;
    let builder = settings.apply(builder, "backlog", parse::count_u32, OutageScenarioBuilder::queue)?;
    let builder = settings.apply(builder, "processes", parse::count_u32, OutageScenarioBuilder::processes)?;
    let kinds = [
        ("stall", outage::OutageKind::Stall),
        ("reject", outage::OutageKind::Reject),
        ("throttle", outage::OutageKind::Throttle),
    ];
    let kind = settings.take("outage", |text| parse::keyword(text, &kinds))?.unwrap_or_default();
    let begins = settings.take("start", parse::duration)?.unwrap_or(Duration::from_secs(20));
    let lasts = settings.take("down", parse::duration)?.unwrap_or(Duration::from_secs(2));
    let builder = builder.outage(kind, begins, lasts);
    let builder = settings.apply(builder, "one-way", parse::duration, OutageScenarioBuilder::one_way)?;
    let builder = settings.apply(builder, "timeout", parse::duration, OutageScenarioBuilder::timeout)?;
    let hint = settings.take("retry-after", fixed_retry_after)?.flatten();
    let builder = hint.into_iter().fold(builder, OutageScenarioBuilder::retry_after);
    let builder = settings.apply(builder, "horizon", parse::duration, OutageScenarioBuilder::horizon)?;
    let guards = settings.take("guards", parse_list)?.unwrap_or_default();
    let builder = builder.store(store_faults(settings, &guards)?);
    Ok(builder.build().map(|scenario| AnyScenario::Outage(scenario, guards)))
}

fn occ(settings: &mut Settings) -> Built<occ::OccScenario> {
    let clients = settings.take("clients", parse::count)?.unwrap_or(OCC_CLIENTS);
    let pair = |text: &str| parse::duration_pair(text, &["+-", "±"]);
    let set_pair = |builder: occ::OccScenarioBuilder, (mean, deviation): (_, Option<_>)| {
        builder.one_way(mean, deviation.unwrap_or_default())
    };
    let builder = settings.apply(occ::OccScenario::builder(clients), "one-way", pair, set_pair)?;
    Ok(builder.build())
}
