//! A named policy with its source, and the macro that defines them.

use crate::policy::Policy;

/// A named policy with its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) version: &'static str,
    pub(super) source: &'static str,
    pub(super) read_on: &'static str,
    pub(super) is_connection: bool,
    pub(super) policy: Policy,
}

impl Profile {
    /// Returns the name in the policy language: `aws-sdk`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of the system, for people.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// Returns the version that was read; empty for our own profiles.
    #[must_use]
    pub const fn version(&self) -> &'static str {
        self.version
    }

    /// Returns where the numbers were read.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// Returns when they were read, as year and month.
    #[must_use]
    pub const fn read_on(&self) -> &'static str {
        self.read_on
    }

    /// Returns whether the policy keeps a connection up, which goes on after any number of failures, and is not that of
    /// single calls.
    #[must_use]
    pub const fn is_connection(&self) -> bool {
        self.is_connection
    }

    /// Returns the policy. [`to_builder`](Policy::to_builder) varies it: its values yield to those that are set.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }
}

/// Defines the table of profiles: a constant for each, and the list of all. `read` is when their sources were read,
/// `for connections` marks those of clients that reconnect, and `jitter` is the formula of a jitter that only this
/// system has.
macro_rules! profiles {
    (read $read:literal; $(
        $(#[$doc:meta])*
        $constant:ident = $name:literal $(for $purpose:ident)? from $title:literal $(version $version:literal)? in $source:literal
        $(, jitter ( $($formula:tt)* ) $(. $part:ident ( $($value:tt)* ))*)?
        : $backoff:ident ( $($argument:tt)* ) $(. $setter:ident ( $($to:tt)* ))* ;
    )*) => {
        $(
            $(#[$doc])*
            pub const $constant: Profile = Profile {
                name: $name,
                title: $title,
                version: concat!($($version)?),
                source: $source,
                read_on: $read,
                is_connection: matches!(concat!($(stringify!($purpose))?).as_bytes(), b"connections"),
                policy: crate::policy!(
                    $backoff($($argument)*) $(.$setter($($to)*))*
                    $(.jitter({
                        static FORMULA: Formula = Formula::new($name, $($formula)*) $(.$part($($value)*))*;
                        FORMULA.jitter()
                    }))?
                    .as_defaults()
                ),
            };
        )*

        const ALL: &[&Profile] = &[$(&$constant),*];
    };
}
pub(super) use profiles;
