//! The rest of a body against a server that cuts, lies, forgets and changes its mind. The server is written from RFC
//! 9110 and from what servers get wrong, and knows nothing of the machine.

use std::env;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use stagger_http::resume::{Answer, End, Head, Next, NotResumable, Rest, Resume, ResumeError};

/// Splitmix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A version of a file: the byte at each place differs between versions.
#[derive(Clone, Copy)]
struct File {
    number: u64,
    length: u64,
}

impl File {
    fn byte(self, at: u64) -> u8 {
        (Draws(self.number << 32 | at).next() >> 56) as u8
    }

    fn bytes(self, from: u64, until: u64) -> Vec<u8> {
        (from..until).map(|at| self.byte(at)).collect()
    }

    fn tag(self) -> String {
        format!("\"v{}\"", self.number)
    }
}

/// What a server does with requests for a range.
struct Server {
    draws: Draws,
    now: File,
    knows_ranges: bool,
    honors_if_range: bool,
    version: Version,
    says_lengths: bool,
    says_totals: bool,
    lies: bool,
}

/// An answer: its body, and whether it ends where the head says.
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    end: End,
}

impl Reply {
    fn head(&self, version: Version) -> Head<'_> {
        Head { version, status: self.status, headers: &self.headers }
    }
}

fn headers(lines: &[(HeaderName, String)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
}

impl Server {
    fn new(seed: u64) -> Self {
        let mut draws = Draws(seed);
        let length = if draws.is(5) { draws.below(3) } else { draws.below(600) };
        Self {
            now: File { number: 0, length },
            knows_ranges: draws.is(85),
            honors_if_range: draws.is(85),
            version: if draws.is(70) { Version::HTTP_11 } else { Version::HTTP_2 },
            says_lengths: draws.is(80),
            says_totals: draws.is(85),
            lies: draws.is(50),
            draws,
        }
    }

    /// The file is replaced, which may change its length.
    fn replace(&mut self) {
        let length = if self.draws.is(50) { self.now.length } else { self.draws.below(600) };
        self.now = File { number: self.now.number + 1, length };
    }

    /// Cuts a body: a transport that breaks delivers a part, and an honest end all of it.
    fn cut(&mut self, mut reply: Reply) -> Reply {
        if self.draws.is(60) {
            let kept = self.draws.below(reply.body.len() as u64 + 1);
            reply.body.truncate(kept as usize);
            // The end of a connection is no sign of a cut if it is the end of the body as well.
            let has_end =
                [header::CONTENT_LENGTH, header::TRANSFER_ENCODING].map(|name| reply.headers.contains_key(name));
            let by_close = self.version == Version::HTTP_11 && has_end == [false; 2];
            reply.end = if by_close { End::Clean } else { End::Broken };
        }
        reply
    }

    /// Says where a body of this length ends: without a line, where the connection or the stream does.
    fn framing(&mut self, length: u64) -> Option<(HeaderName, String)> {
        if self.says_lengths {
            Some((header::CONTENT_LENGTH, length.to_string()))
        } else if self.version == Version::HTTP_11 && self.draws.is(70) {
            Some((header::TRANSFER_ENCODING, "chunked".to_owned()))
        } else {
            None
        }
    }

    fn whole(&mut self) -> Reply {
        let mut lines = vec![(header::ETAG, self.now.tag())];
        lines.extend(self.framing(self.now.length));
        let body = self.now.bytes(0, self.now.length);
        Reply { status: StatusCode::OK, headers: headers(&lines), body, end: End::Clean }
    }

    /// Answers a request with these headers.
    fn answer(&mut self, request: &HeaderMap) -> Reply {
        let range = request.get(header::RANGE).map(|value| value.to_str().unwrap().to_owned());
        let if_range = request.get(header::IF_RANGE).map(|value| value.to_str().unwrap().to_owned());
        let is_same = if_range.is_none_or(|tag| tag == self.now.tag());
        let reply = match range {
            Some(range) if self.knows_ranges && (is_same || !self.honors_if_range) => self.part(&range),
            _ => self.whole(),
        };
        let reply = if self.lies && self.draws.is(30) { self.lie(reply) } else { reply };
        self.cut(reply)
    }

    fn part(&mut self, range: &str) -> Reply {
        let (from, until) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let from: u64 = from.parse().unwrap();
        let asked = until.parse().map_or(self.now.length, |last: u64| last + 1).min(self.now.length);
        if from >= self.now.length {
            let lines =
                [(header::CONTENT_RANGE, format!("bytes */{}", self.now.length)), (header::ETAG, self.now.tag())];
            let headers = headers(&lines);
            return Reply { status: StatusCode::RANGE_NOT_SATISFIABLE, headers, body: Vec::new(), end: End::Clean };
        }
        // A server may send less than it was asked for.
        let until = if self.draws.is(20) { from + 1 + self.draws.below(asked - from) } else { asked };
        let total = if self.says_totals { self.now.length.to_string() } else { "*".to_owned() };
        let mut lines = vec![(header::CONTENT_RANGE, format!("bytes {from}-{}/{total}", until - 1))];
        // It may leave out the validator only if it has honored it.
        if !self.honors_if_range || self.draws.is(70) {
            lines.push((header::ETAG, self.now.tag()));
        }
        lines.extend(self.framing(until - from));
        let body = self.now.bytes(from, until);
        Reply { status: StatusCode::PARTIAL_CONTENT, headers: headers(&lines), body, end: End::Clean }
    }

    /// Makes an answer wrong in one of the ways in which servers are. Bytes of another version with the validator of
    /// the first, or without one, are left out: nothing shows them.
    fn lie(&mut self, mut reply: Reply) -> Reply {
        let is_part = reply.status == StatusCode::PARTIAL_CONTENT;
        let set = |reply: &mut Reply, name: HeaderName, value: &str| {
            reply.headers.insert(name, HeaderValue::from_str(value).unwrap());
        };
        let length = reply.body.len() as u64;
        match self.draws.below(14) {
            // From the beginning, with a head that says so.
            0 if is_part => {
                reply.body = self.now.bytes(0, self.now.length);
                let last = self.now.length - 1;
                set(&mut reply, header::CONTENT_RANGE, &format!("bytes 0-{last}/{}", self.now.length));
                set(&mut reply, header::CONTENT_LENGTH, &self.now.length.to_string());
            }
            // Longer than the head says.
            1 if reply.headers.contains_key(header::CONTENT_LENGTH) || is_part => {
                let more = 1 + self.draws.below(9);
                reply.body.extend(File { number: 99, length: 9 }.bytes(0, more));
            }
            // Shorter, with a clean end.
            2 if is_part || reply.headers.contains_key(header::CONTENT_LENGTH) => {
                reply.body.truncate(self.draws.below(length + 1) as usize);
            }
            3 if is_part => set(&mut reply, header::CONTENT_RANGE, "bytes 7-3/9"),
            4 if is_part => set(&mut reply, header::CONTENT_RANGE, "bytes=0-1/2"),
            5 if is_part => {
                reply.headers.remove(header::CONTENT_RANGE);
            }
            6 if is_part => {
                let second = reply.headers[header::CONTENT_RANGE].clone();
                reply.headers.append(header::CONTENT_RANGE, second);
            }
            7 if is_part => set(&mut reply, header::CONTENT_LENGTH, &(length + 1).to_string()),
            8 => set(&mut reply, header::CONTENT_ENCODING, "gzip"),
            9 => set(&mut reply, header::ETAG, &format!("W/{}", self.now.tag())),
            10 => set(&mut reply, header::ETAG, "\"v0-gzip\""),
            11 => reply.status = StatusCode::SERVICE_UNAVAILABLE,
            12 if reply.status == StatusCode::RANGE_NOT_SATISFIABLE => {
                let total = self.now.length + 1 + self.draws.below(9);
                set(&mut reply, header::CONTENT_RANGE, &format!("bytes */{total}"));
            }
            13 => reply.status = StatusCode::FORBIDDEN,
            _ => {}
        }
        if reply.status == StatusCode::SERVICE_UNAVAILABLE || reply.status == StatusCode::FORBIDDEN {
            reply.body = File { number: 77, length: 20 }.bytes(0, 20);
        }
        reply
    }
}

/// How a body ended for its consumer.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Complete,
    Error,
    GaveUp,
    NotResumable,
}

/// Requests the file once, and continues it. Returns what was delivered, from where, and how it ended.
fn download(seed: u64) -> (File, u64, Option<u64>, Vec<u8>, Ended) {
    let mut server = Server::new(seed);
    let mut draws = Draws(!seed);
    let first = server.now;
    let mut request = HeaderMap::new();
    let own = if draws.is(20) && first.length > 2 {
        let from = draws.below(first.length - 1);
        let until = if draws.is(50) { Some(from + 1 + draws.below(first.length - from)) } else { None };
        let text = format!("bytes={from}-{}", until.map_or(String::new(), |until| (until - 1).to_string()));
        request.insert(header::RANGE, HeaderValue::from_str(&text).unwrap());
        Some((from, until))
    } else {
        None
    };
    let lies = core::mem::replace(&mut server.lies, false);
    let mut reply = server.answer(&request);
    server.lies = lies;
    let settings = Resume::new().reread(draws.below(700));
    let (from, until) = match (reply.status, own) {
        (StatusCode::PARTIAL_CONTENT, Some(own)) => own,
        _ => (0, None),
    };
    let mut delivered = Vec::new();
    let mut rest = match Rest::new(&Method::GET, &request, reply.head(server.version), settings) {
        Ok(rest) => rest,
        // A part without a validator, or a whole that ends with the connection.
        Err(NotResumable::NoValidator | NotResumable::Status | NotResumable::NoEnd) => {
            return (first, from, until, delivered, Ended::NotResumable);
        }
        Err(error) => panic!("seed {seed}: {error}"),
    };
    let mut without_progress = 0;
    loop {
        let before = delivered.len();
        let mut at = 0;
        while at < reply.body.len() {
            let size = 1 + draws.below(200) as usize;
            let chunk = &reply.body[at..reply.body.len().min(at + size)];
            at += chunk.len();
            match rest.take(chunk) {
                Ok(bytes) => delivered.extend_from_slice(bytes),
                Err(_) => return (first, from, until, delivered, Ended::Error),
            }
        }
        if rest.end(reply.end) == Next::Complete {
            return (first, from, until, delivered, Ended::Complete);
        }
        without_progress = if delivered.len() > before { 0 } else { without_progress + 1 };
        loop {
            if without_progress > 4 {
                return (first, from, until, delivered, Ended::GaveUp);
            }
            if draws.is(15) {
                server.replace();
            }
            let ask = rest.ask();
            let mut again = request.clone();
            again.insert(header::RANGE, ask.range);
            again.insert(header::IF_RANGE, ask.if_range);
            reply = server.answer(&again);
            match rest.judge(reply.head(server.version)) {
                Ok(Answer::Continue) => break,
                Ok(Answer::Complete) => return (first, from, until, delivered, Ended::Complete),
                Ok(_) => without_progress += 1,
                Err(_) => return (first, from, until, delivered, Ended::Error),
            }
        }
    }
}

/// More cases: `STAGGER_CASES=1000000`.
#[test]
fn no_byte_of_another_representation_is_delivered_and_no_body_is_complete_too_early() {
    let cases = env::var("STAGGER_CASES").map_or(50_000, |text| text.parse().expect("a number of cases"));
    let mut counts = [0_u64; 4];
    for seed in 0..cases {
        let (file, from, until, delivered, ended) = download(seed);
        let until = until.unwrap_or(file.length).min(file.length);
        assert!(from + delivered.len() as u64 <= until.max(from), "seed {seed}: too many bytes");
        assert_eq!(delivered, file.bytes(from, from + delivered.len() as u64), "seed {seed}");
        if ended == Ended::Complete {
            assert_eq!(delivered.len() as u64, until.saturating_sub(from), "seed {seed}: it ends too early");
        }
        counts[ended as usize] += 1;
    }
    // All ways to end are reached, and most bodies are completed.
    assert!(counts[0] > cases / 4 && counts[1..3].iter().all(|count| *count > 0), "{counts:?}");
    println!("complete, error, gave up, not resumable: {counts:?}");
}

fn started_with(head: Head<'_>, settings: Resume) -> Result<Rest, NotResumable> {
    Rest::new(&Method::GET, &HeaderMap::new(), head, settings)
}

fn http2(status: StatusCode, headers: &HeaderMap) -> Head<'_> {
    Head { version: Version::HTTP_2, status, headers }
}

fn ok(version: Version, headers: &HeaderMap) -> Head<'_> {
    Head { version, status: StatusCode::OK, headers }
}

fn started(lines: &[(HeaderName, &str)], settings: Resume) -> Result<Rest, NotResumable> {
    let lines: Vec<_> = lines.iter().map(|(name, value)| (name.clone(), (*value).to_owned())).collect();
    started_with(ok(Version::HTTP_2, &headers(&lines)), settings)
}

#[test]
fn what_is_not_resumed_says_why() {
    let tag = (header::ETAG, "\"a\"");
    assert_eq!(started(&[], Resume::new()).unwrap_err(), NotResumable::NoValidator);
    assert_eq!(started(&[(header::ETAG, "W/\"a\"")], Resume::new()).unwrap_err(), NotResumable::NoValidator);
    let head = headers(&[(header::ETAG, "\"a\"".to_owned())]);
    let new =
        |method: &Method, request: &HeaderMap, status| Rest::new(method, request, http2(status, &head), Resume::new());
    let none = HeaderMap::new();
    assert_eq!(new(&Method::POST, &none, StatusCode::OK).unwrap_err(), NotResumable::Method);
    assert_eq!(new(&Method::GET, &none, StatusCode::PARTIAL_CONTENT).unwrap_err(), NotResumable::Status);
    for range in ["bytes=0-1,3-4", "bytes=-5", "items=0-5", "bytes=5-2", "bytes=0-18446744073709551615"] {
        let request = headers(&[(header::RANGE, range.to_owned())]);
        assert_eq!(new(&Method::GET, &request, StatusCode::OK).unwrap_err(), NotResumable::Range, "{range}");
    }
    assert!(started(&[tag], Resume::new()).is_ok());
}

#[test]
fn the_end_of_a_connection_does_not_show_that_a_body_is_complete() {
    let tag = (header::ETAG, "\"a\"".to_owned());
    let chunked = (header::TRANSFER_ENCODING, "chunked".to_owned());
    let length = (header::CONTENT_LENGTH, "6".to_owned());
    let (by_close, by_chunks, by_length) =
        (headers(core::slice::from_ref(&tag)), headers(&[tag.clone(), chunked]), headers(&[tag, length]));
    for version in [Version::HTTP_10, Version::HTTP_11] {
        assert_eq!(started_with(ok(version, &by_close), Resume::new()).unwrap_err(), NotResumable::NoEnd);
        assert!(started_with(ok(version, &by_length), Resume::new()).is_ok());
    }
    for (codings, shows_its_end) in
        [("chunked", true), ("gzip, Chunked", true), ("chunked, gzip", false), ("gzip", false)]
    {
        let lines = headers(&[(header::ETAG, "\"a\"".to_owned()), (header::TRANSFER_ENCODING, codings.to_owned())]);
        assert_eq!(started_with(ok(Version::HTTP_11, &lines), Resume::new()).is_ok(), shows_its_end, "{codings}");
    }
    let mut rest = started_with(ok(Version::HTTP_11, &by_chunks), Resume::new()).unwrap();
    assert_eq!(rest.take(b"ab"), Ok(&b"ab"[..]));
    assert_eq!(rest.end(End::Broken), Next::Ask);
    assert!(matches!(rest.clone().judge(ok(Version::HTTP_11, &by_close)), Err(ResumeError::BadRange(_))));
    assert_eq!(rest.judge(ok(Version::HTTP_2, &by_close)), Ok(Answer::Continue));
}

#[test]
fn a_whole_that_comes_again_is_skipped_up_to_the_limit() {
    let head = [(header::ETAG, "\"a\""), (header::CONTENT_LENGTH, "6")];
    let answer = headers(&head.clone().map(|(name, value)| (name, value.to_owned())));
    let mut rest = started(&head, Resume::new().reread(3)).unwrap();
    assert_eq!(rest.take(b"abc"), Ok(&b"abc"[..]));
    assert_eq!(rest.end(End::Broken), Next::Ask);
    assert_eq!(rest.judge(http2(StatusCode::OK, &answer)), Ok(Answer::Continue));
    assert_eq!(rest.take(b"ab"), Ok(&b""[..]));
    assert_eq!(rest.take(b"cd"), Ok(&b"d"[..]));
    assert_eq!(rest.end(End::Broken), Next::Ask);
    assert_eq!(rest.judge(http2(StatusCode::OK, &answer)), Err(ResumeError::RangeIgnored { delivered: 4 }));
}

#[test]
fn the_validator_is_that_of_the_first_response() {
    let mut rest = started(&[(header::ETAG, "\"a\""), (header::CONTENT_LENGTH, "6")], Resume::new()).unwrap();
    let _ = rest.take(b"ab");
    let part = |range: &str, tag: Option<&str>| {
        let lines = [Some((header::CONTENT_RANGE, range)), tag.map(|tag| (header::ETAG, tag))];
        headers(&lines.into_iter().flatten().map(|(name, value)| (name, value.to_owned())).collect::<Vec<_>>())
    };
    // It may be left out, and the next answer is compared with the first one all the same.
    assert_eq!(rest.judge(http2(StatusCode::PARTIAL_CONTENT, &part("bytes 2-3/6", None))), Ok(Answer::Continue));
    assert_eq!(rest.take(b"cd"), Ok(&b"cd"[..]));
    assert_eq!(rest.end(End::Clean), Next::Ask, "a part that ends before the whole is not the end");
    assert_eq!(rest.ask().if_range, "\"a\"");
    let other = rest.judge(http2(StatusCode::PARTIAL_CONTENT, &part("bytes 4-5/6", Some("\"b\""))));
    assert_eq!(other, Err(ResumeError::BadRange("it has another validator")));
}

#[test]
fn an_answer_that_contradicts_what_is_known_is_no_part() {
    let head = [(header::ETAG, "\"a\""), (header::CONTENT_LENGTH, "6")];
    let range = |text: &str| (header::CONTENT_RANGE, text.to_owned());
    for (status, lines, want) in [
        (206, vec![range("bytes 2-5/6")], None),
        (206, vec![range("bytes 2-5/*")], None),
        (206, vec![range("bytes 0-5/6")], Some(ResumeError::BadRange("it begins at another position"))),
        (206, vec![range("bytes 3-5/6")], Some(ResumeError::BadRange("it begins at another position"))),
        (206, vec![range("bytes 2-5/7")], Some(ResumeError::BadRange("the length of the whole has changed"))),
        (206, vec![range("bytes 2-6/*")], Some(ResumeError::BadRange("it ends after the end of the whole"))),
        (206, vec![], Some(ResumeError::BadRange("it has no valid Content-Range"))),
        (206, vec![range("bytes */6")], Some(ResumeError::BadRange("it has no valid Content-Range"))),
        (
            206,
            vec![range("bytes 2-5/6"), (header::CONTENT_LENGTH, "3".to_owned())],
            Some(ResumeError::BadRange("its Content-Length and its Content-Range contradict each other")),
        ),
        (
            206,
            vec![range("bytes 2-5/6"), (header::CONTENT_ENCODING, "gzip".to_owned())],
            Some(ResumeError::BadRange("it has another Content-Encoding")),
        ),
        (200, vec![], Some(ResumeError::Changed)),
        (200, vec![(header::ETAG, "W/\"a\"".to_owned())], Some(ResumeError::Changed)),
        (416, vec![range("bytes */9")], Some(ResumeError::Changed)),
        (416, vec![range("bytes */6")], Some(ResumeError::BadRange("it refuses a range that exists"))),
        (412, vec![], Some(ResumeError::Changed)),
        (404, vec![], Some(ResumeError::Status(StatusCode::NOT_FOUND))),
    ] {
        let mut rest = started(&head, Resume::new()).unwrap();
        let _ = rest.take(b"ab");
        let judged = rest.judge(http2(StatusCode::from_u16(status).unwrap(), &headers(&lines)));
        assert_eq!(judged.err(), want, "{status} {lines:?}");
    }
}
