//! Servers that misbehave, over real sockets.

use futures_util::StreamExt;
use stagger::{Jitter, Policy, StopReason};
use stagger_ws::{Event, Message};
use tokio::time::sleep;

use super::peer::Step::{Answer, Echo, Hang, Send, Upgrade};
use super::peer::{close, frame, rejection, text};
use super::reconnect_loop::run;
use super::scripted_server::{ScriptedServer, ms, secs};

/// Returns the steps of a connection that the server accepts and ends normally.
fn normal_end() -> Vec<super::peer::Step> {
    vec![Upgrade, close(1000, ""), Hang]
}

#[tokio::test]
async fn one_loss_with_many_symptoms_is_one_reconnect() {
    // A protocol violation, two close frames, and the end of the stream.
    let loss = vec![Upgrade, text("first"), close(1001, ""), close(1001, ""), frame(0xff, b"?")];
    let server = ScriptedServer::new([loss.clone(), loss, normal_end()]);
    run(&mut server.over_sockets().await.reconnect_loop()).await.unwrap();
    assert_eq!(server.arrivals().len(), 3);
    assert_eq!(server.waits().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["closed"; 3]);
}

#[tokio::test]
async fn protocol_violations_are_survived() {
    let junk = "<html>502</html>\r\n\r\n".repeat(50);
    for (steps, want) in [
        (vec![], "lost"),
        (vec![Answer(String::from("HTTP/1.1 101 Switching Prot"))], "lost"),
        (vec![Answer(junk)], "protocol"),
        (vec![Answer(String::from("HTTP/1.1 101 Switching Protocols\r\n\r\n"))], "protocol"),
        (vec![Upgrade], "lost"),
        // Half a frame: a text message of 100 bytes, of which three arrive.
        (vec![Upgrade, Send(vec![0x81, 100, b'a', b'b', b'c'])], "lost"),
        (vec![Upgrade, frame(0x83, b"reserved")], "protocol"),
        (vec![Upgrade, frame(0x80, b"continues nothing")], "protocol"),
        (vec![Upgrade, frame(0x81, &[0xff, 0xfe])], "protocol"),
        (vec![Upgrade, frame(0x81, b"x"), frame(0x88, &[3])], "protocol"),
    ] {
        let server = ScriptedServer::new([steps.clone(), normal_end()]);
        run(&mut server.over_sockets().await.reconnect_loop()).await.unwrap();
        assert_eq!(server.waits()[0].0, want, "{steps:?}");
        assert_eq!(server.arrivals().len(), 2, "{steps:?}");
    }
}

#[tokio::test]
async fn many_messages_arrive_and_an_oversized_message_stops_the_client() {
    let flood: Vec<u8> = [0x82, 1, 7].repeat(100_000);
    let server = ScriptedServer::new([vec![Upgrade, Send(flood), close(1000, ""), Hang]]);
    let mut reconnect = server.over_sockets().await.reconnect_loop();
    let texts = super::reconnect_loop::exhaust(reconnect.next_connection().await.unwrap().unwrap()).await;
    assert_eq!(texts.len(), 100_000);

    // The frame announces 2^62 bytes; the client waits for none of them.
    let endless = vec![Upgrade, Send([&[0x82, 127, 0x40][..], &[0; 7]].concat()), Hang];
    let server = ScriptedServer::new([endless]);
    let fatal = run(&mut server.over_sockets().await.reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), fatal.cause().name()), (StopReason::Permanent, "protocol"));
}

#[tokio::test]
async fn an_endless_handshake_response_is_cut_off() {
    let server = ScriptedServer::new([
        vec![Answer("HTTP/1.1 101 x\r\n".to_owned() + &"x: y\r\n".repeat(1_000_000))],
        normal_end(),
    ]);
    run(&mut server.over_sockets().await.reconnect_loop()).await.unwrap();
    assert_eq!(server.arrivals().len(), 2);
}

#[tokio::test]
async fn a_port_without_a_listener_exhausts_the_attempts() {
    let builder = ScriptedServer::new([]).over_sockets().await;
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let fatal = run(&mut builder.url(format!("ws://127.0.0.1:{port}/")).reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), fatal.cause().name(), fatal.attempts()), (StopReason::Attempts, "io", 6));
}

#[tokio::test]
async fn a_server_that_never_responds_hits_the_connect_timeout() {
    let server = ScriptedServer::new([vec![Hang], normal_end()]);
    let builder = server.over_sockets().await.connect_timeout(ms(30));
    run(&mut builder.reconnect_loop()).await.unwrap();
    assert_eq!(server.waits()[0].0, "connect_timeout");
}

#[tokio::test]
async fn policy_violations_stop_and_credentials_are_renewed_once() {
    let server = ScriptedServer::new([vec![Upgrade, close(1008, "go away"), Hang], normal_end()]);
    let fatal = run(&mut server.over_sockets().await.reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.cause().close_code(), server.arrivals().len()), (Some(1008), 1));

    let server = ScriptedServer::new([rejection(401, ""), rejection(401, ""), normal_end()]);
    let fatal = run(&mut server.over_sockets().await.reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), server.arrivals().len()), (StopReason::Permanent, 2));
}

#[tokio::test]
async fn a_silent_peer_hits_the_keepalive_timeout() {
    let server = ScriptedServer::new([vec![Upgrade, text("the last message"), Hang], normal_end()]);
    let builder = server.over_sockets().await.keepalive(ms(20), ms(20));
    run(&mut builder.reconnect_loop()).await.unwrap();
    assert_eq!(server.waits()[0].0, "keepalive_timeout");
    assert_eq!(server.arrivals().len(), 2);
}

#[tokio::test]
async fn waits_grow_while_the_server_accepts_and_drops() {
    let server = ScriptedServer::new(vec![vec![Upgrade]; 5]);
    let policy = Policy::exponential(ms(20), secs(1)).jitter(Jitter::None).max_attempts(5).build().unwrap();
    run(&mut server.over_sockets().await.retrier(policy).reconnect_loop()).await.unwrap_err();
    let waits: Vec<_> = server.waits().into_iter().map_while(|(_, wait)| wait).collect();
    // The time since the loss is not waited for again.
    for (wait, want) in waits.iter().zip([20, 40, 80, 160]) {
        assert!(*wait <= ms(want) && *wait + ms(20) > ms(want), "{waits:?}");
    }
    assert!(waits[3] > waits[1], "{waits:?}");
    assert_eq!(server.arrivals().len(), 5);
}

#[tokio::test]
async fn close_codes_for_restart_and_overload_set_the_wait() {
    for (code, reason, from, to) in [
        (1012, "", secs(5), secs(30)),
        (1013, "", secs(30), secs(120)),
        (1012, r#"{"retry_after_ms":8000,"spread_ms":2000}"#, secs(8), secs(10)),
    ] {
        let server = ScriptedServer::new([vec![Upgrade, close(code, reason), Hang]]);
        let mut client = server.over_sockets().await.connect();
        let wait = loop {
            if let Event::Closed(closed) = client.next().await.unwrap().unwrap() {
                break closed.retry_in.unwrap();
            }
        };
        assert!(wait + ms(100) > from && wait <= to, "{code} {wait:?}");
    }
}

#[tokio::test]
async fn after_giving_up_the_outbox_is_sent_over_the_next_connection() {
    let server = ScriptedServer::new([vec![], rejection(503, ""), vec![Upgrade, Echo]]);
    let policy = Policy::constant(ms(1)).max_attempts(2).build().unwrap();
    let mut client = server.over_sockets().await.retrier(policy).connect();
    let sent = ["one", "two", "three"];
    for text in sent {
        client.handle().try_send(Message::text(text)).unwrap();
    }
    while client.next().await.unwrap().is_ok() {}
    client.handle().reconnect_now();
    client.connected().await.unwrap();
    let echoed: Vec<_> = client.messages().take(3).map(|message| message.unwrap().to_string()).collect().await;
    assert_eq!(echoed, sent);
}

#[tokio::test]
async fn close_leaves_no_task() {
    let server = ScriptedServer::new([vec![Upgrade, Echo]]);
    let client = server.over_sockets().await.keepalive(ms(5), secs(60)).connect();
    client.connected().await.unwrap();
    client.close().await;
    sleep(ms(50)).await;
    // Only the server's listener is left.
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
    assert_eq!(server.arrivals().len(), 1);
}
