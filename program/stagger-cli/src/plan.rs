use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::StringValueParser;
use clap::{Args, ValueHint};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::suggestion::offering;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::print;
use stagger_terminal::plan::{Plan, profiles_json, profiles_text};
use stagger_terminal::plot::{RenderOptions, Spacing, paragraph};
use stagger_terminal::policy_args::{PolicyArgs, is_file, policies};

/// The flags of `plan`
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
    /// Policy to plan, in the syntax of --policy; or a configuration of Istio, Envoy, gRPC, nginx, systemd and others,
    /// whose policies are planned: a FILE that contains '/' or '.', or '-' for standard input. Policy flags override
    /// each of them
    #[arg(value_name = "POLICY|FILE", hide_possible_values = true, conflicts_with_all = ["policy", "profiles"],
          value_parser = offering(StringValueParser::new(), policies))]
    pub(crate) subject: Option<String>,

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

    /// Scale of the delay axis in plots
    #[arg(long, value_enum, default_value_t, help_heading = "Plan")]
    pub(crate) scale: Spacing,
}

impl PlanArgs {
    /// Returns the file whose policies are to be planned, if the positional argument is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        let subject = self.subject.as_deref()?;
        if is_file(subject) { Some(Path::new(subject)) } else { None }
    }

    /// Returns whether the output is one document, which holds one policy.
    pub(crate) fn has_one_output(&self) -> bool {
        self.json || self.svg.is_some()
    }

    /// Returns the policy flags; a positional policy stands for `--policy`.
    pub(crate) fn policy(&self) -> PolicyArgs {
        match &self.subject {
            Some(policy) => self.with_policy(policy),
            None => self.policy.clone(),
        }
    }

    /// Returns the policy flags over another policy.
    pub(crate) fn with_policy(&self, policy: &str) -> PolicyArgs {
        PolicyArgs { policy: Some(policy.to_owned()), ..self.policy.clone() }
    }
}

/// A policy of a file, with what is said above its plan.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) label: String,
    /// In the policy language.
    pub(crate) policy: String,
}

/// Plans the policy of the arguments, or lists the profiles. Of `found`, plans each policy in its place.
pub(crate) fn run(args: &PlanArgs, found: Option<&[Found]>, term: &Term) -> Result<ExitCode, CliError> {
    let options = RenderOptions::for_screen(&term.stdout, term);
    if args.profiles {
        let text = if args.json { profiles_json()? } else { profiles_text(options) };
        print(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(found) = found else { return plan(args, &args.policy(), term) };
    let mut code = ExitCode::SUCCESS;
    for (nth, Found { label, policy }) in found.iter().enumerate() {
        if !args.has_one_output() {
            let heading = paragraph(label, "  ", options);
            print(format!("{}{heading}", if nth > 0 { "\n" } else { "" }).as_bytes())?;
        }
        let planned = plan(args, &args.with_policy(policy), term)?;
        if planned != ExitCode::SUCCESS {
            code = planned;
        }
    }
    Ok(code)
}

fn plan(args: &PlanArgs, policy: &PolicyArgs, term: &Term) -> Result<ExitCode, CliError> {
    let svg_to_stdout = args.svg.as_deref() == Some(Path::new("-"));
    if svg_to_stdout && args.json {
        return Err(CliError::usage("--json and --svg - both write to standard output; write the SVG to a file"));
    }
    let plan = Plan::new(policy.policy()?, args.retries, args.sample, policy.seed, args.scale)?;
    let text = match &args.svg {
        Some(_) if svg_to_stdout => plan.svg(),
        svg => {
            if let Some(path) = svg {
                fs::write(path, plan.svg())
                    .map_err(|source| CliError::io(format_args!("cannot write {}", path_shown(path)), source))?;
            }
            if args.json { plan.json()? } else { plan.text(RenderOptions::for_screen(&term.stdout, term)) }
        }
    };
    print(text.as_bytes())?;
    Ok(plan.exit_code())
}
