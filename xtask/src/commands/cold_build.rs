use std::ffi::OsString;
use std::fs;

use crate::Result;
use crate::shell::Shell;
use crate::workspace::{root, target_directory};

/// The libraries that are compared, each with the line of a manifest and with the features that a retry of an async
/// function needs.
const LIBRARIES: [(&str, &str); 4] = [
    ("stagger", ""),
    ("backon", r#"backon = { version = "1", default-features = false, features = ["tokio-sleep"] }"#),
    ("tokio-retry", r#"tokio-retry = "0.3""#),
    ("tower", r#"tower = { version = "0.5", features = ["retry", "timeout", "util"] }"#),
];

/// Builds an empty program with each library, from nothing and without the network, and prints the seconds: of the clock,
/// and of the processor, which depend less on what else the machine does.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    println!("{:<14}{:>8}{:>10}{:>10}", "library", "crates", "wall s", "user s");
    for (name, line) in LIBRARIES {
        let directory = target_directory("cold-build")?.join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(directory.join("src"))?;
        let own = format!("stagger = {{ path = {:?} }}", root().join("crates/stagger"));
        let dependency = if line.is_empty() { &own } else { line };
        let package = "[package]\nname = \"cold\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
        fs::write(directory.join("Cargo.toml"), format!("{package}\n[dependencies]\n{dependency}\n"))?;
        fs::write(directory.join("src/main.rs"), "fn main() {}\n")?;
        Shell::cargo("fetch --quiet").directory(&directory).run()?;
        let tree = Shell::cargo("tree --quiet --offline --prefix none --no-dedupe --edges normal,build");
        let tree = tree.directory(&directory).output()?;
        let mut crates: Vec<_> = tree.lines().skip(1).filter_map(|line| line.split(" (").next()).collect();
        crates.sort_unstable();
        crates.dedup();
        // The shell measures what cargo and all of its compilers used.
        let timed = "TIMEFORMAT='%R %U'; time cargo build --quiet --offline --target-dir target 2>&1";
        let seconds =
            Shell::new("bash").args(["-c", &format!("{{ {timed}; }} 2>&1")]).directory(&directory).output()?;
        let last = seconds.lines().last().unwrap_or_default();
        let (wall, user) = last.split_once(' ').ok_or_else(|| format!("the build of {name} failed: {seconds}"))?;
        println!("{name:<14}{:>8}{wall:>10}{user:>10}", crates.len());
        fs::remove_dir_all(&directory)?;
    }
    Ok(())
}
