//! No message is lost in any interleaving.

use futures_util::StreamExt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use stagger_ws::AckedHandle;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::acking_server::{AckMode, AckingServer, Command, acks, numbered, numbers};
use super::scripted_server::{DOUBLING, ms, secs};

const WINDOW: usize = 3;

#[derive(Clone, Debug)]
enum Act {
    /// Sends another message, when there is room.
    Send,
    /// The server acknowledges one of the received messages, alone or with all before it.
    One(prop::sample::Index),
    UpTo(prop::sample::Index),
    /// The connection is lost, and the server does or does not accept a new one.
    Drop,
    Away,
    Back,
    /// Replaces an open connection, or ends a wait.
    ReconnectNow,
    Pass(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The server comes back and acknowledges everything.
    Heal,
    Close,
}

fn act() -> impl Strategy<Value = Act> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => Just(Act::Send),
        2 => index().prop_map(Act::One),
        2 => index().prop_map(Act::UpTo),
        1 => Just(Act::Drop),
        1 => Just(Act::Away),
        1 => Just(Act::Back),
        1 => Just(Act::ReconnectNow),
        3 => prop_oneof![0_u64..20, 500_u64..3_000].prop_map(Act::Pass),
    ]
}

/// Sends the requested messages, repeatedly cancelling the wait for room.
async fn send(handle: AckedHandle<u64>, mut asked: mpsc::UnboundedReceiver<u64>) -> Vec<u64> {
    let mut accepted = Vec::new();
    while let Some(n) = asked.recv().await {
        loop {
            match timeout(ms(7), handle.send(numbered(n))).await {
                Ok(Ok(())) => break accepted.push(n),
                Ok(Err(_)) => return accepted,
                Err(_) => {}
            }
        }
    }
    accepted
}

async fn play(acts: Vec<Act>, pipe: usize, ending: Ending) {
    let server = AckingServer::new(AckMode::Nothing);
    let policy = DOUBLING.max_attempts(1_000).build().unwrap();
    let mut client = server.over_pipes(pipe).retrier(policy).acked(acks().window(WINDOW));
    let handle = client.handle();
    let (ask, asked) = mpsc::unbounded_channel();
    let sending = tokio::spawn(send(handle.clone(), asked));
    let reading = tokio::spawn(async move { while client.next().await.is_some() {} });
    let mut last = 0;
    for act in acts {
        let received = server.received().concat();
        match act {
            Act::Send => {
                last += 1;
                ask.send(last).unwrap();
            }
            Act::One(_) | Act::UpTo(_) if received.is_empty() => {}
            Act::One(which) => server.send(format!("one {}", which.get(&received))),
            Act::UpTo(which) => server.send(format!("up to {}", which.get(&received))),
            Act::Drop => server.command(Command::Drop),
            Act::Away => {
                server.set_available(false);
                server.command(Command::Drop);
            }
            Act::Back => server.set_available(true),
            Act::ReconnectNow => handle.client().reconnect_now(),
            Act::Pass(length) => sleep(ms(length)).await,
        }
        assert!(handle.unacked().len() <= WINDOW);
    }
    drop(ask);

    let returned = match ending {
        Ending::Heal => {
            server.set_ack_mode(AckMode::Acknowledge);
            server.set_available(true);
            server.command(Command::Drop);
            // Every message is accepted, and then acknowledged.
            sleep(secs(3_600)).await;
            timeout(secs(3_600), handle.flushed()).await.expect("in time").unwrap();
            drop(handle.close().await);
            Vec::new()
        }
        Ending::Close => numbers(&handle.close().await),
    };
    let accepted = sending.await.unwrap();
    reading.await.unwrap();
    let received = server.received();
    let mut first = Vec::new();
    for connection in &received {
        assert!(connection.is_sorted_by(|one, next| one < next), "out of order: {received:?}");
        first.extend(
            connection.iter().filter(|n| first.last().is_none_or(|last| *n > last)).copied().collect::<Vec<_>>(),
        );
    }
    assert_eq!(first, Vec::from_iter(1..=first.len() as u64), "a gap: {received:?}");
    if ending == Ending::Heal {
        assert_eq!((accepted.len() as u64, first.len() as u64), (last, last));
    }
    assert!(accepted.iter().all(|n| first.contains(n) || returned.contains(n)), "lost of {accepted:?}: {returned:?}");
    assert!(returned.is_sorted_by(|one, next| one < next) && returned.len() <= WINDOW, "{returned:?}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_message_is_delivered_in_order_or_returned(
        acts in vec(act(), 0..60),
        pipe in prop_oneof![Just(64_usize), Just(1 << 16)],
        ending in prop_oneof![Just(Ending::Heal), Just(Ending::Close)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(acts, pipe, ending));
    }
}
