use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

/// A durable append-only file of records.
///
/// A server under test records its effects here, is killed in the middle, and is restarted; afterwards the records show
/// what happened. [`append`](Self::append) returns once the record is synced to disk. A write that a crash has
/// truncated is dropped when the ledger is opened again; it was never acknowledged.
///
/// Format: one line per record with the CRC-32 of the record as eight hexadecimal digits, a space, and the record.
#[derive(Debug)]
pub struct Ledger {
    file: Locked,
    records: Vec<String>,
    /// Offset of the end of the last complete record.
    length: u64,
    /// Whether the end of the file is in an unknown state.
    broken: bool,
}

impl Ledger {
    /// Opens or creates the ledger, truncates an incomplete last record, and locks out other writers.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it open; `InvalidData` if a complete record is corrupt, which a crash during
    /// a write does not cause.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.try_lock()?;
        let mut file = Locked(file);
        let Contents { records, length } = Contents::read(&mut file.0)?;
        file.0.set_len(length)?;
        file.0.seek(SeekFrom::Start(length))?;
        file.0.sync_all()?;
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            // A new file is durable only if its directory entry is synced, too.
            File::open(directory)?.sync_all()?;
        }
        Ok(Self { file, records, length, broken: false })
    }

    /// Reads the complete records of a ledger, in order, even while another process writes it.
    ///
    /// # Errors
    /// `NotFound`; `InvalidData` as in [`open`](Self::open).
    pub fn read(path: impl AsRef<Path>) -> Result<Vec<String>> {
        Ok(Contents::read(&mut File::open(path)?)?.records)
    }

    /// Returns the records that are synced to disk, in order.
    #[must_use]
    pub fn records(&self) -> &[String] {
        &self.records
    }

    /// Appends a record and returns when it is synced to disk.
    ///
    /// # Errors
    /// `InvalidInput` if the record contains a newline. Otherwise the error of the write; the record is then not in the
    /// ledger, and if the file cannot be restored, all later appends fail.
    pub fn append(&mut self, record: &str) -> Result<()> {
        if record.contains('\n') {
            return Err(Error::new(ErrorKind::InvalidInput, "a record must not contain a newline"));
        }
        if self.broken {
            return Err(Error::other("an earlier write failed and left the file inconsistent; open the ledger again"));
        }
        let line = format!("{:08x} {record}\n", crc32fast::hash(record.as_bytes()));
        self.broken = true;
        let file = &mut self.file.0;
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        if let Err(error) = written {
            let end = file.set_len(self.length).and_then(|()| file.seek(SeekFrom::Start(self.length)));
            self.broken = end.is_err();
            return Err(error);
        }
        self.broken = false;
        self.length += line.len() as u64;
        self.records.push(record.to_owned());
        Ok(())
    }
}

/// A locked file, unlocked when dropped.
///
/// Closing the file is not enough: a process that another thread is just spawning has a copy of the descriptor, and
/// with it the lock, until it calls exec.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // An error cannot be handled here.
        let _ = self.0.unlock();
    }
}

struct Contents {
    records: Vec<String>,
    /// Length of the complete records in bytes.
    length: u64,
}

impl Contents {
    /// Reads and checks a whole file.
    fn read(file: &mut File) -> Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut contents = Self { records: Vec::new(), length: 0 };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // A truncated write lacks its newline; a line with a newline was once complete.
            let Some(line) = line.strip_suffix(b"\n") else {
                break;
            };
            let Some(record) = record(line) else {
                let message = format!("corrupt record after byte {}", contents.length);
                return Err(Error::new(ErrorKind::InvalidData, message));
            };
            contents.records.push(record.to_owned());
            contents.length += line.len() as u64 + 1;
        }
        Ok(contents)
    }
}

/// Parses the record in a line; `None` if the line is not exactly what [`Ledger::append`] writes.
fn record(line: &[u8]) -> Option<&str> {
    let (sum, record) = str::from_utf8(line).ok()?.split_once(' ')?;
    if sum == format!("{:08x}", crc32fast::hash(record.as_bytes())) { Some(record) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Tally};
    use core::time::Duration;
    use std::{env, fs};
    use tempfile::tempdir;

    #[test]
    fn records_are_read_in_order() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("ledger");
        for round in 0..3 {
            let mut ledger = Ledger::open(&path).unwrap();
            assert_eq!(ledger.records().len(), round * 2);
            ledger.append(&format!("{round} déjà vu")).unwrap();
            ledger.append("").unwrap();
        }
        let want = ["0 déjà vu", "", "1 déjà vu", "", "2 déjà vu", ""];
        assert_eq!(Ledger::read(&path).unwrap(), want);
    }

    #[test]
    fn truncation_anywhere_loses_only_the_last_record() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("ledger");
        let mut ledger = Ledger::open(&path).unwrap();
        let records = ["first", "", "third and last"];
        let mut ends = vec![0];
        for record in records {
            ledger.append(record).unwrap();
            ends.push(fs::metadata(&path).unwrap().len() as usize);
        }
        drop(ledger);
        let whole = fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let kept = ends.iter().filter(|end| **end <= cut).count() - 1;
            let mut ledger = Ledger::open(&path).unwrap();
            assert_eq!(ledger.records(), &records[..kept], "cut at {cut}");
            assert_eq!(fs::metadata(&path).unwrap().len() as usize, ends[kept], "cut at {cut}");
            // Shorter than most of the truncated data, so that remains of that would be detected.
            ledger.append("").unwrap();
            drop(ledger);
            let want = [&records[..kept], &[""]].concat();
            assert_eq!(Ledger::read(&path).unwrap(), want, "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_bit_is_an_error() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("ledger");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.append("first").unwrap();
        ledger.append("second").unwrap();
        drop(ledger);
        let whole = fs::read(&path).unwrap();
        // Except for the very last byte: without its newline, the last record counts as truncated.
        for bit in 0..(whole.len() - 1) * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            assert_eq!(Ledger::open(&path).map(|_| ()).unwrap_err().kind(), ErrorKind::InvalidData, "bit {bit}");
        }
    }

    #[test]
    fn a_second_writer_is_locked_out() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("ledger");
        let _first = Ledger::open(&path).unwrap();
        assert_eq!(Ledger::open(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn a_record_with_a_newline_is_rejected_and_not_written() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("ledger");
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.append("one\ntwo").unwrap_err().kind(), ErrorKind::InvalidInput);
        ledger.append("one").unwrap();
        assert_eq!(Ledger::read(&path).unwrap(), ["one"]);
    }

    #[test]
    fn acknowledged_records_survive_20_kills_exactly_once() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("ledger");
        let writer = Program::this_test("ledger::tests::appends_until_killed").unwrap().env("KIT_LEDGER", &path);
        let mut acknowledged = 0;
        for round in 0..20 {
            let mut running = writer.spawn().unwrap();
            // The number of lines varies the moment of the kill between two acknowledgments.
            for _ in 0..=round {
                let line = running.wait_for(crate::Stream::Stdout, "acknowledged ", Duration::from_secs(10)).unwrap();
                acknowledged = line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
            }
            running.kill();
            let records = Ledger::read(&path).unwrap();
            assert!(records.len() as u64 > acknowledged, "{acknowledged} was acknowledged; {records:?}");
            let every = 0..records.len();
            Tally::from_effects(records).exactly_once(every.map(|number| number.to_string())).unwrap();
        }
        assert!(acknowledged >= 200, "each round continues after the last one: {acknowledged}");
    }

    #[test]
    #[ignore = "runs until it is killed; the test above starts and kills it"]
    fn appends_until_killed() {
        let Some(path) = env::var_os("KIT_LEDGER") else {
            return;
        };
        let mut ledger = Ledger::open(path).unwrap();
        for number in ledger.records().len().. {
            ledger.append(&number.to_string()).unwrap();
            println!("acknowledged {number}");
        }
    }
}
