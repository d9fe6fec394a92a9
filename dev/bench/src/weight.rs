//! Section G: the cost of depending on a retry crate: number of crates, build time and size.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

use Dependency::{Registry, Stagger};
use tempfile::TempDir;

use crate::timing::Effort;

/// A dependant with the cost of its build.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Weight {
    pub(crate) name: &'static str,
    pub(crate) build: Option<Build>,
    /// Size of the stripped program minus that of an empty one, in bytes.
    pub(crate) bytes_over_empty: Option<u64>,
    /// What the program contains, or why it could not be built.
    pub(crate) note: String,
}

/// Builds the dependants from scratch in a temporary directory, without network access.
///
/// They take turns, like the timed cases; the build time of a dependant is that of its fastest round.
///
/// # Errors
/// If the directory cannot be written. A dependant that does not build becomes a row that says so.
pub(crate) fn measure(effort: Effort) -> io::Result<Vec<Weight>> {
    let directory = BuildDirectory::create()?;
    let mut weights: Vec<Weight> = DEPENDANTS
        .iter()
        .map(|dependant| Weight {
            name: dependant.name,
            build: None,
            bytes_over_empty: None,
            note: dependant.note.to_owned(),
        })
        .collect();
    let rounds = match effort {
        Effort::Quick => 1,
        Effort::Thorough => 3,
    };
    for round in 1..=rounds {
        eprintln!("building {} dependants from scratch, round {round} of {rounds} …", DEPENDANTS.len());
        for (weight, dependant) in weights.iter_mut().zip(&DEPENDANTS) {
            match directory.build(dependant)? {
                Ok(build) => weight.build = Some(weight.build.map_or(build, |before| before.faster(build))),
                Err(why) => weight.note = why,
            }
        }
    }
    let empty = weights.first().and_then(|weight| weight.build).map(|build| build.bytes);
    for weight in &mut weights {
        weight.bytes_over_empty = weight.build.zip(empty).map(|(build, empty)| build.bytes.saturating_sub(empty));
    }
    Ok(weights)
}

// The cost of one build.

/// The cost of one clean build.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Build {
    /// Time from scratch to the program.
    pub(crate) seconds: f64,
    /// Number of compiled crates, without the dependant itself.
    pub(crate) crates: u32,
    /// Size of the stripped program in bytes.
    pub(crate) bytes: u64,
}

impl Build {
    /// Returns the faster of two builds.
    const fn faster(self, other: Self) -> Self {
        if other.seconds < self.seconds { other } else { self }
    }

    /// Creates the cost from `messages`, the output of cargo with `--message-format=json`.
    ///
    /// # Errors
    /// If the build produced no program, or the program cannot be read.
    fn from_messages(messages: &str, seconds: f64) -> io::Result<Self> {
        let mut packages = HashSet::new();
        let mut program = None;
        for line in messages.lines() {
            let message: serde_json::Value = serde_json::from_str(line)?;
            if message["reason"] != "compiler-artifact" {
                continue;
            }
            packages.insert(message["package_id"].to_string());
            if let Some(path) = message["executable"].as_str() {
                program = Some(fs::metadata(path)?.len());
            }
        }
        let bytes = program.ok_or_else(|| io::Error::other("cargo built no program"))?;
        Ok(Self { seconds, crates: packages.len().saturating_sub(1) as u32, bytes })
    }
}

// The directory in which dependants are built.

/// A temporary directory, removed on drop.
#[derive(Debug)]
struct BuildDirectory(TempDir);

impl BuildDirectory {
    fn create() -> io::Result<Self> {
        tempfile::tempdir().map(Self)
    }

    /// Builds a program that depends on one crate, from scratch. The inner error is the reason why it does not build.
    ///
    /// The lock file is that of this workspace, so that the versions are those of the other sections, and cargo needs
    /// no network access.
    fn build(&self, dependant: &Dependant) -> io::Result<Result<Build, String>> {
        let package = self.0.path().join("package");
        let target = self.0.path().join("target");
        fs::create_dir_all(package.join("src"))?;
        fs::write(package.join("Cargo.toml"), dependant.manifest())?;
        fs::write(package.join("Cargo.lock"), LOCKFILE)?;
        fs::write(package.join("src/main.rs"), dependant.program)?;
        let built = cargo_build(&package, &target);
        // A build must not reuse anything of the previous one.
        for directory in [package, target] {
            if directory.exists() {
                fs::remove_dir_all(directory)?;
            }
        }
        built
    }
}

fn cargo_build(package: &Path, target: &Path) -> io::Result<Result<Build, String>> {
    let start = Instant::now();
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--offline", "--quiet", "--message-format=json"])
        .current_dir(package)
        .env("CARGO_TARGET_DIR", target)
        .stdin(Stdio::null())
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    if output.status.success() {
        return Build::from_messages(&String::from_utf8_lossy(&output.stdout), seconds).map(Ok);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let first = message.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
    Ok(Err(format!("does not build: {first}")))
}

// The programs that are built. Each retries once in async and, if the crate supports it, once in blocking code.

/// A program with one retry crate.
#[derive(Debug)]
struct Dependant {
    name: &'static str,
    /// What the program uses of the crate.
    note: &'static str,
    dependencies: &'static [Dependency],
    program: &'static str,
}

/// A line of a manifest.
#[derive(Debug)]
enum Dependency {
    /// A crate of the registry, at the version in this workspace's lock file, with these features and without the
    /// default ones.
    Registry(&'static str, &'static [&'static str]),
    /// stagger, from this workspace.
    Stagger(&'static [&'static str]),
}

const TOKIO: Dependency = Registry("tokio", &["rt", "time"]);

/// The programs. The empty one comes first, because sizes are relative to it.
const DEPENDANTS: [Dependant; 9] = [
    Dependant {
        name: "nothing",
        note: "an empty program",
        dependencies: &[],
        program: include_str!("../dependants/nothing.rs"),
    },
    Dependant {
        name: "tokio",
        note: "no retries: the same operation, once",
        dependencies: &[TOKIO],
        program: include_str!("../dependants/tokio.rs"),
    },
    Dependant {
        name: "stagger",
        note: "async and blocking",
        dependencies: &[TOKIO, Stagger(&["tokio"])],
        program: include_str!("../dependants/stagger.rs"),
    },
    Dependant {
        name: "backon",
        note: "async and blocking",
        dependencies: &[TOKIO, Registry("backon", &["std", "std-blocking-sleep", "tokio-sleep"])],
        program: include_str!("../dependants/backon.rs"),
    },
    Dependant {
        name: "tokio-retry",
        note: "async",
        dependencies: &[TOKIO, Registry("tokio-retry", &["rand"])],
        program: include_str!("../dependants/tokio_retry.rs"),
    },
    Dependant {
        name: "backoff",
        note: "async and blocking",
        dependencies: &[TOKIO, Registry("backoff", &["tokio"])],
        program: include_str!("../dependants/backoff.rs"),
    },
    Dependant {
        name: "tower",
        note: "async; a policy with its backoff and budget",
        dependencies: &[TOKIO, Registry("tower", &["retry", "util"])],
        program: include_str!("../dependants/tower.rs"),
    },
    Dependant {
        name: "google-cloud-gax",
        note: "one delay; the crate has no public retry loop",
        dependencies: &[Registry("google-cloud-gax", &[])],
        program: include_str!("../dependants/google_cloud_gax.rs"),
    },
    Dependant {
        name: "aws-smithy-runtime",
        note: "creates its strategy, which decides only inside a client",
        dependencies: &[Registry("aws-smithy-runtime", &["client"])],
        program: include_str!("../dependants/aws_smithy_runtime.rs"),
    },
];

impl Dependant {
    /// Returns the manifest of a package with the same optimization as this workspace.
    fn manifest(&self) -> String {
        let dependencies: String = self.dependencies.iter().map(Dependency::line).collect();
        format!(
            "[package]\nname = \"dependant\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\n{dependencies}\n\
             [profile.release]\nlto = \"fat\"\ncodegen-units = 1\nstrip = true\n\n\
             [workspace]\n"
        )
    }
}

impl Dependency {
    fn line(&self) -> String {
        match self {
            Registry(name, features) => {
                let version = locked_version(name).unwrap_or("0");
                format!("{name} = {{ version = \"={version}\", default-features = false, features = {features:?} }}\n")
            }
            Stagger(features) => format!(
                "stagger = {{ path = {:?}, default-features = false, features = {features:?} }}\n",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/stagger"),
            ),
        }
    }
}

// The versions that are compared, from the workspace's lock file.

/// The lock file that this program was built with.
const LOCKFILE: &str = include_str!("../../../Cargo.lock");

/// The crates that stagger is compared with.
pub(crate) const PEERS: [&str; 19] = [
    "again",
    "aws-smithy-runtime",
    "backoff",
    "backon",
    "exponential-backoff",
    "failsafe",
    "google-cloud-gax",
    "governor",
    "mulligan",
    "recloser",
    "reqwest-retry",
    "retry",
    "retry-policies",
    "tokio-retry",
    "tokio-retry2",
    "tokio-util",
    "tower",
    "tower-resilience-retry",
    "tryhard",
];

/// Returns the version of `name` in the lock file, or the newest if there are several.
pub(crate) fn locked_version(name: &str) -> Option<&'static str> {
    let entry = format!("name = \"{name}\"");
    let mut lines = LOCKFILE.lines();
    let mut newest = None;
    while lines.any(|line| line == entry) {
        newest = lines.next().and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_a_build_script_counts_once_and_the_dependant_does_not_count() {
        let program = tempfile::NamedTempFile::new().unwrap();
        fs::write(program.path(), [0; 10]).unwrap();
        let messages = format!(
            r#"{{"reason":"compiler-artifact","package_id":"a","executable":null}}
    {{"reason":"build-script-executed","package_id":"a"}}
    {{"reason":"compiler-artifact","package_id":"a","executable":null}}
    {{"reason":"compiler-artifact","package_id":"b","executable":null}}
    {{"reason":"compiler-artifact","package_id":"dependant","executable":{path:?}}}
    {{"reason":"build-finished","success":true}}"#,
            path = program.path()
        );
        let build = Build::from_messages(&messages, 1.5).unwrap();
        assert_eq!(build, Build { seconds: 1.5, crates: 2, bytes: 10 });
    }

    #[test]
    fn a_build_without_a_program_is_an_error() {
        assert!(Build::from_messages(r#"{"reason":"build-finished","success":false}"#, 1.0).is_err());
    }

    #[test]
    fn versions_are_pinned_to_the_lock_file() {
        let line = Registry("backon", &["std"]).line();
        let version = locked_version("backon").unwrap();
        assert_eq!(
            line,
            format!("backon = {{ version = \"={version}\", default-features = false, features = [\"std\"] }}\n")
        );
    }

    #[test]
    fn the_empty_program_comes_first() {
        assert!(DEPENDANTS[0].dependencies.is_empty());
    }

    #[test]
    fn every_peer_has_a_version() {
        for name in PEERS {
            assert!(locked_version(name).is_some_and(|version| version.contains('.')), "{name}");
        }
    }

    #[test]
    fn names_with_a_common_prefix_are_distinguished() {
        assert_ne!(locked_version("tokio-retry"), locked_version("tokio-retry2"));
        assert_eq!(locked_version("no-such-crate"), None);
    }
}
