use stagger::{Policy, policy};

const POLICY: Policy = policy!(exponential(100, 10_000));

fn main() {
    let _ = POLICY;
}
