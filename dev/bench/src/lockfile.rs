//! The versions that are compared, from the workspace's lock file.

/// The lock file that this program was built with.
pub(crate) const TEXT: &str = include_str!("../../../Cargo.lock");

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
pub(crate) fn version(name: &str) -> Option<&'static str> {
    let entry = format!("name = \"{name}\"");
    let mut lines = TEXT.lines();
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
    fn every_peer_has_a_version() {
        for name in PEERS {
            assert!(version(name).is_some_and(|version| version.contains('.')), "{name}");
        }
    }

    #[test]
    fn names_with_a_common_prefix_are_distinguished() {
        assert_ne!(version("tokio-retry"), version("tokio-retry2"));
        assert_eq!(version("no-such-crate"), None);
    }
}
