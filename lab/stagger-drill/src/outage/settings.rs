//! The settings of an outage.

use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};
use stagger_report::parse::{self, named_policies, number_duplicates};
use stagger_sim::system::{Arrivals, Edge, Service, System, Trigger};
use stagger_terminal::output::error::CliError;

use super::serve::OutageServeArgs;
use crate::args::{DrillArgs, parse_flag};

/// The load, the server and its fault.
#[derive(Clone, Debug)]
pub(super) struct OutageSettings {
    pub(super) rate: f64,
    pub(super) server: OutageServeArgs,
    pub(super) timeout: Duration,
    pub(super) horizon: Duration,
    pub(super) policies: Vec<(String, Policy)>,
    pub(super) seed: Seed,
}

const RATE: f64 = 100.0;
const WORKERS: u32 = 4;
const SERVICE: Duration = Duration::from_millis(20);
const BACKLOG: u32 = 100;
const TIMEOUT: Duration = Duration::from_millis(250);
const START: Duration = Duration::from_secs(1);
const DOWN: Duration = Duration::from_secs(1);
const HORIZON: Duration = Duration::from_secs(8);
/// Default seed, so that a drill uses the same delays every time.
const SEED: u64 = 1;

/// Policies of a drill without arguments: the load of the first stays below the capacity, and that of the second does
/// not.
const DEFAULT_POLICIES: [&str; 2] = ["no retries: zero max-attempts=1", "three attempts: zero max-attempts=3"];

/// The most requests of a run, which are kept in memory.
const MAX_REQUESTS: f64 = 1e6;

/// How long the load goes on after the horizon, at most, until the last requests before it have ended.
const MAX_TAIL: Duration = Duration::from_secs(3);

impl OutageSettings {
    pub(super) fn new(args: &DrillArgs) -> Result<Self, CliError> {
        let mut policies = if args.compare.is_empty() && !args.policy.is_given() {
            named_policies(&DEFAULT_POLICIES.map(str::to_owned), &args.policy)?
        } else {
            named_policies(&args.compare, &args.policy)?
        };
        number_duplicates(&mut policies, |(name, _)| name);
        let duration = |flag, value: &Option<String>, default| {
            parse_flag(flag, value, parse::duration).map(|given| given.unwrap_or(default))
        };
        let start = duration("--start", &args.start, START)?;
        let settings = Self {
            rate: parse_flag("--rate", &args.rate, parse::rate)?.unwrap_or(RATE),
            server: OutageServeArgs {
                workers: parse_flag("--workers", &args.workers, parse::count_u32)?.unwrap_or(WORKERS),
                service: duration("--service", &args.service, SERVICE)?,
                backlog: parse_flag("--backlog", &args.backlog, parse::count_u32)?.unwrap_or(BACKLOG),
                start,
                end: start.saturating_add(duration("--down", &args.down, DOWN)?),
                slow: parse_flag("--slow", &args.slow, factor)?,
            },
            timeout: duration("--timeout", &args.timeout, TIMEOUT)?,
            horizon: duration("--horizon", &args.horizon, HORIZON)?,
            policies,
            seed: Seed::new(args.policy.seed.unwrap_or(SEED)),
        };
        let requests = settings.rate * settings.horizon.as_secs_f64();
        if requests > MAX_REQUESTS {
            return Err(CliError::usage(format_args!(
                "--rate: {requests:.0} requests up to the horizon are more than {MAX_REQUESTS}; lower --rate or \
                 --horizon"
            )));
        }
        if settings.server.end >= settings.horizon {
            return Err(CliError::usage(format_args!(
                "--horizon: the run ends at {}, and the outage at {}; raise --horizon, or lower --start or --down",
                Compact(settings.horizon),
                Compact(settings.server.end)
            )));
        }
        // Reports all problems of the settings before the drill begins.
        settings.system(&Policy::DEFAULT, [Duration::ZERO; 2])?;
        Ok(settings)
    }

    /// Returns the system that is simulated, with the one-way delays that were measured.
    pub(super) fn system(&self, policy: &Policy, one_way: [Duration; 2]) -> Result<System, CliError> {
        let OutageServeArgs { workers, service, backlog, start, end, slow } = self.server;
        let trigger = match slow {
            Some(factor) => Trigger::slow_from_start(factor),
            None => Trigger::stall(),
        };
        let service = Service::new("server").workers(workers).service_time(service).backlog(backlog);
        let edge = Edge::from_users("server").timeout(self.timeout).policy(*policy);
        let system = System::builder(self.rate)
            .arrivals(Arrivals::Fixed)
            .service(service)
            .edge(edge.one_way_between(one_way[0], one_way[1]))
            .trigger(trigger.on("server").at(start).lasting(end.saturating_sub(start)))
            .horizon(self.horizon);
        system.build().map_err(|error| CliError::usage(format_args!("drill outage: {error}")))
    }

    /// Returns how long the load goes on after the horizon: as long as a call may take, and not longer than three
    /// seconds.
    pub(super) fn tail(&self, policy: &Policy) -> Duration {
        self.longest_call(policy).unwrap_or(MAX_TAIL).min(MAX_TAIL)
    }

    /// Returns how long a call may take: all its delays, and the timeout of each attempt. `None` without a bound.
    fn longest_call(&self, policy: &Policy) -> Option<Duration> {
        let attempts = policy.max_attempts()?.get();
        let delays = match attempts - 1 {
            0 => policy.spread(),
            retries => policy.elapsed_bounds(retries)?.1,
        };
        Some(delays.saturating_add(self.timeout.saturating_mul(attempts)))
    }
}

/// Parses by how much the server is slowed down.
fn factor(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err(format!("`{text}` is not a factor; use a number above 0, such as 4 for a quarter of the speed")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: DrillArgs,
    }

    #[test]
    fn the_load_goes_on_for_as_long_as_a_call_may_take_and_no_longer_than_three_seconds() {
        let settings = OutageSettings::new(&Line::parse_from(["drill", "outage", "--timeout=200ms"]).args).unwrap();
        for (policy, want) in [
            ("zero max-attempts=1", 200),
            ("zero max-attempts=3", 600),
            ("constant base=1s jitter=none max-attempts=2", 1_400),
            ("zero max-attempts=1 spread=500ms", 700),
            ("zero max-attempts=100", 3_000),
            ("zero max-attempts=none", 3_000),
        ] {
            let tail = settings.tail(&policy.parse().unwrap());
            assert_eq!(tail, Duration::from_millis(want), "{policy}");
        }
    }
}
