/// The names that the argument of [`policy!`](crate::policy) may use.
#[doc(hidden)]
pub mod units {
    use core::time::Duration;

    /// Creates a length of `n` milliseconds.
    #[must_use]
    pub const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Creates a length of `n` seconds.
    #[must_use]
    pub const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Creates a length of `n` minutes.
    #[must_use]
    pub const fn mins(n: u64) -> Duration {
        Duration::from_secs(n.saturating_mul(60))
    }

    pub use crate::numbers::ratio::Ratio;
    pub use crate::policy::hint_mode::HintMode;
    pub use crate::policy::jitter::Jitter;
}

/// Creates a [`Policy`](crate::Policy) at compile time. An invalid policy does not compile, and the compiler's message
/// is that of [`PolicyError`](crate::PolicyError).
///
/// It takes a constructor of [`Policy`](crate::Policy) and setters of [`PolicyBuilder`](crate::PolicyBuilder). Inside
/// it, `ms`, `secs` and `mins` create durations, and `Jitter`, `HintMode` and `Ratio` are in scope.
///
/// ```
/// use stagger_core::{Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(100), secs(10)).jitter(Jitter::Equal).max_attempts(4));
/// ```
///
/// ```compile_fail
/// use stagger_core::{Policy, policy};
///
/// // error: cap 50ms is below base 100ms: raise cap or lower base
/// const POLICY: Policy = policy!(exponential(ms(100), ms(50)));
/// ```
#[macro_export]
macro_rules! policy {
    ($backoff:ident ( $($argument:tt)* ) $($setters:tt)*) => {
        const {
            #[allow(unused_imports)] // Which of them are used is the caller's choice.
            use $crate::units::*;
            $crate::Policy::$backoff($($argument)*) $($setters)* .build_or_fail_to_compile()
        }
    };
}
