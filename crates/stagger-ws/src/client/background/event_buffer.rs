use core::task::{Context, Poll};

use futures_channel::mpsc::Sender;
use stagger::machine::Unreachable;

use super::event::{Event, Opened};
use crate::client::failure::closed::Closed;
use crate::client::failure::fatal::Fatal;

/// An item in the channel to the client.
#[derive(Debug)]
pub(in crate::client) enum Delivery {
    Event(Event),
    /// The stream ends here, unless there have been more reconnect requests than this.
    End(Option<Fatal>, u64),
}

/// Events that do not fit into the channel because the client is not reading. At most one of each kind is kept: an
/// opened connection that is lost before the client reads it is not reported.
#[derive(Debug, Default)]
pub(in crate::client) struct EventBuffer {
    closed: Option<Closed>,
    unreachable: Option<Unreachable>,
    dropped: u64,
    open: Option<Opened>,
    end: Option<Delivery>,
}

impl EventBuffer {
    pub(in crate::client) fn closed(&mut self, closed: Closed) {
        self.open = None;
        self.closed = Some(closed);
    }

    pub(in crate::client) fn unreachable(&mut self, unreachable: Unreachable) {
        self.unreachable = Some(unreachable);
    }

    pub(in crate::client) fn opened(&mut self, opened: Opened) {
        self.unreachable = None;
        self.open = Some(opened);
    }

    pub(in crate::client) fn dropped(&mut self, messages: u64) {
        self.dropped = self.dropped.saturating_add(messages);
    }

    pub(in crate::client) fn end(&mut self, fatal: Option<Fatal>, reconnect_requests: u64) {
        self.end = Some(Delivery::End(fatal, reconnect_requests));
    }

    /// Removes an unread end of stream, because the client reconnects.
    pub(in crate::client) fn cancel_end(&mut self) {
        self.end = None;
    }

    /// Delivers what there is room for. Ready when the buffer is empty and there is room for a message; never ready if
    /// the client was dropped.
    pub(in crate::client) fn poll_deliver(&mut self, events: &mut Sender<Delivery>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match events.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) | Poll::Pending => return Poll::Pending,
            }
            let Some(delivery) = self.next() else { return Poll::Ready(()) };
            // Cannot fail: there was room, and this is the only sender.
            let _ = events.start_send(delivery);
        }
    }

    /// Returns the next event. Dropped messages come first; a loss comes before the next connection.
    fn next(&mut self) -> Option<Delivery> {
        let event = if self.dropped > 0 {
            Event::Dropped { messages: core::mem::take(&mut self.dropped) }
        } else if let Some(closed) = self.closed.take() {
            Event::Closed(closed)
        } else if let Some(unreachable) = self.unreachable.take() {
            Event::Unreachable(unreachable)
        } else if let Some(opened) = self.open.take() {
            Event::Open(opened)
        } else {
            return self.end.take();
        };
        Some(Delivery::Event(event))
    }
}
