use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::{self, Workspace};
use crate::{Result, tool};

pub(crate) const MANIFEST: &str = "dev/fuzz/Cargo.toml";

/// The workspace has no unsafe code for a sanitizer to check, and without one the targets run several times as fast.
const SANITIZER: &str = "--sanitizer=none";

pub(crate) fn run(options: &Options) -> Result<Note> {
    let fuzz = Workspace::at(MANIFEST)?;
    let targets: Vec<_> = fuzz.packages.iter().flat_map(|package| package.targets("bin")).collect();
    cargo_fuzz("build", &[])?.run()?;
    let time = format!("-max_total_time={}", options.fuzz_seconds);
    for target in &targets {
        let limits = [target, "--", &time, "-timeout=25", "-verbosity=0", "-print_final_stats=1"];
        let dictionary = workspace::root().join(format!("dev/fuzz/dictionaries/{target}.dict"));
        let dictionary = dictionary.exists().then(|| format!("-dict={}", dictionary.display()));
        cargo_fuzz("run", &limits)?.args(dictionary).run()?;
    }
    Ok(Some(format!("{} targets, {} s each", targets.len(), options.fuzz_seconds)))
}

fn cargo_fuzz(command: &str, arguments: &[&str]) -> Result<Shell> {
    let directory = workspace::target_directory("fuzz")?;
    let shell = tool::cargo("fuzz", command)?
        .args(["--fuzz-dir", "dev/fuzz", SANITIZER, "--target-dir"])
        .args([directory])
        .args(arguments);
    // cargo-fuzz needs unstable compiler flags, which a stable compiler accepts with this variable.
    Ok(shell.env("RUSTC_BOOTSTRAP", "1"))
}
