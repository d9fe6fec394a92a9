//! The close of a WebSocket that was accepted only to be told when to come back.

use core::net::IpAddr;
use core::ops::ControlFlow;
use core::time::Duration;
use std::io::{self, Cursor};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Control, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};

use super::handshakes::{PeerCounts, peer};
use super::rejection::UpgradeRejected;
use crate::sync::lock;

/// The maximum number of bytes that are read from a client until its close frame: what a page sends when its socket
/// opens arrives before that. The bytes are dropped.
pub(super) const MAX_READ: usize = 64 << 10;

/// The maximum length of a frame's header: RFC 6455, section 5.2.
const MAX_HEADER: usize = 14;

/// A WebSocket whose client is rejected. No message is ever read from it, so it has no buffers.
pub(super) struct Closing<S> {
    pub(super) stream: S,
    pub(super) rejected: UpgradeRejected,
    /// Counts against [`max_closing`](super::SocketsBuilder::max_closing).
    pub(super) slot: ClosingSlot,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Closing<S> {
    /// Sends the close frame and waits for the client's, for at most `limit` and [`MAX_READ`] bytes. Whether the client
    /// has read it is not known: the stream is dropped in any case.
    pub(super) async fn finish(self, limit: Duration) {
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

/// The slots of rejected clients whose WebSocket is being closed, in total and by peer.
pub(super) struct ClosingSlots {
    slots: Arc<Semaphore>,
    by_peer: Mutex<PeerCounts>,
}

/// A drop guard for a slot.
pub(super) struct ClosingSlot {
    _slot: OwnedSemaphorePermit,
    /// The peer that it counts for, and where.
    counted: Option<(IpAddr, Arc<ClosingSlots>)>,
}

impl ClosingSlots {
    pub(super) fn new(max: usize, max_per_peer: Option<usize>) -> Self {
        let slots = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self { slots, by_peer: Mutex::new(PeerCounts::new(max_per_peer)) }
    }

    /// Returns a slot if there is one, and if the peer, where it is known, has not as many already as it may have.
    pub(super) fn try_take(self: &Arc<Self>, address: Option<IpAddr>) -> Option<ClosingSlot> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        let peer = address.map(peer);
        if let Some(peer) = peer {
            let mut by_peer = lock(&self.by_peer);
            if by_peer.is_at_limit(peer) {
                return None;
            }
            by_peer.increment(peer);
        }
        Some(ClosingSlot { _slot: slot, counted: peer.map(|peer| (peer, Arc::clone(self))) })
    }
}

impl Drop for ClosingSlot {
    fn drop(&mut self) {
        if let Some((peer, slots)) = &self.counted {
            lock(&slots.by_peer).decrement(*peer);
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

    #[test]
    fn a_peer_takes_no_more_than_its_share_and_leaves_nothing_behind() {
        let slots = Arc::new(ClosingSlots::new(4, Some(2)));
        let take = |address: &str| slots.try_take(Some(address.parse().unwrap()));
        let (first, second) = (take("2001:db8::1"), take("2001:db8::2"));
        assert!(first.is_some() && second.is_some());
        assert!(take("2001:db8::3").is_none(), "it is one network");
        let other = (take("192.0.2.1"), slots.try_take(None));
        assert!(other.0.is_some() && other.1.is_some());
        assert!(take("192.0.2.2").is_none(), "all slots are taken");
        drop(first);
        let again = take("2001:db8::3");
        assert!(again.is_some());
        drop((second, other, again));
        assert!(lock(&slots.by_peer).is_empty());
        assert_eq!(slots.slots.available_permits(), 4);
    }

    #[test]
    fn without_a_limit_a_peer_takes_all_of_them() {
        let slots = Arc::new(ClosingSlots::new(3, None));
        let taken = [(); 3].map(|()| slots.try_take(Some(IpAddr::from([192, 0, 2, 1]))));
        assert!(taken.iter().all(Option::is_some));
    }
}
