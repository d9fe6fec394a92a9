use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use stagger_core::text::parse_duration;
use stagger_sim::lint::{Budgeted, DeploymentContext, Idempotency, Purpose, Rate, Rule, parse_count};

use crate::policy_args::PolicyArgs;

/// Find what makes a storm of a policy, and say how to mend it
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
What is not said about the circumstances is not guessed: rules that need to know it stay silent.
Every figure is a forecast of the policy itself; help has been tried, and what follows `help:` can be pasted.
Exit status: 0; 1 if there are findings; 2 for a command line that makes no sense.")]
pub(crate) struct CheckArgs {
    /// Policies to check, in the words of --policy; the flags override each of them
    #[arg(value_name = "POLICY")]
    pub(crate) policies: Vec<String>,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) circumstances: CircumstancesArgs,

    /// Judge delays that have happened instead of a policy: what `stagger run --log json` has written, or lines of
    /// DELAY CLIENT RETRY TIME, of which the delay is enough; '-' is standard input. With a policy, or one that the log
    /// names, it also says whether they are what the policy gives
    #[arg(
        long,
        value_name = "FILE|-",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["policies", "CircumstancesArgs"],
        help_heading = "Check"
    )]
    pub(crate) log: Option<PathBuf>,

    /// Findings of these rules are meant: leave them out
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = rule, help_heading = "Check")]
    pub(crate) allow: Vec<&'static Rule>,

    /// List the rules
    #[arg(long, conflicts_with_all = ["policies", "log", "allow", "explain"], help_heading = "Check")]
    pub(crate) rules: bool,

    /// Say at length what a rule finds, and what to do about it
    #[arg(
        long,
        value_name = "CODE",
        value_parser = rule,
        conflicts_with_all = ["policies", "log", "allow", "json"],
        help_heading = "Check"
    )]
    pub(crate) explain: Option<&'static Rule>,

    /// Print findings as JSON (schema stagger.check/1)
    #[arg(long, help_heading = "Check")]
    pub(crate) json: bool,
}

/// What is known of the place where the policy is used.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Circumstances")]
pub(crate) struct CircumstancesArgs {
    /// What the calls are for: interactive (a person waits), serverless (a function that is billed by its time),
    /// background (nobody waits), reconnecting (a connection that is kept up), near (an API close by), far (a database,
    /// a far service)
    #[arg(long = "for", value_name = "PURPOSE")]
    purpose: Option<Purpose>,

    /// How many clients use the policy against one server
    #[arg(long, value_name = "N", value_parser = parse_count)]
    clients: Option<NonZeroU64>,

    /// What that server takes: connections or requests, as in 500/s or 30/min
    #[arg(long, value_name = "RATE")]
    capacity: Option<Rate>,

    /// How many calls are begun, by all clients together
    #[arg(long, value_name = "RATE")]
    rps: Option<Rate>,

    /// How long after its start a call is of use to whoever made it
    #[arg(long, value_name = "DUR", value_parser = length)]
    within: Option<Duration>,

    /// How long what is worked on stays ours: the visibility time of a queue, the lease of a lock
    #[arg(long, value_name = "DUR", value_parser = length)]
    lease: Option<Duration>,

    /// How long the function that makes the call may run
    #[arg(long, value_name = "DUR", value_parser = length)]
    invocation: Option<Duration>,

    /// How long one attempt may take
    #[arg(long, value_name = "DUR", value_parser = length)]
    attempt_timeout: Option<Duration>,

    /// What the server usually asks for: its Retry-After
    #[arg(long, value_name = "DUR", value_parser = length)]
    hint: Option<Duration>,

    /// The resolution of the timers that are slept on [default: 1ms]
    #[arg(long, value_name = "DUR", value_parser = length)]
    tick: Option<Duration>,

    /// How many layers retry the same call, this one included
    #[arg(long, value_name = "N")]
    layers: Option<NonZeroU32>,

    /// Whether the operation may be carried out twice: yes, no, or by a key that all attempts have in common
    #[arg(long, value_name = "yes|key|no")]
    idempotent: Option<Idempotency>,

    /// A budget bounds the retries of all calls together
    #[arg(long)]
    budget: bool,
}

impl From<&CircumstancesArgs> for DeploymentContext {
    fn from(args: &CircumstancesArgs) -> Self {
        fn set<T>(
            known: DeploymentContext,
            with: fn(DeploymentContext, T) -> DeploymentContext,
            value: Option<T>,
        ) -> DeploymentContext {
            value.into_iter().fold(known, with)
        }
        let known = set(Self::default(), Self::purpose, args.purpose);
        let known = set(known, Self::clients, args.clients);
        let known = set(known, Self::capacity, args.capacity);
        let known = set(known, Self::requests, args.rps);
        let known = set(known, Self::deadline, args.within);
        let known = set(known, Self::lease, args.lease);
        let known = set(known, Self::invocation, args.invocation);
        let known = set(known, Self::attempt_timeout, args.attempt_timeout);
        let known = set(known, Self::retry_after, args.hint);
        let known = set(known, Self::tick, args.tick);
        let known = set(known, Self::layers, args.layers);
        let known = set(known, Self::idempotency, args.idempotent);
        set(known, Self::budget, args.budget.then_some(Budgeted::Yes))
    }
}

fn length(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Some(length)) => Ok(length),
        Ok(None) => Err("there is no limit in it; leave the flag out".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn rule(text: &str) -> Result<&'static Rule, String> {
    Rule::find(text).ok_or_else(|| "it is no rule; `stagger check --rules` lists them".to_owned())
}
