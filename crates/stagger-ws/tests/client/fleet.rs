//! Many clients and a server that is repeatedly torn down, over real sockets and on more than one thread.

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

/// The number of open connections per client, and its maximum.
#[derive(Debug, Default)]
struct Connections {
    now: HashMap<String, usize>,
    most: usize,
}

/// Counts a connection of a client while it is alive.
struct Counted(Arc<Mutex<Connections>>, String);

impl Counted {
    fn new(connections: &Arc<Mutex<Connections>>, client: String) -> Self {
        let mut counts = connections.lock().unwrap();
        let count = counts.now.entry(client.clone()).or_default();
        *count += 1;
        let count = *count;
        counts.most = counts.most.max(count);
        Self(Arc::clone(connections), client)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(count) = self.0.lock().unwrap().now.get_mut(&self.1) {
            *count -= 1;
        }
    }
}

/// Echoes messages.
#[allow(clippy::result_large_err, reason = "it is the callback's type")]
async fn serve(stream: TcpStream, connections: Arc<Mutex<Connections>>) {
    let mut client = String::new();
    let path = |request: &Request, response: Response| {
        client = request.uri().path().to_owned();
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(stream, path).await else { return };
    let _counted = Counted::new(&connections, client);
    while let Some(Ok(message)) = socket.next().await {
        if socket.send(message).await.is_err() {
            break;
        }
    }
}

/// Accepts connections until dropped, which also drops the connections.
async fn listen(listener: TcpListener, connections: Arc<Mutex<Connections>>) {
    let mut tasks = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        tasks.spawn(serve(stream, Arc::clone(&connections)));
    }
}

/// Sends and reads until the client is closed. Returns the number of messages received.
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
async fn every_client_reconnects_after_every_restart_with_at_most_one_connection() {
    const CLIENTS: usize = 100;
    let policy = Policy::exponential(ms(5), ms(50)).jitter(Jitter::Full).spread(ms(50)).build().unwrap();
    let connections = Arc::new(Mutex::new(Connections::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = tokio::spawn(listen(listener, Arc::clone(&connections)));

    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let policy = policy.to_builder().max_attempts(1_000).build().unwrap();
            let url = format!("ws://{address}/{n}");
            Client::builder().url(url).retrier(policy).outbox(Outbox::drop_oldest(8)).connect()
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
        // All clients notice before the server is back.
        for handle in &handles {
            let mut state = handle.state();
            timeout(secs(30), state.wait_for(|state| !matches!(state, ConnectionState::Open)))
                .await
                .expect("in time")
                .unwrap();
        }
        server = tokio::spawn(listen(TcpListener::bind(address).await.unwrap(), Arc::clone(&connections)));
    }
    for handle in &handles {
        timeout(secs(30), handle.connected()).await.expect("in time").unwrap();
    }
    join_all(handles.iter().map(|handle| handle.close())).await;
    let counts: Vec<usize> = join_all(chats).await.into_iter().map(Result::unwrap).collect();
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(connections.lock().unwrap().most, 1);
    server.abort();
}
