use core::fmt;
use std::collections::BTreeMap;

/// Counts of effects, to check that each happened exactly once.
///
/// ```
/// use stagger_kit::Tally;
///
/// let tally = Tally::from_effects(["paid 1", "paid 2", "paid 2"]);
/// let miscount = tally.exactly_once(["paid 1", "paid 2", "paid 3"]).unwrap_err();
/// assert_eq!(miscount.to_string(), "missing: [\"paid 3\"]; more than once: [(\"paid 2\", 2)]; unexpected: []");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<String, u64>,
}

/// The effects that did not happen exactly once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Miscount {
    /// Effects that were expected and did not happen.
    pub missing: Vec<String>,
    /// Effects that happened more than once, with their counts.
    pub repeated: Vec<(String, u64)>,
    /// Effects that happened and were not expected.
    pub unexpected: Vec<String>,
}

impl Tally {
    /// Counts the effects.
    #[must_use]
    pub fn from_effects<S: Into<String>>(effects: impl IntoIterator<Item = S>) -> Self {
        let mut counts = BTreeMap::new();
        for effect in effects {
            *counts.entry(effect.into()).or_default() += 1;
        }
        Self { counts }
    }

    /// Returns the count of `effect`.
    #[must_use]
    pub fn count(&self, effect: &str) -> u64 {
        self.counts.get(effect).copied().unwrap_or(0)
    }

    /// Checks that each of `expected` happened exactly once, and nothing else happened.
    ///
    /// # Errors
    /// All deviations at once.
    pub fn exactly_once<S: Into<String>>(&self, expected: impl IntoIterator<Item = S>) -> Result<(), Miscount> {
        let mut unexpected = self.counts.clone();
        let mut miscount = Miscount::default();
        for effect in expected {
            let effect = effect.into();
            match unexpected.remove(&effect) {
                None => miscount.missing.push(effect),
                Some(1) => {}
                Some(count) => miscount.repeated.push((effect, count)),
            }
        }
        miscount.unexpected = unexpected.into_keys().collect();
        if miscount == Miscount::default() { Ok(()) } else { Err(miscount) }
    }
}

impl fmt::Display for Miscount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { missing, repeated, unexpected } = self;
        write!(f, "missing: {missing:?}; more than once: {repeated:?}; unexpected: {unexpected:?}")
    }
}

impl core::error::Error for Miscount {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exactly_once_passes() {
        let miscount = |missing: &[&str], repeated: &[(&str, u64)], unexpected: &[&str]| {
            let owned = |list: &[&str]| list.iter().copied().map(Into::into).collect();
            let repeated = repeated.iter().map(|(effect, count)| ((*effect).into(), *count)).collect();
            Err(Miscount { missing: owned(missing), repeated, unexpected: owned(unexpected) })
        };
        for (effects, want) in [
            (vec!["a", "b"], Ok(())),
            (vec!["b", "a"], Ok(())),
            (vec!["a"], miscount(&["b"], &[], &[])),
            (vec!["a", "b", "a", "a"], miscount(&[], &[("a", 3)], &[])),
            (vec!["a", "b", "c", "c"], miscount(&[], &[], &["c"])),
            (vec![], miscount(&["a", "b"], &[], &[])),
        ] {
            assert_eq!(Tally::from_effects(effects.iter().copied()).exactly_once(["a", "b"]), want, "{effects:?}");
        }
    }
}
