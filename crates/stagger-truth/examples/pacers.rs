//! Prints how the pacer and models of other controllers do in every scenario, as a table in Markdown: goodput and the
//! share refused in percent, the seconds to recover from a step, and the fairness among processes.
//!
//! ```sh
//! cargo run --release -p stagger-truth --example pacers
//! cargo run --release -p stagger-truth --example pacers -- 20
//! ```
//!
//! The argument is the number of seeds, 1 by default; the guide's table has 20.

use std::process::ExitCode;

use stagger_truth::pacing::comparison::table;
use stagger_truth::pacing::scenarios::{HELD_OUT, KNOWN, TRIED};

fn main() -> ExitCode {
    let seeds = match std::env::args().nth(1).map(|text| text.parse()) {
        None => 1,
        Some(Ok(seeds)) if seeds > 0 => seeds,
        Some(_) => {
            eprintln!("error: the argument is the number of seeds, from 1");
            return ExitCode::from(2);
        }
    };
    for (title, scenarios) in [("known", KNOWN), ("tried", TRIED), ("held out", HELD_OUT)] {
        println!("{title}\n\n{}", table(scenarios, seeds));
    }
    ExitCode::SUCCESS
}
