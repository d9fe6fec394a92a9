use std::io::{self, BufRead};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// The last response that a client has received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// `None` if there are only header lines.
    pub(super) status: Option<StatusCode>,
    pub(super) headers: HeaderMap,
    /// Number of responses up to this one: several after a redirect, or through a proxy's tunnel.
    pub(super) hops: u32,
}

/// Reads the header blocks that a client received, line by line: of HTTP/1, 2 and 3, with or without a reason.
///
/// The last block counts, since redirects, authentication and proxies come before it. An interim response (1xx) begins
/// another block that is not yet there. Lines after the end of a block are trailers, or no headers.
///
/// A server wrote the lines, so a block is limited; what exceeds its limits is ignored.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    response: Option<Response>,
    place: Place,
    hops: u32,
    /// Bytes of the current block.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the first block.
    #[default]
    Start,
    Block,
    InterimBlock,
    After,
}

const MAX_BLOCK_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 256;

impl ResponseReader {
    /// Reads a line without its newline. Returns whether it belongs to a header block.
    pub(crate) fn read(&mut self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(status) = status_of(line) {
            self.begin(status);
            return true;
        }
        match self.place {
            Place::Block | Place::InterimBlock if line.is_empty() => self.end_block(),
            Place::Block => self.add(line),
            Place::InterimBlock => {}
            // Headers without a status line, as a script may write them.
            Place::Start => match header(line) {
                Some(_) => {
                    self.response.get_or_insert_default();
                    self.add(line);
                }
                None => return false,
            },
            Place::After => return header(line).is_some(),
        }
        true
    }

    /// Ends the current block, for formats without an empty line at its end.
    pub(super) fn end_block(&mut self) {
        self.place = Place::After;
    }

    /// Returns the last final response.
    pub(crate) fn finish(self) -> Option<Response> {
        self.response
    }

    fn begin(&mut self, status: StatusCode) {
        self.bytes = 0;
        if status.is_informational() {
            self.place = Place::InterimBlock;
            self.response = None;
            return;
        }
        self.place = Place::Block;
        self.hops = self.hops.saturating_add(1);
        self.response = Some(Response { status: Some(status), headers: HeaderMap::new(), hops: self.hops });
    }

    fn add(&mut self, line: &[u8]) {
        self.bytes = self.bytes.saturating_add(line.len());
        if let (Some(response), Some((name, value))) = (&mut self.response, header(line))
            && self.bytes <= MAX_BLOCK_BYTES
            && response.headers.len() < MAX_HEADERS
        {
            // Fails only beyond a size that the limits exclude.
            let _ = response.headers.try_append(name, value);
        }
    }
}

/// Parses a status line: `HTTP/1.1 503 Service Unavailable`, or `HTTP/2 503`.
fn status_of(line: &[u8]) -> Option<StatusCode> {
    let (version, rest) =
        line.strip_prefix(b"HTTP/")?.split_at_checked(line.iter().position(|&byte| byte == b' ')? - 5)?;
    let is_version = !version.is_empty() && version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let rest = rest.trim_ascii_start();
    let (code, reason) = rest.split_at_checked(3)?;
    let is_complete = reason.first().is_none_or(|&byte| byte == b' ');
    if is_version && is_complete { StatusCode::from_bytes(code).ok() } else { None }
}

/// Parses a header line.
fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
    Some((name, value))
}

/// Reads a line without its newline, cut to `max` bytes. Returns `false` at the end of the file.
pub(crate) fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>, max: usize) -> io::Result<bool> {
    line.clear();
    let mut is_line = false;
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(is_line);
        }
        is_line = true;
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&piece[..piece.len().min(max - line.len())]);
        let used = end.map_or(bytes.len(), |end| end + 1);
        file.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Option<Response> {
        let mut reader = ResponseReader::default();
        text.split(|&byte| byte == b'\n').for_each(|line| {
            reader.read(line);
        });
        reader.finish()
    }

    /// Returns the status and the value of `Retry-After`.
    fn summary(text: &str) -> Option<(u16, String)> {
        let response = read(text.as_bytes())?;
        let after = response.headers.get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        Some((response.status.map_or(0, |status| status.as_u16()), after.unwrap_or_default()))
    }

    #[test]
    fn the_last_final_block_counts() {
        for (text, want) in [
            ("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n\r\n", Some((503, "7"))),
            ("HTTP/2 429\nretry-after:7\n\n", Some((429, "7"))),
            ("HTTP/3 429 \nRETRY-AFTER:  7\t\n", Some((429, "7"))),
            ("HTTP/1.0 404", Some((404, ""))),
            ("HTTP/1.1 302 Found\r\nRetry-After: 7\r\n\r\nHTTP/1.1 503 Busy\r\n\r\n", Some((503, ""))),
            ("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 404 No\r\n\r\n", Some((404, ""))),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\n\r\n", Some((404, ""))),
            ("HTTP/1.1 103 Early Hints\r\nRetry-After: 7\r\n\r\nHTTP/1.1 503 Busy\r\n", Some((503, ""))),
            // The client has sent the request again, and has no response to it yet.
            ("HTTP/1.1 401 No\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", None),
            // Trailers are not headers.
            ("HTTP/1.1 503 Busy\r\n\r\nRetry-After: 7\r\n\r\n", Some((503, ""))),
            ("HTTP/1.1 503 Busy\n: no name\nno colon\nRetry-After 7\n\n", Some((503, ""))),
            ("Retry-After: 7\n", Some((0, "7"))),
            ("HTTP/1.1 20 Short\n", None),
            ("HTTP/1.1 2000 Long\n", None),
            ("HTTP/1.1\n", None),
            ("HTTP/ 503\nHTTP/x 503\nXHTTP/1.1 503\n", None),
            ("", None),
        ] {
            let want = want.map(|(status, after)| (status, after.to_owned()));
            assert_eq!(summary(text), want, "{text:?}");
        }
    }

    #[test]
    fn lines_outside_of_blocks_are_left_to_others() {
        let mut reader = ResponseReader::default();
        for (line, is_header) in [
            (&b"retry-after=30"[..], false),
            (b"stop", false),
            (b"", false),
            (b"HTTP/1.1 503 Busy\r", true),
            (b"retry-after=30", true),
            (b"\r", true),
            (b"stop", false),
            (b"retry-after=30", false),
            (b"Trailer: 1", true),
        ] {
            assert_eq!(reader.read(line), is_header, "{line:?}");
        }
    }

    #[test]
    fn a_hostile_block_is_bounded_and_harmless() {
        let many = format!("HTTP/1.1 503 Busy\r\n{}", "a: b\r\n".repeat(100_000));
        assert!(read(many.as_bytes()).unwrap().headers.len() <= MAX_HEADERS);
        let long = format!("HTTP/1.1 503 Busy\r\na: {}\r\nb: c\r\n", "x".repeat(MAX_BLOCK_BYTES));
        assert!(read(long.as_bytes()).unwrap().headers.is_empty());
        let odd = read(b"HTTP/1.1 503 \xff\xfe\r\nRetry-After: \xff\r\nb\xff: c\r\na: \x00\r\nX: \xe4\r\n").unwrap();
        assert_eq!((odd.status, odd.headers.len()), (Some(StatusCode::SERVICE_UNAVAILABLE), 2));
    }
}
