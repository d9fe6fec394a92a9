use core::time::Duration;

use stagger_core::Seed;
use stagger_sim::reconnect::{FirstAttempt, RetryAfter};
use stagger_sim::storm::{FluidReport, RunFigures, ScenarioSpec};
use stagger_sim::{Progress, ScenarioError, fluid, occ, outage, reconnect};

use super::args::Kind;
use super::contender::Contender;
use super::guards::Guards;
use super::settings::Settings;
use crate::error::CliError;
use crate::storm::{SAMPLE, words};

/// A scenario, whichever it is.
#[derive(Debug)]
pub(super) enum World {
    Reconnect(reconnect::ReconnectScenario),
    Fluid(reconnect::ReconnectScenario),
    Outage(outage::OutageScenario, Vec<Guards>),
    Occ(occ::OccScenario),
}

const CLIENTS: u64 = 10_000;
/// They get in each other's way.
const WRITERS: u64 = 100;
/// Requests a second.
const TRAFFIC: f64 = 800.0;

impl World {
    /// The scenario of this kind with these settings.
    ///
    /// # Errors
    /// A setting that cannot be understood, one that this kind does not have, or a scenario that makes no sense.
    pub(super) fn new(kind: Kind, mut settings: Settings) -> Result<Self, CliError> {
        let (world, name) = match kind {
            Kind::Reconnect => (reconnect(&mut settings, Chance::Drawn)?.map(Self::Reconnect), "reconnect"),
            Kind::Fluid => (reconnect(&mut settings, Chance::Averaged)?.map(Self::Fluid), "fluid"),
            Kind::Outage => (outage(&mut settings)?, "outage"),
            Kind::Occ => (occ(&mut settings)?.map(Self::Occ), "occ"),
        };
        // A setting that is not known comes first: without it the scenario may be another one.
        settings.finish(name)?;
        world.map_err(|error| CliError::usage(format_args!("{name}: {error}")))
    }

    pub(super) fn scene(&self) -> ScenarioSpec {
        match self {
            Self::Reconnect(scenario) => scenario.into(),
            Self::Fluid(scenario) => ScenarioSpec::fluid(scenario),
            Self::Outage(scenario, _) => scenario.into(),
            Self::Occ(scenario) => scenario.into(),
        }
    }

    /// What guards are compared; of scenarios without guards, none.
    pub(super) fn guards(&self) -> &[Guards] {
        match self {
            Self::Outage(_, guards) => guards,
            _ => &[],
        }
    }

    /// Whether seeds make a difference.
    pub(super) const fn is_by_chance(&self) -> bool {
        !matches!(self, Self::Fluid(_))
    }

    /// What becomes of it; `None` if it was cancelled before its end.
    ///
    /// # Errors
    /// There is no mean field of this policy.
    pub(super) fn run(
        &self,
        contender: &Contender,
        seed: Seed,
        progress: &Progress,
    ) -> Result<Option<RunFigures>, fluid::NotSimulable> {
        let policy = &contender.policy;
        Ok(match self {
            Self::Reconnect(scenario) => {
                scenario.run_with_progress(policy, seed, progress).map(|figures| (&figures).into())
            }
            Self::Fluid(scenario) => {
                Some(FluidReport::from_figures(scenario.clients(), &fluid::run(scenario, policy)?).into())
            }
            Self::Outage(scenario, _) => {
                let process = |seed| match &contender.guards {
                    Some(guards) => guards.process(seed),
                    None => outage::ProcessGuards::none(),
                };
                scenario.run_with_progress(policy, process, seed, progress).map(|figures| (&figures).into())
            }
            Self::Occ(scenario) => scenario.run_with_progress(policy, seed, progress).map(|figures| (&figures).into()),
        })
    }
}

/// Whether what each client does is drawn, or all of them are seen as a whole, which hints cannot be told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chance {
    Drawn,
    Averaged,
}

/// Outside, what cannot be understood; inside, what makes no sense.
type Built<T> = Result<Result<T, ScenarioError>, CliError>;

fn reconnect(settings: &mut Settings, chance: Chance) -> Built<reconnect::ReconnectScenario> {
    let mut builder = reconnect::ReconnectScenario::builder(settings.take("clients", words::count)?.unwrap_or(CLIENTS));
    if let Some(rate) = settings.take("capacity", words::rate)? {
        builder = builder.rate(rate);
    }
    if let Some(backlog) = settings.take("backlog", words::small)? {
        builder = builder.backlog(backlog);
    }
    if let Some((least, most)) = settings.take("one-way", |text| words::lengths(text, &[".."]))? {
        builder = builder.one_way(least, most.unwrap_or(least));
    }
    if let Some(time) = settings.take("hits-within", words::length)? {
        builder = builder.disconnect_window(time);
    }
    if let Some(time) = settings.take("down", words::length)? {
        builder = builder.down_for(time);
    }
    let firsts = [("after-delay", FirstAttempt::AfterDelay), ("at-once", FirstAttempt::Immediate)];
    if let Some(first) = settings.take("first", |text| words::one_of(text, &firsts))? {
        builder = builder.first_attempt(first);
    }
    if chance == Chance::Drawn
        && let Some(hints) = settings.take("hints", hints)?
    {
        builder = builder.retry_after(hints);
    }
    if let Some(horizon) = settings.take("horizon", words::length)? {
        builder = builder.horizon(horizon);
    }
    Ok(builder.sample(SAMPLE).build())
}

fn hints(text: &str) -> Result<RetryAfter, String> {
    let words =
        [("silent", RetryAfter::None), ("slots", RetryAfter::Staggered), ("appointments", RetryAfter::Reservations)];
    let word = words::one_of(text, &words);
    word.or_else(|error| words::length(text).map(RetryAfter::Fixed).map_err(|_| format!("{error}, or a time like 5s")))
}

fn outage(settings: &mut Settings) -> Built<World> {
    let mut builder = outage::OutageScenario::builder(settings.take("rate", words::rate)?.unwrap_or(TRAFFIC));
    if let Some(capacity) = settings.take("capacity", words::rate)? {
        builder = builder.capacity(capacity);
    }
    if let Some(backlog) = settings.take("backlog", words::small)? {
        builder = builder.queue(backlog);
    }
    if let Some(processes) = settings.take("processes", words::small)? {
        builder = builder.processes(processes);
    }
    let kinds = [("stall", outage::OutageKind::Stall), ("reject", outage::OutageKind::Reject)];
    let kind = settings.take("outage", |text| words::one_of(text, &kinds))?.unwrap_or_default();
    let begins = settings.take("begins", words::length)?.unwrap_or(Duration::from_secs(20));
    let lasts = settings.take("down", words::length)?.unwrap_or(Duration::from_secs(2));
    builder = builder.outage(kind, begins, lasts);
    if let Some(one_way) = settings.take("one-way", words::length)? {
        builder = builder.one_way(one_way);
    }
    if let Some(timeout) = settings.take("timeout", words::length)? {
        builder = builder.timeout(timeout);
    }
    if let Some(horizon) = settings.take("horizon", words::length)? {
        builder = builder.horizon(horizon);
    }
    let guards = settings.take("guards", |text| text.split(',').map(str::parse).collect::<Result<Vec<Guards>, _>>())?;
    Ok(builder.build().map(|scenario| World::Outage(scenario, guards.unwrap_or_default())))
}

fn occ(settings: &mut Settings) -> Built<occ::OccScenario> {
    let mut builder = occ::OccScenario::builder(settings.take("clients", words::count)?.unwrap_or(WRITERS));
    if let Some((mean, deviation)) = settings.take("one-way", |text| words::lengths(text, &["+-", "±"]))? {
        builder = builder.one_way(mean, deviation.unwrap_or_default());
    }
    Ok(builder.build())
}
