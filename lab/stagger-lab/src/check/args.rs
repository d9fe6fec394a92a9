//! The flags of `stagger check`, and the context that they describe.

use core::num::{NonZeroU32, NonZeroU64};
use core::str::FromStr;
use core::time::Duration;
use std::path::PathBuf;

use clap::builder::StringValueParser;
use clap::{Args, ValueHint};
use stagger_config::Format;
use stagger_core::text::{ParseValueError, Rate, parse_count, parse_duration};
use stagger_lint::{Budgeted, DeploymentContext, Idempotency, Purpose, Rule};
use stagger_terminal::output::suggestion::offering;
use stagger_terminal::policy_args::{PolicyArgs, at_least_one, policies};

/// Find what could turn a policy, or a configuration, into a retry storm, and suggest fixes
#[derive(Args, Clone, Debug)]
#[command(
    before_help = "\
Examples:
  stagger check socket.io --for reconnecting --clients 10k --capacity 500/s
  stagger check -n 8 -d 100ms --rps 2k/s --layers 2
  stagger check -n 4 -d 100ms --for near --rps 900/s \\
        --capacity 1000/s --budget=tokens
  stagger check virtualservice.yaml
  stagger check k8s/ envoy.yaml
  stagger check --log run.ndjson
  stagger check --traces spans.json",
    after_help = "\
A rule that needs a fact about the deployment is skipped unless its flag is given. Figures are forecasts computed \
from the policy; budgets are simulated. Each suggestion after `help:` has been verified and can be pasted.

Exit status: 0 without findings, or if --baseline has all of them; 1 with findings; 2 for a usage error, or an invalid \
file or log; 3 without findings in a log or traces that are too short to judge; 125 if a file or the log cannot be read, \
no span was read from traces, or the page cannot be written."
)]
pub struct CheckArgs {
    /// Policies to check, in the syntax of --policy, which policy flags override; or files, if they contain '/' or '.'
    /// or are '-' (standard input): configurations of Istio, Envoy, gRPC, nginx, HAProxy, Kubernetes, systemd, Docker
    /// Compose and others, and systems of services as `stagger simulate system` reads them. Directories are searched,
    /// and patterns such as 'k8s/**/*.yaml' expanded
    #[arg(value_name = "POLICY|FILE", hide_possible_values = true,
          value_parser = offering(StringValueParser::new(), policies))]
    pub(crate) subjects: Vec<String>,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) context: ContextArgs,

    /// Check the delays in a log instead of a policy: the output of `stagger run --log json`, sentences such as
    /// `Attempt 1 failed. Retrying in 0.134s`, or lines of DELAY CLIENT RETRY TIME, of which only DELAY is required;
    /// '-' is standard input. If a policy is given, or the log names one,
    /// the delays are also compared with it
    #[arg(
        long,
        value_name = "FILE|-",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["subjects", "ContextArgs"],
        help_heading = "Check"
    )]
    pub(crate) log: Option<PathBuf>,

    /// What the files are, if their content does not tell: istio, envoy, grpc, nginx, systemd and others
    #[arg(long, value_name = "FORMAT", value_parser = offering(format, formats), hide_possible_values = true,
          conflicts_with = "log", help_heading = "Check")]
    pub(crate) format: Option<Format>,

    /// Find retries in traces instead: files in OTLP/JSON (an object, or one per line), answers of Tempo's API, or
    /// Jaeger's JSON; '-' is standard input. With --json, schema stagger.traces/1
    #[arg(
        long,
        value_name = "FILE|-",
        num_args = 1..,
        value_hint = ValueHint::FilePath,
        conflicts_with_all = [
            "subjects", "log", "format", "allow", "baseline", "write_baseline", "sarif", "github", "junit",
            "ContextArgs",
        ],
        help_heading = "Check"
    )]
    pub(crate) traces: Vec<PathBuf>,

    /// Comma-separated rules whose findings are suppressed
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = offering(rule, codes),
          hide_possible_values = true, help_heading = "Check")]
    pub(crate) allow: Vec<&'static Rule>,

    /// List all rules
    #[arg(long, conflicts_with_all = ["subjects", "log", "allow", "explain"], help_heading = "Check")]
    pub(crate) rules: bool,

    /// Explain a rule: what it finds, why it matters, and how to fix it
    #[arg(
        long,
        value_name = "CODE",
        value_parser = offering(rule, codes),
        hide_possible_values = true,
        conflicts_with_all = ["subjects", "log", "allow", "json"],
        help_heading = "Check"
    )]
    pub(crate) explain: Option<&'static Rule>,

    /// Do not report the findings that this file has, which --write-baseline writes: only new ones count
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Check")]
    pub(crate) baseline: Option<PathBuf>,

    /// Write the findings to this file, for --baseline, and exit with 0
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "baseline",
        help_heading = "Check"
    )]
    pub(crate) write_baseline: Option<PathBuf>,

    /// Also write a self-contained HTML report to FILE; '-' is standard output
    #[arg(short, long, value_name = "FILE|-", value_hint = ValueHint::FilePath, help_heading = "Check",
          conflicts_with_all = ["rules", "explain", "traces", "write_baseline"])]
    pub(crate) output: Option<PathBuf>,

    /// Also show what else was read in configurations: fields that have an effect which cannot be said as a policy, and
    /// facts worth knowing, with their places. --json always has them
    #[arg(short, long, conflicts_with_all = ["log", "rules", "explain", "traces"], help_heading = "Check")]
    pub(crate) verbose: bool,

    /// Print the findings as JSON (schema stagger.check/1)
    #[arg(long, group = "format_of_output", help_heading = "Check")]
    pub(crate) json: bool,

    /// Print the findings as SARIF 2.1.0, which code hosts show beside the code
    #[arg(long, group = "format_of_output", conflicts_with_all = ["rules", "explain"], help_heading = "Check")]
    pub(crate) sarif: bool,

    /// Print the findings as annotations of GitHub Actions
    #[arg(long, group = "format_of_output", conflicts_with_all = ["rules", "explain"], help_heading = "Check")]
    pub(crate) github: bool,

    /// Print the findings as JUnit XML
    #[arg(long, group = "format_of_output", conflicts_with_all = ["rules", "explain"], help_heading = "Check")]
    pub(crate) junit: bool,
}

/// Deployment context: how and where the policy is used.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Context")]
pub(crate) struct ContextArgs {
    /// What the calls are for: interactive (a person waits), serverless (billed by duration), background (no one
    /// waits), reconnecting (a long-lived connection), near (a nearby API), far (a database or a distant service)
    #[arg(long = "for", value_name = "PURPOSE", value_parser = offering(value::<Purpose>, purposes),
          hide_possible_values = true)]
    purpose: Option<Purpose>,

    /// Number of clients that use the policy against one server
    #[arg(long, value_name = "N", value_parser = count)]
    clients: Option<NonZeroU64>,

    /// Capacity of that server in connections or requests per second, such as 500/s or 30/min
    #[arg(long, value_name = "RATE", value_parser = value::<Rate>)]
    capacity: Option<Rate>,

    /// Call rate of all clients together, such as 800/s
    #[arg(long, value_name = "RATE", value_parser = value::<Rate>)]
    rps: Option<Rate>,

    /// Time after its start within which a call must succeed to be useful
    #[arg(long, value_name = "DUR", value_parser = length)]
    within: Option<Duration>,

    /// How long the caller holds its work item: the visibility timeout of a queue, the lease of a lock
    #[arg(long, value_name = "DUR", value_parser = length)]
    lease: Option<Duration>,

    /// Maximum run time of the function that makes the call
    #[arg(long, value_name = "DUR", value_parser = length)]
    invocation: Option<Duration>,

    /// Timeout of one attempt
    #[arg(long, value_name = "DUR", value_parser = length)]
    attempt_timeout: Option<Duration>,

    /// Retry-After that the server usually sends
    #[arg(long, value_name = "DUR", value_parser = length)]
    retry_after: Option<Duration>,

    /// Number of requests that may queue at the server; further ones are rejected
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    backlog: Option<NonZeroU32>,

    /// Length of an outage: budgets and suggestions are simulated in outages of half of it, of it, and twice as long
    /// [default: stalls of 2s, 15s and 1m for calls; 0s, 1m and 10m for a fleet]
    #[arg(long, value_name = "DUR", value_parser = length)]
    down: Option<Duration>,

    /// Timer resolution [default: 1ms]
    #[arg(long, value_name = "DUR", value_parser = length)]
    tick: Option<Duration>,

    /// Number of layers that retry the same call, including this one
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    layers: Option<NonZeroU32>,

    /// Whether the operation is safe to repeat: yes, no, or key, if all attempts carry the same idempotency key
    #[arg(long, value_name = "yes|key|no", value_parser = value::<Idempotency>)]
    idempotent: Option<Idempotency>,

    /// Guard that all calls of a process share, which is checked at the given --rps and --capacity: window, tokens,
    /// throttle, success-rate or breaker. Without a name, an unknown budget
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "yes",
        value_parser = value::<Budgeted>
    )]
    budget: Option<Budgeted>,
}

impl From<&ContextArgs> for DeploymentContext {
    fn from(args: &ContextArgs) -> Self {
        let known = args.purpose.into_iter().fold(Self::default(), Self::purpose);
        let known = args.clients.into_iter().fold(known, Self::clients);
        let known = args.capacity.into_iter().fold(known, Self::capacity);
        let known = args.rps.into_iter().fold(known, Self::requests);
        let known = args.within.into_iter().fold(known, Self::deadline);
        let known = args.lease.into_iter().fold(known, Self::lease);
        let known = args.invocation.into_iter().fold(known, Self::invocation);
        let known = args.attempt_timeout.into_iter().fold(known, Self::attempt_timeout);
        let known = args.retry_after.into_iter().fold(known, Self::retry_after);
        let known = args.backlog.into_iter().fold(known, Self::backlog);
        let known = args.down.into_iter().fold(known, Self::down);
        let known = args.tick.into_iter().fold(known, Self::tick);
        let known = args.layers.into_iter().fold(known, Self::layers);
        let known = args.idempotent.into_iter().fold(known, Self::idempotency);
        args.budget.into_iter().fold(known, Self::budget)
    }
}

/// Parses a value of the lint. clap shows the flag and the value, so the error says only what is expected.
fn value<T: FromStr<Err = ParseValueError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseValueError| format!("expected {}", error.expected()))
}

/// Returns the names of purposes for completions.
pub(crate) fn purposes() -> Vec<&'static str> {
    vec!["interactive", "serverless", "background", "reconnecting", "near", "far"]
}

/// Returns the names of formats for completions.
fn formats() -> Vec<&'static str> {
    Format::all().map(Format::name).collect()
}

fn format(text: &str) -> Result<Format, String> {
    text.parse().map_err(|_| format!("expected one of {}", formats().join(", ")))
}

/// Returns the codes of all rules for completions.
fn codes() -> Vec<&'static str> {
    Rule::all().map(Rule::code).collect()
}

fn count(text: &str) -> Result<NonZeroU64, String> {
    parse_count(text).map_err(|error| format!("expected {}", error.expected()))
}

fn length(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Some(length)) => Ok(length),
        Ok(None) => Err("a finite duration is required; omit the flag for no limit".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn rule(text: &str) -> Result<&'static Rule, String> {
    Rule::find(text).ok_or_else(|| "unknown rule; `stagger check --rules` lists all rules".to_owned())
}
