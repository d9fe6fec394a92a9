//! The programs that are built. Each retries once in async and, if the crate supports it, once in blocking code.

use crate::lockfile;

/// A program with one retry crate.
#[derive(Debug)]
pub(super) struct Dependant {
    pub(super) name: &'static str,
    /// What the program uses of the crate.
    pub(super) note: &'static str,
    dependencies: &'static [Dependency],
    pub(super) program: &'static str,
}

/// A line of a manifest.
#[derive(Debug)]
enum Dependency {
    /// A crate of the registry, at the version in this workspace's lock file, with these features and without the default
    /// ones.
    Registry(&'static str, &'static [&'static str]),
    /// stagger, from this workspace.
    Stagger(&'static [&'static str]),
}

use Dependency::{Registry, Stagger};

const TOKIO: Dependency = Registry("tokio", &["rt", "time"]);

/// The programs. The empty one comes first, because sizes are relative to it.
pub(super) const DEPENDANTS: [Dependant; 9] = [
    Dependant {
        name: "nothing",
        note: "an empty program",
        dependencies: &[],
        program: include_str!("../../dependants/nothing.rs"),
    },
    Dependant {
        name: "tokio",
        note: "no retries: the same operation, once",
        dependencies: &[TOKIO],
        program: include_str!("../../dependants/tokio.rs"),
    },
    Dependant {
        name: "stagger",
        note: "async and blocking",
        dependencies: &[TOKIO, Stagger(&["tokio"])],
        program: include_str!("../../dependants/stagger.rs"),
    },
    Dependant {
        name: "backon",
        note: "async and blocking",
        dependencies: &[TOKIO, Registry("backon", &["std", "std-blocking-sleep", "tokio-sleep"])],
        program: include_str!("../../dependants/backon.rs"),
    },
    Dependant {
        name: "tokio-retry",
        note: "async",
        dependencies: &[TOKIO, Registry("tokio-retry", &["rand"])],
        program: include_str!("../../dependants/tokio_retry.rs"),
    },
    Dependant {
        name: "backoff",
        note: "async and blocking",
        dependencies: &[TOKIO, Registry("backoff", &["tokio"])],
        program: include_str!("../../dependants/backoff.rs"),
    },
    Dependant {
        name: "tower",
        note: "async; a policy with its backoff and budget",
        dependencies: &[TOKIO, Registry("tower", &["retry", "util"])],
        program: include_str!("../../dependants/tower.rs"),
    },
    Dependant {
        name: "google-cloud-gax",
        note: "one delay; the crate has no public retry loop",
        dependencies: &[Registry("google-cloud-gax", &[])],
        program: include_str!("../../dependants/google_cloud_gax.rs"),
    },
    Dependant {
        name: "aws-smithy-runtime",
        note: "creates its strategy, which decides only inside a client",
        dependencies: &[Registry("aws-smithy-runtime", &["client"])],
        program: include_str!("../../dependants/aws_smithy_runtime.rs"),
    },
];

impl Dependant {
    /// Returns the manifest of a package with the same optimization as this workspace.
    pub(super) fn manifest(&self) -> String {
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
                let version = lockfile::version(name).unwrap_or("0");
                format!("{name} = {{ version = \"={version}\", default-features = false, features = {features:?} }}\n")
            }
            Stagger(features) => format!(
                "stagger = {{ path = {:?}, default-features = false, features = {features:?} }}\n",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/stagger"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_pinned_to_the_lock_file() {
        let line = Registry("backon", &["std"]).line();
        let version = lockfile::version("backon").unwrap();
        assert_eq!(
            line,
            format!("backon = {{ version = \"={version}\", default-features = false, features = [\"std\"] }}\n")
        );
    }

    #[test]
    fn the_empty_program_comes_first() {
        assert!(DEPENDANTS[0].dependencies.is_empty());
    }
}
