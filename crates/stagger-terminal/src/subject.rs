use std::path::Path;

use crate::policy_args::policies;

/// Returns whether a positional argument is a file and not a policy: if it is `-`, or contains `/` or `.` or names
/// something that exists, and does not begin like a policy. `socket.io` is a policy, `./socket.io` a file.
pub fn is_file(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    if text == "-" {
        return true;
    }
    if text.starts_with('@') || policies().contains(&first) {
        return false;
    }
    let exists = || Path::new(text).exists();
    // Settings of a policy have an equals sign, as hardly any file has.
    let looks_like_one = text.contains(['/', '.', '*']) && !text.contains('=');
    looks_like_one || exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_not_taken_for_a_file() {
        for policy in
            ["socket.io", "aws-sdk", "exponential base=0.5s", "exponentail base=1.5s", "@policy.toml", "zero", "typo"]
        {
            assert!(!is_file(policy), "{policy}");
        }
        for file in ["-", "a.yaml", "./socket.io", "dir/", "src", "*.yaml", "k8s/**/x", "my file.yaml"] {
            assert!(is_file(file), "{file}");
        }
    }
}
