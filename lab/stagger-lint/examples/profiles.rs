//! Prints what policies do on the grid for connections (the default), jobs or calls, the lowest cost first: our
//! profiles and the registry's, or those that are given.
//!
//! ```sh
//! cargo run --release -p stagger-lint --example profiles -- connections
//! cargo run --release -p stagger-lint --example profiles -- jobs background-job \
//!     'exponential base=20s cap=2m jitter=50% max-attempts=10'
//! cargo run --release -p stagger-lint --example profiles -- choose
//! ```
//!
//! `choose` prints the policies for calls that the criterion chooses.

#[path = "../tests/laws/criterion.rs"]
mod criterion;
#[path = "../tests/laws/grid.rs"]
mod grid;

use std::process::ExitCode;

use stagger::profile::Profile;
use stagger::{Policy, Seed};
use stagger_sim::{Progress, Sweep};

use criterion::{CALLS, family};
use grid::{Figures, Grid, Kind};

/// The runs whose mean is printed.
const RUNS: u64 = 4;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn core::error::Error>> {
    let kind = match arguments.next().as_deref() {
        Some("choose") => return choose(),
        None | Some("connections") => Kind::Connections,
        Some("jobs") => Kind::Jobs,
        Some("calls") => Kind::Calls,
        _ => return Err("say choose, or connections, jobs or calls, and then the policies".into()),
    };
    let given: Vec<String> = arguments.collect();
    let policies: Vec<(String, Policy)> = if given.is_empty() {
        Profile::all().map(|profile| (profile.name().to_owned(), profile.policy())).collect()
    } else {
        given
            .into_iter()
            .map(|text| Ok((text.clone(), text.parse::<Policy>()?)))
            .collect::<Result<_, Box<dyn core::error::Error>>>()?
    };
    let grid = Grid::new(kind)?;
    let seeds: Vec<Seed> = (0..RUNS).map(Seed::new).collect();
    let runs =
        Sweep::new().run(&policies, &seeds, &Progress::new(), |(_, policy), seed, _| Some(grid.figures(policy, seed)));
    let mut rows: Vec<(f64, String)> = policies.iter().zip(&runs).map(|((name, _), runs)| row(name, runs)).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("   cost    peak  recovery  attempts   lost   alone    told   crowd");
    rows.iter().for_each(|(_, row)| println!("{row}"));
    Ok(())
}

/// Prints the policies for calls that the criterion chooses.
fn choose() -> Result<(), Box<dyn core::error::Error>> {
    let grid = Grid::new(Kind::Calls)?;
    println!("limits            alone    told  lost to every other failure  {} policies", family().count());
    for limits in CALLS {
        let policy = limits.choose().ok_or("no policy is within the limits")?;
        let (figures, lost) = (grid.computed(&policy), 0.5_f64.powi(limits.attempts as i32));
        let (attempts, crowd) = (limits.attempts, 100.0 * limits.crowd);
        let told = format!("{:7.3} s {:5.3} s {:5.1}%", figures.alone, figures.told, 100.0 * lost);
        println!("{attempts} x, {crowd:.0}%   {told}  {}: {policy}", limits.profile.name());
    }
    Ok(())
}

fn row(name: &str, runs: &[Option<Figures>]) -> (f64, String) {
    let mean = |of: &dyn Fn(&Figures) -> f64| runs.iter().flatten().map(of).sum::<f64>() / runs.len() as f64;
    let [peak, recovery, attempts, lost, alone, told, crowd] = core::array::from_fn(|at| mean(&|run| run.all()[at]));
    let cost = mean(&Figures::cost);
    let figures = format!("{cost:7.2} {peak:7.2} {recovery:8.1} s {attempts:8.2} {:5.1}% {alone:6.3} s", 100.0 * lost);
    (cost, format!("{figures} {told:6.3} s {:5.1}%  {name}", 100.0 * crowd))
}
