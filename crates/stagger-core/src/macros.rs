/// What [`policy!`](crate::policy) lets its argument say.
#[doc(hidden)]
pub mod units {
    use core::time::Duration;

    /// Milliseconds.
    #[must_use]
    pub const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Seconds.
    #[must_use]
    pub const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Minutes.
    #[must_use]
    pub const fn mins(n: u64) -> Duration {
        Duration::from_secs(n.saturating_mul(60))
    }

    pub use crate::{HintMode, Jitter, Ratio};
}

/// A [`Policy`](crate::Policy) known at compile time: a senseless one does not compile, and the compiler's message
/// is the sentence that [`PolicyError`](crate::PolicyError) would print.
///
/// It takes a constructor of [`Policy`](crate::Policy) and setters of [`PolicyBuilder`](crate::PolicyBuilder). Inside
/// it `ms`, `secs` and `mins` are lengths of time, and `Jitter`, `HintMode` and `Ratio` are in scope.
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
