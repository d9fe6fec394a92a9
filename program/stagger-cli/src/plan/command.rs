use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use stagger_config::export::Circumstances;
use stagger_core::Seed;

use super::args::PlanArgs;
use super::clients::{self, Client};
use super::export::Export;
use super::forecast::Forecast;
use super::json::Document;
use super::notes::{Note, notes};
use super::pictures::{self, ClientStyle, Quantity};
use super::profiles;
use super::report;
use super::verdict::{Answer, Verdict};
use crate::check::{ConfigPolicy, is_file, policies_of};
use crate::output::error::CliError;
use crate::output::terminal::Term;
use crate::output::write::{print, to_json};
use crate::plot::{RenderOptions, Spacing, paragraph, svg};
use crate::policy_args::PolicyArgs;

/// The default seed of the drawn clients, so that a plan is reproducible.
const SEED: u64 = 1;

/// Number of clients in a plot: more would overlap in a terminal.
const IN_TERMINAL: usize = 3;
const IN_SVG: usize = 5;

/// Maximum number of drawn delays, which fit the memory of a small machine.
const MAX_DRAWS: u64 = 10_000_000;

pub(crate) fn run(args: &PlanArgs, term: &Term) -> Result<ExitCode, CliError> {
    if args.profiles {
        let text =
            if args.json { profiles::json()? } else { profiles::text(RenderOptions::for_screen(&term.stdout, term)) };
        print(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let args = match &args.subject {
        None => args,
        Some(subject) if is_file(subject) => return of_file(Path::new(subject), args, term),
        Some(policy) => &with_policy(args, policy),
    };
    if let Some(system) = args.export {
        return export(system, args, term);
    }
    let svg_to_stdout = args.svg.as_deref() == Some(Path::new("-"));
    if svg_to_stdout && args.json {
        return Err(CliError::usage("--json and --svg - both write to standard output; write the SVG to a file"));
    }
    let plan = Plan::new(args)?;
    if let Some(path) = args.svg.as_deref().filter(|_| !svg_to_stdout) {
        fs::write(path, plan.svg())
            .map_err(|source| CliError::io(format_args!("cannot write {}", path.display()), source))?;
    }
    let text = if svg_to_stdout {
        plan.svg()
    } else if args.json {
        plan.json()?
    } else {
        plan.text(RenderOptions::for_screen(&term.stdout, term))
    };
    print(text.as_bytes())?;
    Ok(plan.exit_code())
}

/// Plans the policies of a configuration, one after the other.
fn of_file(file: &Path, args: &PlanArgs, term: &Term) -> Result<ExitCode, CliError> {
    let found = policies_of(file, args.entry.as_deref())?;
    let has_one_output = args.json || args.svg.is_some() || args.export.is_some();
    if has_one_output && found.len() > 1 {
        let paths: Vec<_> = found.iter().map(|found| &*found.path).collect();
        return Err(CliError::usage(format_args!(
            "{} has several policies, and this output is of one; choose it with --entry: {}",
            file.display(),
            paths.join(", ")
        )));
    }
    let mut code = ExitCode::SUCCESS;
    let options = RenderOptions::for_screen(&term.stdout, term);
    for (nth, found) in found.iter().enumerate() {
        if !has_one_output {
            let heading = paragraph(&found.label, "  ", options);
            print(format!("{}{heading}", if nth > 0 { "\n" } else { "" }).as_bytes())?;
        }
        let planned = run(&with_circumstances(args, found), term)?;
        code = if planned == ExitCode::SUCCESS { code } else { planned };
    }
    Ok(code)
}

/// Returns the arguments with another policy.
fn with_policy(args: &PlanArgs, policy: &str) -> PlanArgs {
    let policy = PolicyArgs { policy: Some(policy.to_owned()), ..args.policy.clone() };
    PlanArgs { subject: None, entry: None, policy, ..args.clone() }
}

/// Returns the arguments with a policy of a file, and with what the file says beside it where no flag does.
fn with_circumstances(args: &PlanArgs, found: &ConfigPolicy) -> PlanArgs {
    PlanArgs {
        attempt_timeout: args.attempt_timeout.or(found.attempt),
        within: args.within.or(found.overall),
        guards: args.guards.or(found.budget),
        ..with_policy(args, &found.policy)
    }
}

/// Prints the exported configuration to standard output and its notes to standard error.
fn export(system: Export, args: &PlanArgs, term: &Term) -> Result<ExitCode, CliError> {
    let circumstances = Circumstances::default();
    let circumstances = args.attempt_timeout.into_iter().fold(circumstances, Circumstances::attempt_timeout);
    let circumstances = args.within.into_iter().fold(circumstances, Circumstances::timeout);
    let circumstances = args.guards.into_iter().fold(circumstances, Circumstances::budget);
    let exported = system.policy(&args.policy.policy()?, &circumstances)?;
    print(exported.text.as_bytes())?;
    let options = RenderOptions::for_screen(&term.stderr, term);
    for note in exported.notes {
        let note = paragraph(&format!("note: {note}"), "      ", options);
        // Ignored: if standard error is closed, there is no other place to report it.
        let _ = write!(io::stderr(), "{}", options.glyphs.transliterate(&note));
    }
    Ok(ExitCode::SUCCESS)
}

struct Plan {
    forecast: Forecast,
    notes: Vec<Note>,
    seed: Seed,
    /// Drawn clients, at least as many as a plot shows.
    clients: Vec<Client>,
    /// For `--sample`: the number of clients requested, and the verdict on their delays.
    sample: Option<(usize, Verdict)>,
    spacing: Spacing,
}

impl Plan {
    fn new(args: &PlanArgs) -> Result<Self, CliError> {
        let forecast = Forecast::new(args.policy.policy()?, args.retries);
        let retries = forecast.rows.len();
        let sampled = args.sample.unwrap_or(0);
        let draws = u64::from(sampled) * retries as u64;
        if draws > MAX_DRAWS {
            return Err(CliError::usage(format_args!(
                "--sample {sampled} with {retries} retries draws {draws} delays; the maximum is {MAX_DRAWS}; lower --sample or \
                 --retries"
            )));
        }
        let seed = Seed::new(args.policy.seed.unwrap_or(SEED));
        let sampled = sampled as usize;
        let clients = clients::draw(&forecast.policy, seed, sampled.max(IN_SVG), retries);
        let sample = args.sample.map(|_| (sampled, Verdict::new(&forecast, &clients[..sampled])));
        Ok(Self { notes: notes(&forecast), forecast, seed, clients, sample, spacing: args.scale })
    }

    fn text(&self, options: RenderOptions) -> String {
        let shown = &self.clients[..IN_TERMINAL];
        let mut out = report::report(&self.forecast, &self.notes, shown, self.spacing, options);
        if let Some((sampled, verdict)) = &self.sample {
            out.push_str(&report::sample(verdict, self.seed.get(), *sampled, options));
        }
        options.glyphs.transliterate(&out).into_owned()
    }

    fn json(&self) -> Result<String, CliError> {
        let mut document = Document::new(&self.forecast, &self.notes);
        if let Some((sampled, verdict)) = &self.sample {
            document = document.with_sample(self.seed, &self.clients[..*sampled], verdict);
        }
        to_json(&document)
    }

    fn svg(&self) -> String {
        let shown = &self.clients[..IN_SVG];
        let mut figures = Vec::new();
        if !self.forecast.rows.is_empty() {
            figures.extend([Quantity::Delay, Quantity::TotalWait].map(|quantity| {
                pictures::over_retries(quantity, &self.forecast, shown, ClientStyle::Lines, self.spacing)
            }));
        }
        let drawn = format!("Clients drawn with seed {}.", self.seed.get());
        let mut remarks: Vec<&str> = self.notes.iter().map(|note| &*note.text).collect();
        remarks.push(&drawn);
        if let Some((_, verdict)) = &self.sample {
            if verdict.checks.iter().any(|check| check.fit.is_some()) {
                figures.push(pictures::tenths(verdict));
                figures.push(pictures::distance(verdict));
            }
            remarks.push(&verdict.text);
        }
        let page = svg::Page {
            title: "Delays of a retry policy".to_owned(),
            subject: self.forecast.policy.to_string(),
            remarks: remarks.into_iter().map(str::to_owned).collect(),
        };
        svg::document(&page, &figures)
    }

    fn exit_code(&self) -> ExitCode {
        match &self.sample {
            Some((_, verdict)) if verdict.answer == Answer::No => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        }
    }
}
