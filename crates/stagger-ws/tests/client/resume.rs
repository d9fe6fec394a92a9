//! Resuming where the last connection ended.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use http::{Request, Response};
use stagger_ws::{Event, Message, Resume, ResumeStatus};
use tokio::time::{Instant, sleep, timeout};

use super::acking_server::{AckMode, AckingServer, Command, acks, numbered};
use super::events::events;
use super::peer::Step::{Echo, Hang, Upgrade, Wait};
use super::peer::{close, header, text};
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs};

/// Tracks sequence numbers. Sends "from <last>" first if `asks` is set.
#[derive(Clone, Debug, Default)]
pub(super) struct Feed {
    last: u64,
    asks: bool,
    observed: Vec<String>,
}

impl Feed {
    /// Creates a feed that sends the first message.
    pub(super) fn sending_first() -> Self {
        Self { asks: true, ..Self::default() }
    }
}

impl Resume for Feed {
    fn on_request(&mut self, request: &mut Request<()>) {
        request.headers_mut().insert("last", self.last.into());
    }

    fn on_upgrade(&mut self, _: &Response<()>) -> ResumeStatus {
        if self.asks { ResumeStatus::Send(Message::text(format!("from {}", self.last))) } else { ResumeStatus::Pending }
    }

    fn on_handshake_message(&mut self, message: &Message) -> ResumeStatus {
        match message.to_text().unwrap() {
            "resumed" => ResumeStatus::Resumed,
            "fresh" => ResumeStatus::Fresh,
            "gone" => {
                self.last = 0;
                ResumeStatus::Rejected
            }
            _ => ResumeStatus::Pending,
        }
    }

    fn observe(&mut self, message: &Message) {
        let text = message.to_text().unwrap();
        self.last = text.parse().unwrap_or(self.last);
        self.observed.push(text.to_owned());
    }
}

fn positions(server: &ScriptedServer) -> Vec<Option<String>> {
    server.arrivals().iter().map(|arrival| header(&arrival.head, "last")).collect()
}

#[tokio::test(start_paused = true)]
async fn each_request_contains_the_position_and_the_event_says_whether_the_server_resumed() {
    let server = ScriptedServer::new([
        vec![Upgrade, text("fresh"), text("1"), text("2"), close(1001, "")],
        vec![Upgrade, text("resumed"), text("3"), close(1001, "")],
        vec![Upgrade, text("fresh"), Hang],
    ]);
    let mut client = server.over_pipes().resume(Feed::default()).connect();
    let (mut resumed, mut texts) = (Vec::new(), Vec::new());
    while let Ok(Some(event)) = timeout(secs(3600), client.next()).await {
        match event.unwrap() {
            Event::Open(opened) => resumed.push(opened.resumed),
            Event::Message(message) => texts.push(message.to_string()),
            _ => {}
        }
    }
    assert_eq!(resumed, [false, true, false]);
    assert_eq!(texts, ["fresh", "1", "2", "resumed", "3", "fresh"]);
    assert_eq!(positions(&server), ["0", "2", "3"].map(|last| Some(String::from(last))));
}

#[tokio::test(start_paused = true)]
async fn open_comes_after_the_negotiation_and_before_its_messages() {
    let server = ScriptedServer::new([vec![Upgrade, text("hello"), Wait(secs(5)), text("resumed"), text("1"), Hang]]);
    let feed = Arc::new(Mutex::new(Feed::default()));
    let mut client = server.over_pipes().resume(Arc::clone(&feed)).connect();
    let before = Instant::now();
    client.connected().await.unwrap();
    assert_eq!(before.elapsed(), secs(5));
    assert_eq!(events(&mut client).await, ["open 1", "hello", "resumed", "1"]);
    assert_eq!(feed.lock().unwrap().observed, ["hello", "resumed", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_position_ends_the_connection_and_backs_off() {
    let server = ScriptedServer::new([
        vec![Upgrade, text("fresh"), text("9"), Wait(secs(60))],
        vec![Upgrade, text("gone"), Hang],
        vec![Upgrade, text("fresh"), Hang],
    ]);
    let mut client = server.over_pipes().resume(Feed::default()).connect();
    let want = ["open 1", "fresh", "9", "lost Some(1)", "resume_rejected Some(2)", "open 2", "fresh"];
    assert_eq!(events(&mut client).await, want);
    assert_eq!(positions(&server), ["0", "9", "0"].map(|last| Some(String::from(last))));
}

// However long the negotiation takes, a connection that never opened is not healthy.
#[tokio::test(start_paused = true)]
async fn a_silent_negotiation_hits_the_connect_timeout_and_is_not_healthy() {
    let server = ScriptedServer::new([vec![Upgrade, Hang], vec![Upgrade, Hang], vec![Upgrade, text("fresh"), Hang]]);
    let policy = DOUBLING.stable_after(secs(1)).build().unwrap();
    let mut client = server.over_pipes().retrier(policy).connect_timeout(secs(5)).resume(Feed::default()).connect();
    assert_eq!(events(&mut client).await, ["connect_timeout Some(1)", "connect_timeout Some(2)", "open 3", "fresh"]);
    assert_eq!(server.times(), [secs(0), secs(6), secs(13)]);
}

#[tokio::test(start_paused = true)]
async fn a_close_in_a_long_negotiation_proves_neither_health_nor_credentials() {
    let closed = |code| vec![Upgrade, Wait(secs(4)), close(code, ""), Hang];
    for (code, want) in [
        (1001, &["closed Some(1)", "closed Some(2)", "open 3", "fresh"][..]),
        (3000, &["closed Some(1)", "closed None", "fatal permanent"]),
    ] {
        let server = ScriptedServer::new([closed(code), closed(code), vec![Upgrade, text("fresh"), Hang]]);
        let policy = DOUBLING.stable_after(secs(1)).build().unwrap();
        let mut client = server.over_pipes().retrier(policy).connect_timeout(secs(5)).resume(Feed::default()).connect();
        assert_eq!(events(&mut client).await, want);
        assert_eq!(server.times()[..2], [secs(0), secs(5)]);
        if let Some(third) = server.times().get(2) {
            assert_eq!(*third, secs(11), "the backoff goes on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_during_the_negotiation_never_opens() {
    let server =
        ScriptedServer::new([vec![Upgrade, text("hello"), close(1001, "")], vec![Upgrade, text("fresh"), Hang]]);
    let feed = Arc::new(Mutex::new(Feed::default()));
    let mut client = server.over_pipes().resume(Arc::clone(&feed)).connect();
    assert_eq!(events(&mut client).await, ["closed Some(1)", "open 2", "fresh"]);
    assert_eq!(feed.lock().unwrap().observed, ["fresh"]);
}

#[tokio::test(start_paused = true)]
async fn commands_are_handled_during_the_negotiation() {
    let server = ScriptedServer::new([vec![Upgrade, Hang], vec![Upgrade, Hang]]);
    let client = server.over_pipes().close_timeout(ms(1)).resume(Feed::default()).connect();
    sleep(secs(1)).await;
    client.handle().reconnect_now();
    sleep(secs(1)).await;
    let before = Instant::now();
    client.close().await;
    assert!(before.elapsed() <= ms(2));
    assert_eq!(server.times(), [secs(0), secs(1)]);
    assert!(client.connected().await.is_err());
}

// The echo of the first message decides nothing, and queued messages keep waiting.
#[tokio::test(start_paused = true)]
async fn only_the_first_message_is_sent_during_the_negotiation() {
    let server = ScriptedServer::new([vec![Upgrade, Echo], vec![Upgrade, text("fresh"), Echo]]);
    let mut client = server.over_pipes().resume(Feed::sending_first()).connect();
    client.handle().try_send(Message::text("later")).unwrap();
    assert_eq!(events(&mut client).await, ["connect_timeout Some(1)", "open 2", "fresh", "from 0", "later"]);
}

// As with a server that first reports what it has stored.
#[tokio::test(start_paused = true)]
async fn messages_acknowledged_during_the_negotiation_are_not_resent() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.over_pipes(64 << 10).resume(Feed::default()).acked(acks());
    sleep(ms(10)).await;
    server.send("fresh");
    for n in 1..=3 {
        client.send(numbered(n)).await.unwrap();
    }
    sleep(ms(10)).await;
    server.command(Command::Drop);
    sleep(secs(2)).await;
    server.send("up to 2");
    server.send("resumed");
    sleep(ms(10)).await;
    assert_eq!(server.received(), [vec![1, 2, 3], vec![3]]);
}

// Such as a login before resent messages.
#[tokio::test(start_paused = true)]
async fn the_first_message_precedes_resent_messages() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.over_pipes(64 << 10).resume(Feed::sending_first()).acked(acks());
    client.send(numbered(1)).await.unwrap();
    sleep(secs(1)).await;
    assert_eq!(server.received(), [[0_u64; 0]]);
    server.send("fresh");
    sleep(ms(10)).await;
    server.command(Command::Drop);
    sleep(secs(2)).await;
    assert_eq!(server.received(), [vec![1], vec![]]);
    server.send("resumed");
    sleep(ms(10)).await;
    assert_eq!(server.received(), [vec![1], vec![1]]);
}
