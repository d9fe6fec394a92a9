use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use stagger_core::Seed;

use super::args::PlanArgs;
use super::clients::{self, Client};
use super::export::Export;
use super::forecast::Forecast;
use super::json::Document;
use super::notes::{Note, notes};
use super::pictures::{self, ClientStyle};
use super::profiles;
use super::report;
use super::verdict::{Answer, Verdict};
use crate::error::CliError;
use crate::output::{print, to_json};
use crate::plot::{RenderOptions, Spacing, paragraph, svg};
use crate::policy_args::PolicyArgs;
use crate::term::Term;

/// The seed of the clients that are drawn, unless another is given: the same plan looks the same
/// every time.
const SEED: u64 = 1;

/// Clients whose waits a picture shows: in a terminal more would hide one another.
const IN_TERMINAL: usize = 3;
const IN_SVG: usize = 5;

/// Delays that can be drawn without filling the memory of a small machine.
const MAX_DRAWS: u64 = 10_000_000;

/// `stagger plan`.
pub(crate) fn run(args: &PlanArgs, term: &Term) -> Result<ExitCode, CliError> {
    if args.profiles {
        let text =
            if args.json { profiles::json()? } else { profiles::text(RenderOptions::for_screen(&term.stdout, term)) };
        print(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(system) = args.export {
        return export(system, &args.policy, term);
    }
    let svg_to_stdout = args.svg.as_deref() == Some(Path::new("-"));
    if svg_to_stdout && args.json {
        return Err(CliError::usage("--json and --svg - both want standard output; name a file for the SVG"));
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

/// The configuration is the result; what is to be said of it must not be in it.
fn export(system: Export, policy: &PolicyArgs, term: &Term) -> Result<ExitCode, CliError> {
    let exported = system.policy(&policy.policy()?)?;
    print(exported.text.as_bytes())?;
    let options = RenderOptions::for_screen(&term.stderr, term);
    for note in exported.notes {
        let note = paragraph(&format!("note: {note}"), "      ", options);
        // Nobody is left to be told that nobody can be told.
        let _ = write!(io::stderr(), "{}", options.glyphs.transliterate(&note));
    }
    Ok(ExitCode::SUCCESS)
}

/// All that there is to tell about a policy.
struct Plan {
    forecast: Forecast,
    notes: Vec<Note>,
    seed: Seed,
    /// At least those that a picture shows.
    clients: Vec<Client>,
    /// What `--sample` asks for: so many of the clients, and the verdict on them.
    sample: Option<(usize, Verdict)>,
    spacing: Spacing,
}

impl Plan {
    fn new(args: &PlanArgs) -> Result<Self, CliError> {
        let forecast = Forecast::new(args.policy.policy()?, args.retries);
        let retries = forecast.rows.len();
        let asked = args.sample.unwrap_or(0);
        let draws = u64::from(asked) * retries as u64;
        if draws > MAX_DRAWS {
            return Err(CliError::usage(format_args!(
                "--sample {asked} of {retries} retries is {draws} delays, and {MAX_DRAWS} is the most; \
                 lower --sample or --retries"
            )));
        }
        let seed = Seed::new(args.policy.seed.unwrap_or(SEED));
        let asked = asked as usize;
        let clients = clients::draw(&forecast.policy, seed, asked.max(IN_SVG), retries);
        let sample = args.sample.map(|_| (asked, Verdict::new(&forecast, &clients[..asked])));
        Ok(Self { notes: notes(&forecast), forecast, seed, clients, sample, spacing: args.scale.into() })
    }

    fn text(&self, options: RenderOptions) -> String {
        let shown = &self.clients[..IN_TERMINAL];
        let mut out = report::report(&self.forecast, &self.notes, shown, self.spacing, options);
        if let Some((asked, verdict)) = &self.sample {
            out.push_str(&report::sample(verdict, self.seed.get(), *asked, options));
        }
        options.glyphs.transliterate(&out).into_owned()
    }

    fn json(&self) -> Result<String, CliError> {
        let mut document = Document::new(&self.forecast, &self.notes);
        if let Some((asked, verdict)) = &self.sample {
            document = document.with_sample(self.seed, &self.clients[..*asked], verdict);
        }
        to_json(&document)
    }

    fn svg(&self) -> String {
        let shown = &self.clients[..IN_SVG];
        let mut figures = Vec::new();
        if !self.forecast.rows.is_empty() {
            figures.push(pictures::envelope(&self.forecast, shown, ClientStyle::Lines, self.spacing));
            figures.push(pictures::waited(&self.forecast, shown, ClientStyle::Lines, self.spacing));
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
