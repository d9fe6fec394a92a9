use super::{clients, ours, systems};
use crate::Policy;

/// A policy with a name, and where it is from.
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
    /// Its word in the policy language: `aws-sdk`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whose it is, for people.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// The version that was read; empty for our own.
    #[must_use]
    pub const fn version(&self) -> &'static str {
        self.version
    }

    /// Where it was read.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// When it was read, as year and month.
    #[must_use]
    pub const fn read_on(&self) -> &'static str {
        self.read_on
    }

    /// The policy. [`to_builder`](Policy::to_builder) makes a variation of it.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// Every profile: systems first, then clients that reconnect, then our own.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        systems::ALL.iter().chain(clients::ALL).chain(ours::ALL).copied()
    }

    /// The profile of this name. Hyphens, underscores and dots are alike.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|profile| letters(profile.name).eq(letters(name)))
    }
}

/// A name in the one form that is compared.
fn letters(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().map(|byte| match byte {
        b'_' | b'.' => b'-',
        byte => byte.to_ascii_lowercase(),
    })
}

/// One table of profiles: a constant for each, and the list of them all.
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
                policy: crate::policy!($backoff($($argument)*) $(.$setter($($value)*))*),
            };
        )*

        pub(super) const ALL: &[&Profile] = &[$(&$constant),*];
    };
}
pub(super) use profiles;
