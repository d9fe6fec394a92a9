use core::time::Duration;
use std::path::PathBuf;

use clap::builder::StringValueParser;
use clap::{Args, ValueHint};
use stagger_config::RetryBudget;

use super::budget::{length, parse as budget};
use super::export::Export;
use crate::output::suggestion::offering;
use crate::plot::Spacing;
use crate::policy_args::{PolicyArgs, policies};

/// Show the delays of a policy as a table and a plot
#[derive(Args, Clone, Debug)]
#[command(
    before_help = "\
Examples:
  stagger plan -n 8 -d 100ms
  stagger plan -p socket.io --sample 1000
  stagger plan virtualservice.yaml --entry reviews",
    after_help = "\
Forecasts cover the waits only; the duration of the attempts is not included. The clients drawn for the plot and for \
--sample depend on --seed, which defaults to 1.

Exit status:
  0    success
  1    drawn delays contradict the forecast
  2    usage error
  125  a file cannot be read or written"
)]
pub(crate) struct PlanArgs {
    /// Policy to plan, in the syntax of --policy; or a configuration of Istio, Envoy, gRPC, nginx, systemd and others, whose
    /// policies are planned: a FILE that contains '/' or '.', or '-' for standard input. Policy flags override each of them
    #[arg(value_name = "POLICY|FILE", hide_possible_values = true, conflicts_with_all = ["policy", "profiles"],
          value_parser = offering(StringValueParser::new(), policies))]
    pub(crate) subject: Option<String>,

    /// The policy of a configuration to plan, by its path in the file, or a part of it that no other has [default: all]
    #[arg(long, value_name = "NAME", requires = "subject", help_heading = "Plan")]
    pub(crate) entry: Option<String>,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Number of retries to show [default: all, up to 20; 10 if attempts are unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200), help_heading = "Plan")]
    pub(crate) retries: Option<u32>,

    /// List the named policies (profiles) that --policy accepts; with --json, include their settings and sources
    #[arg(long, conflicts_with_all = ["retries", "sample", "svg"], help_heading = "Plan")]
    pub(crate) profiles: bool,

    /// Also draw the delays of K clients and test them against the forecast [default: none]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Plan")]
    pub(crate) sample: Option<u32>,

    /// Print the forecast as JSON (schema stagger.plan/1); with --sample, include every drawn delay
    #[arg(long, help_heading = "Plan")]
    pub(crate) json: bool,

    /// Write the plots to an SVG file; '-' for standard output, instead of the table
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, help_heading = "Plan")]
    pub(crate) svg: Option<PathBuf>,

    /// Print the policy as the configuration of another system; settings without an equivalent are listed on standard
    /// error
    #[arg(
        long,
        value_enum,
        value_name = "SYSTEM",
        conflicts_with_all = ["retries", "profiles", "sample", "json", "svg"],
        help_heading = "Plan"
    )]
    pub(crate) export: Option<Export>,

    /// Timeout of one attempt, for --export [default: that of the file, if a file is exported]
    #[arg(long, value_name = "DUR", value_parser = length, requires = "export", help_heading = "Plan")]
    pub(crate) attempt_timeout: Option<Duration>,

    /// Time within which a call must succeed, with all its attempts, for --export [default: that of the file]
    #[arg(long, value_name = "DUR", value_parser = length, requires = "export", help_heading = "Plan")]
    pub(crate) within: Option<Duration>,

    /// Budget that limits the retries of all calls together, for --export: none, concurrent, throttle, window or tokens, with
    /// settings as `stagger simulate` has them: 'throttle max-tokens=100 token-ratio=10%' [default: that of the file]
    #[arg(long, value_name = "BUDGET", value_parser = budget, requires = "export", help_heading = "Plan")]
    pub(crate) guards: Option<RetryBudget>,

    /// Scale of the delay axis in plots
    #[arg(long, value_enum, default_value_t, help_heading = "Plan")]
    pub(crate) scale: Spacing,
}
