//! Files and standard input, of which no more is read than can be meant.

use core::fmt;
use std::io::{self, Read};

use crate::output::error::CliError;

/// Reads a text of at most `limit` bytes to its end. `flag` begins the message of an error, such as `--log: `, and
/// `name` is what is read.
///
/// The limit is on what arrives: a device or a FIFO has no length.
pub fn text(flag: &str, name: impl fmt::Display, from: io::Result<impl Read>, limit: u64) -> Result<String, CliError> {
    String::from_utf8(bytes(flag, &name, from, limit)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        CliError::usage(format_args!("{flag}{name}, line {line}: not valid UTF-8; save it as UTF-8"))
    })
}

/// Reads at most `limit` bytes to their end, as [`text`] does.
pub fn bytes(
    flag: &str,
    name: impl fmt::Display,
    from: io::Result<impl Read>,
    limit: u64,
) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    from.and_then(|from| from.take(limit + 1).read_to_end(&mut bytes))
        .map_err(|error| CliError::io(format_args!("{flag}cannot read {name}"), error))?;
    if bytes.len() as u64 > limit {
        return Err(CliError::usage(format_args!(
            "{flag}{name} has more than {} MiB; pass a part of it",
            limit.div_ceil(1 << 20)
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_bounded() {
        let read = |from: &[u8]| text("--log: ", "a", Ok(from), 4).map_err(|error| error.to_string());
        assert_eq!(read(b"four"), Ok("four".to_owned()));
        assert_eq!(read(b"fives"), Err("--log: a has more than 1 MiB; pass a part of it".to_owned()));
        assert_eq!(read(b"a\n\n\xff"), Err("--log: a, line 3: not valid UTF-8; save it as UTF-8".to_owned()));
        let endless = text("", "b", Ok(io::repeat(b'x')), 1_000).unwrap_err();
        assert!(endless.to_string().starts_with("b has more than"), "{endless}");
        let missing = text("--log: ", "c", Err::<io::Empty, _>(io::ErrorKind::NotFound.into()), 4).unwrap_err();
        assert!(missing.to_string().starts_with("--log: cannot read c: "), "{missing}");
    }
}
