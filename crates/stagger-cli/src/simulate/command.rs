use std::io::{self, Write};
use std::process::ExitCode;

use stagger_core::Seed;

use super::args::SimulateArgs;
use super::assertion::Assertion;
use super::charts::charts;
use super::contender::contenders;
use super::interrupt::Interrupt;
use super::measure::measures;
use super::outputs::Outputs;
use super::record::Records;
use super::runs::{Simulated, simulate};
use super::settings::Request;
use super::world::World;
use super::{csv, html, markdown, summary, svg};
use crate::error::CliError;
use crate::output::{print, to_json};
use crate::plot::Look;
use crate::term::Term;

/// What a program exits with that ^C has ended.
const INTERRUPTED: u8 = 130;

/// Runs at most: with the figures of more a machine's memory would be full.
const MOST_RUNS: usize = 10_000;

/// `stagger simulate`.
pub(crate) fn run(args: &SimulateArgs, term: &Term) -> Result<ExitCode, CliError> {
    let mut request = Request::new(args)?;
    let world = World::new(request.kind, core::mem::take(&mut request.settings))?;
    let contenders = contenders(&request, &args.policy, world.guards())?;
    let measures = measures(&world.scene());
    let assertions = request.assert.iter().map(|list| Assertion::list(list, measures)).collect::<Result<Vec<_>, _>>();
    let assertions = assertions.map_err(|error| CliError::usage(format_args!("--assert: {error}")))?.concat();
    let seeds = seeds(&request, &world);
    if contenders.len() * seeds.len() > MOST_RUNS {
        return Err(CliError::usage(format_args!(
            "{} policies with {} seeds are more than {MOST_RUNS} runs; lower --seeds, or compare fewer",
            contenders.len(),
            seeds.len(),
        )));
    }
    let outputs = Outputs::open(args)?;
    let interrupt = Interrupt::listen()?;
    let simulated = simulate(&world, &contenders, &seeds, &interrupt, term)?;
    let Simulated { storm, planned, finished } = &simulated;
    if *finished == 0 {
        say("interrupted before any run was finished; nothing is written");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let records = Records::of(storm)?;
    write(&simulated, &records, outputs, Look::of(&term.stdout, term))?;
    let failures: Vec<_> = assertions.iter().flat_map(|assertion| assertion.failures(&records)).collect();
    failures.iter().for_each(|failure| say(&format!("failed: {failure}")));
    if finished < planned {
        say(&format!("interrupted: {finished} of {planned} runs are finished, and the figures are of those"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The seeds of a request; without chance all of them would give the same.
fn seeds(request: &Request, world: &World) -> Vec<Seed> {
    let count = if world.is_by_chance() { request.seeds } else { 1 };
    (0..u64::from(count)).map(|more| Seed::new(request.seed.wrapping_add(more))).collect()
}

fn write(simulated: &Simulated, records: &Records, outputs: Outputs, look: Look) -> Result<(), CliError> {
    let storm = &simulated.storm;
    let takes_stdout = outputs.take_stdout();
    let Outputs { html, json, csv, csv_series, md, svg } = outputs;
    let document = to_json(storm)?;
    if svg.is_some() || html.is_some() {
        let charts = charts(storm, records);
        if let Some(directory) = svg {
            svg::write(storm, records, &charts, &directory)?;
        }
        if let Some(target) = html {
            target.write(html::page(storm, records, &charts, &document, &command_line()).as_bytes())?;
        }
    }
    if let Some(target) = csv {
        target.write(&csv::figures(records)?)?;
    }
    if let Some(target) = csv_series {
        target.write(&csv::series(storm)?)?;
    }
    if let Some(target) = md {
        target.write(markdown::table(storm, records).as_bytes())?;
    }
    if let Some(target) = json {
        target.write(document.as_bytes())?;
    }
    if takes_stdout { Ok(()) } else { print(summary::summary(storm, records, look).as_bytes()) }
}

/// What was typed, so that it can be typed again.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // No word has a NUL byte, which is all that cannot be quoted.
    let words = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
    format!("stagger {words}")
}

fn say(text: &str) {
    // Where nobody hears it, the exit code still tells.
    let _ = writeln!(io::stderr(), "{text}");
}
