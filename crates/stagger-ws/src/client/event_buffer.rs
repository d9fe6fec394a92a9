use core::task::{Context, Poll};

use futures_channel::mpsc::Sender;

use super::{Closed, Event, Fatal, Opened};

/// What goes through the channel to the client.
#[derive(Debug)]
pub(super) enum Delivery {
    Event(Event),
    /// The stream ends here; it goes on if it has been asked to reconnect more often than this.
    End(Option<Fatal>, u64),
}

/// Events that found no room in the channel, while nobody reads. There are never more than one of each: whoever did not
/// see a connection come does not need to see it go.
#[derive(Debug, Default)]
pub(super) struct EventBuffer {
    closed: Option<Closed>,
    dropped: u64,
    open: Option<Opened>,
    end: Option<Delivery>,
}

impl EventBuffer {
    pub(super) fn closed(&mut self, closed: Closed) {
        self.open = None;
        self.closed = Some(closed);
    }

    pub(super) fn opened(&mut self, opened: Opened) {
        self.open = Some(opened);
    }

    pub(super) fn dropped(&mut self, messages: u64) {
        self.dropped = self.dropped.saturating_add(messages);
    }

    pub(super) fn end(&mut self, fatal: Option<Fatal>, reconnect_requests: u64) {
        self.end = Some(Delivery::End(fatal, reconnect_requests));
    }

    /// It goes on after all, before anybody has heard that it did not.
    pub(super) fn cancel_end(&mut self) {
        self.end = None;
    }

    /// Puts into the channel what there is room for. Ready when nothing is left and there is room for a message; never, if
    /// the client is gone.
    pub(super) fn poll_deliver(&mut self, events: &mut Sender<Delivery>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match events.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) | Poll::Pending => return Poll::Pending,
            }
            let Some(delivery) = self.next() else { return Poll::Ready(()) };
            // There was room, and this is the only sender.
            let _ = events.start_send(delivery);
        }
    }

    /// Drops as soon as they are known; what comes and goes in its order.
    fn next(&mut self) -> Option<Delivery> {
        let event = if self.dropped > 0 {
            Event::Dropped { messages: core::mem::take(&mut self.dropped) }
        } else if let Some(closed) = self.closed.take() {
            Event::Closed(closed)
        } else if let Some(opened) = self.open.take() {
            Event::Open(opened)
        } else {
            return self.end.take();
        };
        Some(Delivery::Event(event))
    }
}
