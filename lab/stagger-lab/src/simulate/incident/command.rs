use std::process::ExitCode;

use stagger_core::Seed;

use super::catalog::{INCIDENTS, Incident, Model};
use super::comparison::{Runner, scenario_request, system_file};
use super::picture::picture;
use super::reference::Reference;
use super::report::{list, section, text};
use crate::simulate::args::SimulateArgs;
use crate::simulate::command::run_request;
use crate::simulate::system;
use stagger_report::storm::{Format, Interrupt, Outputs};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::target::Target;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::{print, say};
use stagger_terminal::plot::RenderOptions;

/// The first seed, and the number of seeds, unless the user says which.
const SEED: u64 = 1;
const SEEDS: u32 = 4;

/// Runs `stagger simulate @incident`, `@incident/NAME` or `@incident/NAME/PART`.
pub(crate) fn run(reference: Reference, args: &SimulateArgs, term: &Term) -> Result<ExitCode, CliError> {
    check_flags(reference, args)?;
    if args.print {
        let file = reference.printed().ok_or_else(|| {
            CliError::usage("--print: name an incident, as in: stagger simulate @incident/aws-2025-10 --print")
        })?;
        print(file.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let incidents = match reference {
        Reference::All if args.outputs.md.is_none() && args.outputs.svg.is_none() => {
            print(list(RenderOptions::for_screen(&term.stdout, term)).as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        Reference::All => INCIDENTS.iter().collect(),
        Reference::Both(incident) => vec![incident],
        Reference::One(incident, variant) => {
            return match incident.model {
                Model::System => system::run_file(&system_file(incident, variant)?, reference.to_string(), args, term),
                Model::Reconnect => {
                    let request = scenario_request(incident, variant)?.with_run_flags(args);
                    run_request(&request, args, term)
                }
            };
        }
    };
    compare(&incidents, args, term)
}

/// Runs incidents without and with their cures, and writes what became of them.
fn compare(incidents: &[&'static Incident], args: &SimulateArgs, term: &Term) -> Result<ExitCode, CliError> {
    let outputs = Outputs::open(&args.outputs)?;
    let interrupt = Interrupt::install()?;
    let first = args.policy.seed.unwrap_or(SEED);
    let seeds = 0..u64::from(args.seeds.unwrap_or(SEEDS));
    let seeds: Vec<_> = seeds.map(|offset| Seed::new(first.wrapping_add(offset))).collect();
    let runner = Runner { seeds: &seeds, interrupt: &interrupt, term };
    let mut comparisons = Vec::new();
    for incident in incidents {
        match runner.compare(incident)? {
            Some(comparison) => comparisons.push(comparison),
            None => {
                say(&format!("interrupted during @incident/{}; nothing was written", incident.name()));
                return Ok(ExitCode::from(interrupt.exit_status()));
            }
        }
    }
    let uses_stdout = outputs.uses_stdout();
    if let Some(directory) = &outputs.svg {
        for comparison in &comparisons {
            let target = Target::open(&directory.join(format!("{}.svg", comparison.incident.name())))?;
            target.write(picture(comparison).as_bytes())?;
        }
    }
    let pictures = outputs.svg.as_deref().map(|directory| directory.display().to_string());
    for (format, target) in outputs.targets {
        // Other formats were rejected.
        if format == Format::Markdown {
            let sections: Vec<_> = comparisons.iter().map(|one| section(one, pictures.as_deref())).collect();
            target.write(sections.join("\n").as_bytes())?;
        }
    }
    if !uses_stdout {
        let options = RenderOptions::for_screen(&term.stdout, term);
        let texts: Vec<_> = comparisons.iter().map(|comparison| text(comparison, options)).collect();
        print(texts.join("\n").as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rejects flags that an incident does not have.
fn check_flags(reference: Reference, args: &SimulateArgs) -> Result<(), CliError> {
    if let Some(flag) = args.setting() {
        return Err(CliError::usage(format_args!(
            "{flag} cannot be used with {reference}, whose settings are all in its file; print the file with --print, and \
             change it"
        )));
    }
    let of_one = [
        ("--find", args.find.is_some()),
        ("--frontier", args.frontier.is_some()),
        ("--assert", !args.assert.is_empty()),
        ("--output", args.outputs.output.is_some()),
        ("--json", args.outputs.json.is_some()),
        ("--csv", args.outputs.csv.is_some()),
        ("--csv-series", args.outputs.csv_series.is_some()),
    ];
    match (reference, of_one.into_iter().find(|(_, is_given)| *is_given)) {
        (Reference::All | Reference::Both(_), Some((flag, _))) => {
            let name = match reference {
                Reference::Both(incident) => incident.name(),
                _ => "NAME",
            };
            Err(CliError::usage(format_args!(
                "{flag} is for one of the two files of an incident; use @incident/{name}/failure or @incident/{name}/cure"
            )))
        }
        _ => Ok(()),
    }
}
