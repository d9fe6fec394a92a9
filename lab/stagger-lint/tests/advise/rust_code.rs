//! Compares generated Rust code with the tokens of the macro that made the policy.

use stagger_core::policy;
use stagger_lint::advise::rust_code;

macro_rules! same {
    ($($tokens:tt)+) => {
        (policy!($($tokens)+), stringify!($($tokens)+))
    };
}

#[test]
fn the_code_is_the_macro_that_makes_the_policy() {
    for (policy, tokens) in [
        same!(exponential(ms(500), secs(30)).max_attempts(4)),
        same!(exponential(ms(500), secs(30)).multiplier(1.5).jitter(Jitter::Equal).unlimited_attempts()),
        same!(exponential(ms(1500), secs(60)).floor(ms(100)).spread(secs(20)).max_attempts(7).max_elapsed(secs(90))),
        same!(exponential(core::time::Duration::from_nanos(500), secs(30)).max_attempts(4)),
        same!(exponential(ms(1), secs(30)).max_attempts(4).max_elapsed(secs(9)).max_hint(secs(7))),
        same!(exponential(ms(1), secs(30)).max_attempts(4).unlimited_hint()),
        same!(exponential(ms(500), secs(30)).jitter(Jitter::Factor(Ratio::percent(20))).max_attempts(4)),
        same!(constant(secs(17)).jitter(Jitter::Full).spread(secs(34)).unlimited_attempts()),
        same!(constant(ms(1500)).max_attempts(2)),
        same!(decorrelated(secs(1), secs(60)).spread(ms(2500)).max_attempts(10).stable_after(secs(10))),
    ] {
        // `stringify!` may break long lines anywhere.
        let tokens = tokens.replace([' ', '\n'], "");
        assert_eq!(rust_code(&policy).map(|text| text.replace(' ', "")), Some(format!("policy!({tokens})")));
    }
}

#[test]
fn unsupported_policies_have_no_code() {
    for text in [
        "socket.io",
        "exponential base=1s cap=none",
        "exponential base=1s jitter=±0.5%",
        "exponential base=1s hint=exact",
    ] {
        assert_eq!(rust_code(&text.parse().unwrap()), None, "{text}");
    }
}
