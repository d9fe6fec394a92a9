use super::{clients, ours, systems};
use crate::Policy;

/// A named policy with its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) version: &'static str,
    pub(super) source: &'static str,
    pub(super) read_on: &'static str,
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

    /// Returns the policy. [`to_builder`](Policy::to_builder) varies it: its values yield to those that are set.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns every profile: systems first, then clients that reconnect, then our own.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        systems::ALL.iter().chain(clients::ALL).chain(ours::ALL).copied()
    }

    /// Returns the profile with this name. Hyphens, underscores and dots are equivalent, and so are upper and lower
    /// case.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|profile| letters(profile.name).eq(letters(name)))
    }
}

/// Returns a name in the form that is compared.
fn letters(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().map(|byte| match byte {
        b'_' | b'.' => b'-',
        byte => byte.to_ascii_lowercase(),
    })
}

/// Defines one table of profiles: a constant for each, and the list of all.
macro_rules! profiles {
    ($(
        $(#[$doc:meta])*
        $constant:ident = $name:literal {
            title: $title:literal,
            version: $version:literal,
            source: $source:literal,
            read: $read:literal,
        }
        $backoff:ident ( $($argument:tt)* ) $(. $setter:ident ( $($value:tt)* ))* ;
    )*) => {
        $(
            $(#[$doc])*
            pub const $constant: Profile = Profile {
                name: $name,
                title: $title,
                version: $version,
                source: $source,
                read_on: $read,
                policy: crate::policy!($backoff($($argument)*) $(.$setter($($value)*))* .as_defaults()),
            };
        )*

        pub(super) const ALL: &[&Profile] = &[$(&$constant),*];
    };
}
pub(super) use profiles;
