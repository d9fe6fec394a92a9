use stagger::{Policy, policy};

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).multiplier(f64::NAN));

fn main() {
    let _ = POLICY;
}
