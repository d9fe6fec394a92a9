//! The close of a WebSocket that was accepted only to be told when to come back.

use core::ops::ControlFlow;
use core::time::Duration;
use std::io::{self, Cursor};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Control, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};

use super::closing_slots::ClosingSlot;
use super::rejected::UpgradeRejected;

/// The maximum number of bytes that are read from a client until its close frame: what a page sends when its socket
/// opens arrives before that. The bytes are dropped.
pub(in crate::server) const MAX_READ: usize = 64 << 10;

/// The maximum length of a frame's header: RFC 6455, section 5.2.
const MAX_HEADER: usize = 14;

/// A WebSocket whose client is rejected. No message is ever read from it, so it has no buffers.
pub(in crate::server) struct Closing<S> {
    pub(in crate::server) stream: S,
    pub(in crate::server) rejected: UpgradeRejected,
    /// Counts against [`max_closing`](crate::server::SocketsBuilder::max_closing).
    pub(in crate::server) slot: ClosingSlot,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Closing<S> {
    /// Sends the close frame and waits for the client's, for at most `limit` and [`MAX_READ`] bytes. Whether the client
    /// has read it is not known: the stream is dropped in any case.
    pub(in crate::server) async fn finish(self, limit: Duration) {
        let Self { mut stream, rejected, slot } = self;
        // An error means that the client has left.
        let _ = timeout(limit, close(&mut stream, rejected)).await;
        drop((stream, slot));
    }
}

async fn close<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, rejected: UpgradeRejected) -> io::Result<()> {
    let mut sent = Vec::with_capacity(128);
    let frame = Frame::close(Some(CloseFrame { code: CloseCode::Again, reason: rejected.to_reason().into() }));
    frame.format(&mut sent).map_err(io::Error::other)?;
    stream.write_all(&sent).await?;
    stream.flush().await?;
    // A stream that is dropped with unread bytes is reset, and the client might lose the close frame.
    let (mut frames, mut bytes, mut read) = (Frames::default(), [0; 512], 0);
    while read < MAX_READ {
        let received = stream.read(&mut bytes).await?;
        read += received;
        if received == 0 || frames.advance(&bytes[..received]).is_break() {
            break;
        }
    }
    stream.shutdown().await
}

/// Finds the client's close frame in a stream of frames, whose payloads are skipped.
#[derive(Default)]
struct Frames {
    header: [u8; MAX_HEADER],
    length: usize,
    /// The rest of the payload of the current frame.
    skipped: u64,
    is_close: bool,
}

impl Frames {
    /// Reads more bytes. Breaks at the end of a close frame, and at a frame that no client may send.
    fn advance(&mut self, mut bytes: &[u8]) -> ControlFlow<()> {
        loop {
            let skipped = bytes.len().min(usize::try_from(self.skipped).unwrap_or(usize::MAX));
            bytes = &bytes[skipped..];
            self.skipped -= skipped as u64;
            if self.is_close && self.skipped == 0 {
                return ControlFlow::Break(());
            }
            let Some((&next, rest)) = bytes.split_first() else { return ControlFlow::Continue(()) };
            bytes = rest;
            self.header[self.length] = next;
            self.length += 1;
            match FrameHeader::parse(&mut Cursor::new(&self.header[..self.length])) {
                Ok(Some((FrameHeader { mask: Some(_), opcode, .. }, length))) => {
                    self.is_close = opcode == OpCode::Control(Control::Close);
                    (self.skipped, self.length) = (length, 0);
                }
                Ok(None) if self.length < MAX_HEADER => {}
                _ => return ControlFlow::Break(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::tungstenite::protocol::frame::coding::Data;

    use super::*;

    /// Returns a frame as a client sends it.
    fn frame(opcode: OpCode, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = FrameHeader { opcode, mask: Some([1, 2, 3, 4]), ..FrameHeader::default() };
        header.format(length as u64, &mut bytes).unwrap();
        // Bytes that would be headers of close frames.
        bytes.resize(bytes.len() + length, 0x88);
        bytes
    }

    #[test]
    fn a_close_frame_is_found_behind_others_however_the_stream_is_cut() {
        for length in [0, 5, 125, 126, 65_535, 65_536] {
            let close = frame(OpCode::Control(Control::Close), length.min(125));
            let stream = [frame(OpCode::Data(Data::Text), length), frame(OpCode::Control(Control::Ping), 3), close];
            let stream = stream.concat();
            for size in [1, 2, 13, 512, stream.len()] {
                let mut frames = Frames::default();
                let mut chunks = stream.chunks(size).peekable();
                while let Some(chunk) = chunks.next() {
                    assert_eq!(frames.advance(chunk).is_break(), chunks.peek().is_none(), "{length} by {size}");
                }
            }
        }
    }

    #[test]
    fn what_no_client_may_send_ends_the_wait() {
        for bytes in [
            // Not masked.
            &[0x81, 0x01, b'x'][..],
            // Reserved operation codes.
            &[0x83, 0x80, 0, 0, 0, 0],
            &[0x8b, 0x80, 0, 0, 0, 0],
        ] {
            assert!(Frames::default().advance(bytes).is_break(), "{bytes:?}");
        }
        // A frame of 2^63 bytes that never comes is skipped as it comes.
        let mut frames = Frames::default();
        assert!(frames.advance(&[0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4]).is_continue());
        assert!(frames.advance(&[0x88; 4096]).is_continue());
    }
}
