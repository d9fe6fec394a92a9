//! Many clients, a server that is torn down under them again and again, real sockets, and more than one thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use stagger::{Jitter, Policy};
use stagger_ws::{Client, ConnectionState, Event, Message, Outbox};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use super::scripted_server::{ms, secs};

/// How many connections each client has, and the most that any has had at once.
#[derive(Debug, Default)]
struct Present {
    now: HashMap<String, usize>,
    most: usize,
}

/// Counts a client in for as long as it is kept.
struct Counted(Arc<Mutex<Present>>, String);

impl Counted {
    fn new(present: &Arc<Mutex<Present>>, who: String) -> Self {
        let mut counts = present.lock().unwrap();
        let count = counts.now.entry(who.clone()).or_default();
        *count += 1;
        let count = *count;
        counts.most = counts.most.max(count);
        Self(Arc::clone(present), who)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(count) = self.0.lock().unwrap().now.get_mut(&self.1) {
            *count -= 1;
        }
    }
}

/// Answers with what it is sent.
#[allow(clippy::result_large_err, reason = "it is the callback's type")]
async fn serve(stream: TcpStream, present: Arc<Mutex<Present>>) {
    let mut who = String::new();
    let path = |request: &Request, response: Response| {
        who = request.uri().path().to_owned();
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(stream, path).await else { return };
    let _counted = Counted::new(&present, who);
    while let Some(Ok(message)) = socket.next().await {
        if socket.send(message).await.is_err() {
            break;
        }
    }
}

/// Accepts until it is dropped, and with it every connection.
async fn listen(listener: TcpListener, present: Arc<Mutex<Present>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&present)));
    }
}

/// Sends what it can and reads what comes; gives how many messages came, when it is closed.
async fn chat(mut client: Client) -> usize {
    let handle = client.handle();
    let talk = tokio::spawn(async move {
        for n in 0.. {
            if handle.send(Message::text(n.to_string())).await.is_err_and(|error| error.into_message().is_some()) {
                break;
            }
            sleep(ms(2)).await;
        }
    });
    let (mut count, mut is_open) = (0, false);
    while let Some(event) = client.next().await {
        match event.unwrap() {
            Event::Open(_) => assert!(!core::mem::replace(&mut is_open, true), "opened twice"),
            Event::Message(_) => {
                assert!(is_open, "a message between two connections");
                count += 1;
            }
            Event::Closed(_) => is_open = false,
            _ => {}
        }
    }
    talk.abort();
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_is_back_after_every_restart_and_none_is_there_twice() {
    const CLIENTS: usize = 100;
    let policy = Policy::exponential(ms(5), ms(50)).jitter(Jitter::Full).spread(ms(50)).build().unwrap();
    let present = Arc::new(Mutex::new(Present::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = tokio::spawn(listen(listener, Arc::clone(&present)));

    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let policy = policy.to_builder().max_attempts(1_000).build().unwrap();
            let url = format!("ws://{address}/{n}");
            Client::builder().url(url).policy(policy).outbox(Outbox::drop_oldest(8)).connect()
        })
        .collect();
    let handles: Vec<_> = clients.iter().map(Client::handle).collect();
    let chats: Vec<_> = clients.into_iter().map(|client| tokio::spawn(chat(client))).collect();
    for _ in 0..8 {
        for handle in &handles {
            timeout(secs(30), handle.connected()).await.expect("in time").unwrap();
        }
        sleep(ms(30)).await;
        server.abort();
        let _ = (&mut server).await;
        // All of them notice before there is a server again.
        for handle in &handles {
            let mut state = handle.state();
            timeout(secs(30), state.wait_for(|state| !matches!(state, ConnectionState::Open)))
                .await
                .expect("in time")
                .unwrap();
        }
        server = tokio::spawn(listen(TcpListener::bind(address).await.unwrap(), Arc::clone(&present)));
    }
    for handle in &handles {
        timeout(secs(30), handle.connected()).await.expect("in time").unwrap();
    }
    join_all(handles.iter().map(|handle| handle.close())).await;
    let counts: Vec<usize> = join_all(chats).await.into_iter().map(Result::unwrap).collect();
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(present.lock().unwrap().most, 1);
    server.abort();
}
