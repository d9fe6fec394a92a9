//! Tries the laws in many random circumstances: see `--help`.

use std::process::ExitCode;

use stagger_truth::law::shared;
use stagger_truth::laws;

const HELP: &str = "usage: cargo xtask truth [--cases N] [--seed S] [LAW…]

Tries the laws in N random cases in sum (default: 1000), each beginning with the case of seed S (default: 0), and counts
what was found. A law whose cases take long gets fewer of them. Exits with 1 if a law is broken.
";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let (mut cases, mut seed, mut names) = (1_000_u64, 0_u64, Vec::new());
    let number = |name: &str, value: Option<String>| {
        let value = value.ok_or_else(|| format!("{name} needs a number"))?;
        value.parse::<u64>().map_err(|_| format!("{name}: `{value}` is not a number"))
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                print!("{HELP}");
                laws::ALL.iter().for_each(|law| println!("  {:<10} {}", law.name, law.statement));
                return Ok(ExitCode::SUCCESS);
            }
            "--cases" => cases = number("--cases", arguments.next())?,
            "--seed" => seed = number("--seed", arguments.next())?,
            name if laws::ALL.iter().any(|law| law.name == name) => names.push(argument),
            other => return Err(format!("`{other}` is neither an option nor a law")),
        }
    }
    let laws = laws::ALL.into_iter().filter(|law| names.is_empty() || names.iter().any(|name| name == law.name));
    let (mut tried, mut broken) = (0, 0);
    for (law, count) in shared(laws.collect(), cases) {
        let trial = law.trial(seed..seed.saturating_add(count), None);
        println!("{}: {}\n{trial}", law.name, law.statement);
        (tried, broken) = (tried + count, broken + trial.broken.len());
    }
    println!("{tried} cases, {broken} broken");
    Ok(if broken > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
