use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use tokio::time::{Instant, Sleep, sleep};

use super::event::ConnectionError;
use super::parser::{Message, Parser};
use super::transport::BoxBody;

/// The most chunks that are read in a row without an event, so that a server that sends only comments does not keep the
/// task busy.
const MAX_CHUNKS: u32 = 64;

/// An open stream of events.
pub(super) struct EventStream {
    body: BoxBody,
    /// The part of the last chunk that has not been parsed.
    chunk: Bytes,
    idle: Option<IdleTimer>,
}

/// Fires if no line has ended for a time. The timer is moved only when it fires, and not with each line.
struct IdleTimer {
    timeout: Duration,
    last_line: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl EventStream {
    pub(super) fn new(body: BoxBody, idle_timeout: Option<Duration>) -> Self {
        let idle = idle_timeout.map(|timeout| IdleTimer {
            timeout,
            last_line: Instant::now(),
            sleep: Box::pin(sleep(timeout)),
        });
        Self { body, chunk: Bytes::new(), idle }
    }

    /// Reads the next event. After an error, the stream has ended.
    pub(super) fn poll_message(
        &mut self,
        parser: &mut Parser,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Message, ConnectionError>> {
        for _ in 0..MAX_CHUNKS {
            if let Some(message) = self.parse(parser)? {
                return Poll::Ready(Ok(message));
            }
            match self.body.as_mut().poll_chunk(cx) {
                Poll::Ready(Some(Ok(chunk))) => self.chunk = chunk,
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(ConnectionError::Http(Arc::from(error))));
                }
                Poll::Ready(None) => return Poll::Ready(Err(ConnectionError::Ended)),
                Poll::Pending => return self.poll_idle(cx).map(Err),
            }
        }
        // A server that sends parts of a line in a hurry is as silent as one that sends nothing.
        if let Poll::Ready(cause) = self.poll_idle(cx) {
            return Poll::Ready(Err(cause));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn parse(&mut self, parser: &mut Parser) -> Result<Option<Message>, ConnectionError> {
        if self.chunk.is_empty() {
            return Ok(None);
        }
        let lines = parser.lines();
        let mut rest = &self.chunk[..];
        let message = parser.parse(&mut rest).map_err(ConnectionError::TooLong)?;
        let parsed = self.chunk.len() - rest.len();
        self.chunk.advance(parsed);
        if let Some(idle) = &mut self.idle {
            if parser.lines() != lines {
                idle.last_line = Instant::now();
            }
        }
        Ok(message)
    }

    /// Ready if no line has ended for the idle timeout.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionError> {
        let Some(idle) = &mut self.idle else { return Poll::Pending };
        while idle.sleep.as_mut().poll(cx).is_ready() {
            let left = idle.timeout.saturating_sub(idle.last_line.elapsed());
            if left.is_zero() {
                return Poll::Ready(ConnectionError::IdleTimeout { after: idle.timeout });
            }
            idle.sleep.set(sleep(left));
        }
        Poll::Pending
    }
}
