use stagger::{Policy, policy};

const POLICY: Policy = policy!(constant(secs(1)).max_attempts(0));

fn main() {
    let _ = POLICY;
}
