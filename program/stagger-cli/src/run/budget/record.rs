use stagger_core::Instant;
use stagger_core::budget::TokensState;

/// Length of a file, in bytes. It never changes, so a file is written at once and in place.
pub(super) const LENGTH: usize = 128;

/// Begins each file: the program and the version of the format.
const HEAD: [&str; 2] = ["stagger-budget", "1"];

/// The content of a file: `stagger-budget 1 BOOT MILLIONTHS REFILLED`, padded with spaces, and a newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The boot of the machine that the times belong to.
    pub(super) boot: String,
    pub(super) state: TokensState,
}

impl Record {
    /// Parses a whole file; `None` if it is not exactly what [`to_bytes`](Self::to_bytes) writes.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let words: Vec<_> = str::from_utf8(bytes).ok()?.split_ascii_whitespace().collect();
        let [program, version, boot, millionths, refilled] = words[..] else { return None };
        let refilled = match refilled {
            "-" => None,
            nanos => Some(Instant::from_nanos(nanos.parse().ok()?)),
        };
        let record = Self { boot: boot.to_owned(), state: TokensState::new(millionths.parse().ok()?, refilled) };
        let is_same = [program, version] == HEAD && record.to_bytes() == bytes;
        is_same.then_some(record)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self { boot, state } = self;
        let refilled = state.refilled.map_or_else(|| "-".to_owned(), |refilled| refilled.as_nanos().to_string());
        let line = format!("{} {} {boot} {} {refilled}", HEAD[0], HEAD[1], state.millionths);
        format!("{line:<width$}\n", width = LENGTH - 1).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(millionths: u64, refilled: Option<u64>) -> Record {
        let boot = "0f7c2a6e-33cf-4d3a-9c3c-0e8b4f6f7a11".to_owned();
        Record { boot, state: TokensState::new(millionths, refilled.map(Instant::from_nanos)) }
    }

    #[test]
    fn every_record_has_the_same_length_and_is_read_back() {
        for record in [record(0, None), record(u64::MAX, Some(u64::MAX)), record(100_000_000, Some(0))] {
            let bytes = record.to_bytes();
            assert_eq!((bytes.len(), bytes.last()), (LENGTH, Some(&b'\n')));
            assert_eq!(Record::parse(&bytes), Some(record));
        }
    }

    #[test]
    fn what_is_not_a_whole_record_of_this_version_is_refused() {
        let whole = record(100_000_000, Some(7)).to_bytes();
        for cut in 0..whole.len() {
            assert_eq!(Record::parse(&whole[..cut]), None, "cut at {cut}");
        }
        assert_eq!(Record::parse(&[&whole[..], b"\n"].concat()), None);
        let text = String::from_utf8(whole).unwrap();
        for (from, to) in [(" 1 ", " 2 "), ("stagger-budget", "stagger-budgit"), (" 7 ", " x "), (" 7 ", " 07")] {
            let other = text.replacen(from, to, 1);
            assert_eq!((other.len(), Record::parse(other.as_bytes())), (LENGTH, None), "{other}");
        }
    }
}
