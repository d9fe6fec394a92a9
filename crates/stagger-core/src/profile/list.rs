use super::entry::Profile;
use super::{clients, ours, systems};

impl Profile {
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
