//! A server that sends raw bytes, valid or not.

use core::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// A step of the server on one connection. After the last step the connection is dropped.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Reads the request and responds with these bytes.
    Answer(String),
    /// Reads the request and accepts the upgrade.
    Upgrade,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Waits without reading.
    Wait(Duration),
    /// Reads forever, and sends nothing.
    Hang,
    /// Reads to the end, and records the bytes in place of the request head.
    Record,
    /// Echoes frames unmasked, and replies to a close.
    Echo,
}

pub(super) fn rejection(status: u16, headers: &str) -> Vec<Step> {
    vec![Step::Answer(format!("HTTP/1.1 {status} No\r\n{headers}Content-Length: 0\r\n\r\n"))]
}

pub(super) fn text(text: &str) -> Step {
    frame(0x81, text.as_bytes())
}

/// Returns a close frame with this code and reason.
pub(super) fn close(code: u16, reason: &str) -> Step {
    frame(0x88, &[&code.to_be_bytes(), reason.as_bytes()].concat())
}

pub(super) fn frame(first: u8, payload: &[u8]) -> Step {
    let length = u8::try_from(payload.len()).ok().filter(|length| *length < 126).expect("a short frame");
    Step::Send([&[first, length], payload].concat())
}

/// Runs the steps, and passes the head of the request to `on_request`.
pub(super) async fn serve(mut io: impl AsyncRead + AsyncWrite + Unpin, steps: Vec<Step>, on_request: impl Fn(String)) {
    for step in steps {
        let gone = match step {
            Step::Answer(answer) => {
                on_request(head(&mut io).await);
                io.write_all(answer.as_bytes()).await.is_err()
            }
            Step::Upgrade => {
                let head = head(&mut io).await;
                let key = header(&head, "sec-websocket-key").unwrap_or_default();
                let accept = derive_accept_key(key.as_bytes());
                on_request(head);
                let answer = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Accept: {accept}\r\n\r\n"
                );
                io.write_all(answer.as_bytes()).await.is_err()
            }
            Step::Send(bytes) => io.write_all(&bytes).await.is_err(),
            Step::Wait(length) => {
                sleep(length).await;
                false
            }
            Step::Hang => {
                swallow(&mut io).await;
                true
            }
            Step::Record => {
                let mut bytes = Vec::new();
                let _ = io.read_to_end(&mut bytes).await;
                on_request(format!("{bytes:02x?}"));
                true
            }
            Step::Echo => {
                echo(&mut io).await;
                true
            }
        };
        if gone {
            break;
        }
    }
    // A clean shutdown, so that unread data of the client does not turn the end of the stream into a reset.
    let _ = io.shutdown().await;
}

async fn swallow(io: &mut (impl AsyncRead + Unpin)) {
    let mut bytes = [0; 1024];
    while io.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
}

/// Echoes frames of less than 126 bytes unmasked, until a close has been answered.
async fn echo(io: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    loop {
        let mut start = [0; 6];
        if io.read_exact(&mut start).await.is_err() {
            return;
        }
        let [first, length, mask @ ..] = start;
        let mut payload = vec![0; usize::from(length & 0x7f)];
        if io.read_exact(&mut payload).await.is_err() {
            return;
        }
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        // A ping is answered with a pong.
        let first = if first == 0x89 { 0x8a } else { first };
        let Step::Send(bytes) = frame(first, &payload) else { unreachable!() };
        if io.write_all(&bytes).await.is_err() || first == 0x88 {
            return;
        }
    }
}

async fn head(io: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match io.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("a head of ASCII")
}

pub(super) fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}
