use std::process::ExitCode;

use stagger_core::{Policy, Seed};

use super::forecast::{Client, Forecast, draw};
use super::json::Document;
use super::notes::{Note, notes};
use super::pictures::{self, ClientStyle, Quantity};
use super::report;
use super::verdict::{Answer, Verdict};
use crate::output::error::CliError;
use crate::output::write::to_json;
use crate::plot::{RenderOptions, Spacing, svg};

/// The default seed of the drawn clients, so that a plan is reproducible.
const SEED: u64 = 1;

/// Number of clients in a plot: more would overlap in a terminal.
const IN_TERMINAL: usize = 3;
const IN_SVG: usize = 5;

/// Maximum number of drawn delays, which fit the memory of a small machine.
const MAX_DRAWS: u64 = 10_000_000;

/// The forecast of a policy with some drawn clients, and how to show them.
#[derive(Debug)]
pub struct Plan {
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
    /// Forecasts `retries` delays of a policy, or as many as are worth showing, and draws clients with `seed` (1 if it
    /// is not given). The verdict on a `sample` says whether the drawn delays agree with the forecast.
    ///
    /// # Errors
    ///
    /// If the sample needs more than ten million draws.
    pub fn new(
        policy: Policy,
        retries: Option<u32>,
        sample: Option<u32>,
        seed: Option<u64>,
        spacing: Spacing,
    ) -> Result<Self, CliError> {
        let forecast = Forecast::new(policy, retries);
        let retries = forecast.rows.len();
        let sampled = sample.unwrap_or(0);
        let draws = u64::from(sampled) * retries as u64;
        if draws > MAX_DRAWS {
            return Err(CliError::usage(format_args!(
                "--sample {sampled} with {retries} retries draws {draws} delays; the maximum is {MAX_DRAWS}; lower \
                 --sample or \
                 --retries"
            )));
        }
        let seed = Seed::new(seed.unwrap_or(SEED));
        let sampled = sampled as usize;
        let clients = draw(&forecast.policy, seed, sampled.max(IN_SVG), retries);
        let sample = sample.map(|_| (sampled, Verdict::new(&forecast, &clients[..sampled])));
        Ok(Self { notes: notes(&forecast), forecast, seed, clients, sample, spacing })
    }

    pub fn text(&self, options: RenderOptions) -> String {
        let shown = &self.clients[..IN_TERMINAL];
        let mut out = report::report(&self.forecast, &self.notes, shown, self.spacing, options);
        if let Some((sampled, verdict)) = &self.sample {
            out.push_str(&report::sample(verdict, self.seed.get(), *sampled, options));
        }
        options.glyphs.transliterate(&out).into_owned()
    }

    pub fn json(&self) -> Result<String, CliError> {
        let mut document = Document::new(&self.forecast, &self.notes);
        if let Some((sampled, verdict)) = &self.sample {
            document = document.with_sample(self.seed, &self.clients[..*sampled], verdict);
        }
        to_json(&document)
    }

    pub fn svg(&self) -> String {
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

    pub fn exit_code(&self) -> ExitCode {
        match &self.sample {
            Some((_, verdict)) if verdict.answer == Answer::No => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        }
    }
}
