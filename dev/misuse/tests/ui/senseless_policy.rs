use stagger::{Policy, policy};

const POLICY: Policy = policy!(exponential(ms(100), ms(50)).multiplier(0.5).max_attempts(0));

fn main() {
    let _ = POLICY;
}
