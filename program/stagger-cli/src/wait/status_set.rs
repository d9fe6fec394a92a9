use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

/// A set of HTTP statuses, as text: `2xx,304,400-403`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusSet(Vec<RangeInclusive<u16>>);

impl StatusSet {
    pub(super) fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }
}

/// An element that is neither a status nor a range.
#[derive(Debug)]
pub(super) struct StatusSetError(String);

impl fmt::Display for StatusSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown status `{}`; use a set such as 2xx,304,400-403", self.0)
    }
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<Self, StatusSetError> {
        let ranges = text.split(',').map(|element| {
            let element = element.trim();
            range(element).ok_or_else(|| StatusSetError(element.to_owned()))
        });
        ranges.collect::<Result<_, _>>().map(Self)
    }
}

fn range(element: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = element.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        return Some(class * 100..=class * 100 + 99);
    }
    let (first, last) = element.split_once('-').unwrap_or((element, element));
    let range = status(first)?..=status(last)?;
    (!range.is_empty()).then_some(range)
}

fn status(text: &str) -> Option<u16> {
    text.parse().ok().filter(|status| (100..=599).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_statuses_and_ranges_are_elements_of_a_set() {
        let set: StatusSet = "2xx,304, 400-403".parse().unwrap();
        for (status, want) in
            [(199, false), (200, true), (299, true), (300, false), (304, true), (403, true), (404, false)]
        {
            assert_eq!(set.contains(status), want, "{status}");
        }
    }

    #[test]
    fn what_is_no_status_is_named() {
        for (text, named) in [
            ("", "``"),
            ("2x", "`2x`"),
            ("6xx", "`6xx`"),
            ("200-", "`200-`"),
            ("200,299-200", "`299-200`"),
            ("99", "`99`"),
        ] {
            let error = text.parse::<StatusSet>().unwrap_err().to_string();
            assert!(error.contains(named), "{text:?}: {error}");
        }
    }
}
