//! Measures stagger, hand-written floors and other retry crates in one run.
//!
//! ```text
//! cargo run --profile dist -p stagger-bench --features peers                           # everything; takes minutes
//! cargo run --profile dist -p stagger-bench --features peers -- --section A --quick    # one section; takes seconds
//! ```
//!
//! Times differ between machines; ratios and instruction counts are stable.

mod blocking;
mod callgrind;
mod case;
mod delay;
mod failures;
mod findings;
mod future;
mod guards;
mod http;
mod measure;
mod operation;
mod options;
mod pending;
mod report;
mod timing;
#[cfg(feature = "peers")]
mod tower_stack;
mod websocket;
mod weight;

use std::io::{self, Write as _};
use std::process::ExitCode;

use case::{Case, Section};
use clap::Parser as _;
use options::Options;
use report::Report;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stagger-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> io::Result<()> {
    if let (Some(id), Some(iterations)) = (&options.run, options.iterations) {
        return measure::run_one(&all_cases(), id, iterations);
    }
    if let Some(id) = &options.measure_memory {
        return measure::print_usage_of(|| measure::run_one(&all_cases(), id, 0));
    }
    let text = measured(options)?.render(options.format());
    io::stdout().write_all(text.as_bytes())
}

fn measured(options: &Options) -> io::Result<Report> {
    let wanted = |case: &Case| options.wants(case.table.section());
    let cases: Vec<_> = all_cases().into_iter().filter(wanted).collect();
    let rows = measure::rows(&cases, options.effort(), options.counts_instructions())?;
    let dependants = if options.wants(Section::G) { weight::measure(options.effort())? } else { Vec::new() };
    Ok(Report { rows, dependants })
}

fn all_cases() -> Vec<Case> {
    let sections = [
        delay::cases(),
        blocking::cases(),
        future::cases(),
        failures::cases(),
        guards::cases(),
        pending::cases(),
        http::cases(),
        websocket::cases(),
    ];
    sections.concat()
}
