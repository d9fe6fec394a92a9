//! The programs that are built: each retries once in async and, where the crate can, once in blocking code.

use crate::lockfile;

/// A program with one retry crate.
#[derive(Debug)]
pub(super) struct Dependant {
    pub(super) name: &'static str,
    /// What the program uses of it.
    pub(super) note: &'static str,
    dependencies: &'static [Dependency],
    pub(super) program: &'static str,
}

/// A line of a manifest.
#[derive(Debug)]
enum Dependency {
    /// From the registry, at the version of this workspace's lock file; with features, without the default ones.
    Registry(&'static str, &'static [&'static str]),
    /// stagger, from this workspace.
    Stagger(&'static [&'static str]),
}

use Dependency::{Registry, Stagger};

const TOKIO: Dependency = Registry("tokio", &["rt", "time"]);

/// The empty program first: sizes are told over it.
pub(super) const DEPENDANTS: [Dependant; 9] = [
    Dependant {
        name: "nothing",
        note: "an empty program",
        dependencies: &[],
        program: include_str!("../../dependants/nothing.rs"),
    },
    Dependant {
        name: "tokio",
        note: "no retry: the same operation, once",
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
        note: "one delay; it has no retry loop of its own",
        dependencies: &[Registry("google-cloud-gax", &[])],
        program: include_str!("../../dependants/google_cloud_gax.rs"),
    },
    Dependant {
        name: "aws-smithy-runtime",
        note: "its strategy, made; it decides only inside a client",
        dependencies: &[Registry("aws-smithy-runtime", &["client"])],
        program: include_str!("../../dependants/aws_smithy_runtime.rs"),
    },
];

impl Dependant {
    /// A package of its own, optimised as this workspace is.
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
                concat!(env!("CARGO_MANIFEST_DIR"), "/../stagger"),
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
