use std::fs;
use std::path::Path;
use std::process::ExitCode;

use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::print;
use stagger_terminal::plan::{Plan, profiles_json, profiles_text};
use stagger_terminal::plot::{RenderOptions, paragraph};
use stagger_terminal::policy_args::PolicyArgs;

use super::args::PlanArgs;

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
                    .map_err(|source| CliError::io(format_args!("cannot write {}", path.display()), source))?;
            }
            if args.json { plan.json()? } else { plan.text(RenderOptions::for_screen(&term.stdout, term)) }
        }
    };
    print(text.as_bytes())?;
    Ok(plan.exit_code())
}
