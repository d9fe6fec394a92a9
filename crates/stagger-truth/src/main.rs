//! Tries the laws in many random circumstances: see `--help`.

use std::process::ExitCode;

use stagger_truth::laws;

const HELP: &str = "usage: cargo xtask truth [--cases N] [--seed S] [LAW…]

Tries each law in N random cases, beginning with the case of seed S (default: 1000 cases from 0), and counts what was
found. Exits with 1 if a law is broken.
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
    let mut is_broken = false;
    for law in laws::ALL.iter().filter(|law| names.is_empty() || names.iter().any(|name| name == law.name)) {
        let trial = law.trial(seed..seed.saturating_add(cases), None);
        println!("{}: {}\n{trial}", law.name, law.statement);
        is_broken |= !trial.broken.is_empty();
    }
    Ok(if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
