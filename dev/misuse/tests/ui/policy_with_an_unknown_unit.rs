use stagger::{Policy, policy};

const POLICY: Policy = policy!(exponential(millis(100), seconds(10)));

fn main() {
    let _ = POLICY;
}
