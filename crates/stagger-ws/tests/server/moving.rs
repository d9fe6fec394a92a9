//! A server drains, and its clients, which are ours, move to the next one.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt as _, StreamExt as _};
use http::Request;
use stagger_ws::server::{Accepted, Drain, Sockets};
use stagger_ws::{Builder, Client, Event, Message, Outbox};
use tokio::io::{AsyncRead, AsyncWrite, duplex};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

use crate::support::{SECOND, eventually, on_loopback, open_to_all, small};

/// What both servers write to: the last number of each client. It is written before it is acknowledged.
#[derive(Clone, Debug, Default)]
struct Store(Arc<Mutex<HashMap<String, u64>>>);

impl Store {
    /// Takes the next number, and no other; has the last one.
    fn take(&self, who: &str, number: u64) -> u64 {
        let mut stored = self.0.lock().unwrap();
        let last = stored.entry(who.to_owned()).or_default();
        if number == *last + 1 {
            *last = number;
        }
        *last
    }

    fn last(&self, who: &str) -> u64 {
        self.0.lock().unwrap().get(who).copied().unwrap_or_default()
    }
}

/// One of the two servers, with the times at which its clients came.
#[derive(Clone, Debug)]
struct Site {
    sockets: Sockets,
    store: Store,
    arrivals: Arc<Mutex<Vec<Instant>>>,
}

impl Site {
    fn new(store: &Store) -> Self {
        Self { sockets: open_to_all().build().unwrap(), store: store.clone(), arrivals: Arc::default() }
    }

    /// Stores numbers, and says which one was the last.
    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(self, Accepted { mut socket, request, .. }: Accepted<S>) {
        self.arrivals.lock().unwrap().push(Instant::now());
        while let Some(Ok(message)) = socket.next().await {
            if let Some(number) = message.to_text().ok().and_then(|text| text.parse().ok()) {
                let last = self.store.take(request.uri().path(), number);
                // After the close it cannot be said any more; what comes is still stored.
                let _ = socket.send(Message::text(last.to_string())).await;
            }
        }
    }

    /// The most that came within a second.
    fn busiest_second(&self) -> usize {
        let times = self.arrivals.lock().unwrap();
        let within = |from: usize| times[from..].iter().take_while(|&&time| time < times[from] + SECOND).count();
        (0..times.len()).map(within).max().unwrap_or_default()
    }
}

/// Says a number every second, and everything that was not acknowledged again after each opening. When it is told to end,
/// it waits for what is outstanding. Gives the last number.
async fn count(mut client: Client, mut going: watch::Receiver<bool>) -> u64 {
    let (handle, mut next, mut outstanding) = (client.handle(), 1, VecDeque::new());
    let mut ticks = interval(SECOND);
    loop {
        tokio::select! {
            event = client.next() => match event.expect("it goes on").expect("it does not give up") {
                Event::Open(_) => {
                    outstanding.iter().for_each(|number: &u64| drop(handle.try_send(Message::text(number.to_string()))));
                }
                Event::Message(last) => {
                    let last: u64 = last.to_text().unwrap().parse().unwrap();
                    outstanding.retain(|&number| number > last);
                }
                _ => {}
            },
            _ = ticks.tick(), if *going.borrow() => {
                outstanding.push_back(next);
                // If it is not taken now, it is after the next opening.
                drop(handle.try_send(Message::text(next.to_string())));
                next += 1;
            }
            Ok(()) = going.changed() => {}
        }
        if !*going.borrow() && outstanding.is_empty() {
            return next - 1;
        }
    }
}

/// A client that is to be sent to the first of two addresses, and to the second when it was told to leave. All of them come
/// at once, so the last one may wait for long.
fn moving(number: usize, [from, to]: [&str; 2]) -> Builder {
    let was_closed = Arc::new(AtomicBool::new(false));
    let (closed, from, to) = (Arc::clone(&was_closed), format!("{from}/{number}"), format!("{to}/{number}"));
    Client::builder()
        .request(move |_| {
            let request = Request::get(if was_closed.load(Ordering::Relaxed) { &*to } else { &*from }).body(());
            async { Ok(request?) }
        })
        .on_closed(move |event| {
            closed.fetch_or(event.cause.code() == Some(1012), Ordering::Relaxed);
        })
        .connect_timeout(60 * SECOND)
        .websocket(small())
        .outbox(Outbox::none())
}

/// So many clients move, of which the next server takes so many a second. The drain leaves a tenth of that free, for the
/// clients of a batch come anywhere within its time, and a second may begin in the middle of one.
async fn all_move(clients: usize, takes: u32, [from, to]: [Site; 2], client: impl Fn(usize) -> Builder) {
    let (go_on, going) = watch::channel(true);
    let mut counts = JoinSet::new();
    for number in 0..clients {
        let (client, going) = (client(number).connect(), going.clone());
        counts.spawn(async move { (format!("/{number}"), count(client, going).await) });
    }
    while from.sockets.active() < clients {
        sleep(SECOND / 100).await;
    }
    let progress = from.sockets.drain(Drain::per_second(takes * 9 / 10)).done().await;
    assert_eq!((progress.told, progress.left), (clients, 0));
    eventually("all are on the second", || to.sockets.active() == clients).await;
    go_on.send(false).unwrap();
    let counts = timeout(60 * SECOND, counts.join_all()).await.expect("all is acknowledged");

    assert_eq!((to.arrivals.lock().unwrap().len(), from.arrivals.lock().unwrap().len()), (clients, clients));
    let busiest = to.busiest_second();
    assert!(busiest <= takes as usize, "{busiest} in a second, of {takes}");
    for (who, last) in counts {
        assert_eq!(to.store.last(&who), last, "{who}");
        assert!(last > 0);
    }
}

async fn all_move_over_sockets(clients: usize, takes: u32) {
    // A client, its end of the connection, and the server's: on two servers.
    stagger_kit::raise_descriptor_limit(4 * clients as u64).unwrap();
    let store = Store::default();
    let sites = [Site::new(&store), Site::new(&store)];
    let addresses = sites.clone().map(|site| {
        let (listener, address) = on_loopback();
        let sockets = site.sockets.clone();
        tokio::spawn(async move { sockets.serve(listener, move |accepted| site.clone().serve(accepted)).await });
        format!("ws://{address}")
    });
    all_move(clients, takes, sites, |number| moving(number, addresses.each_ref().map(String::as_str))).await;
}

#[tokio::test(start_paused = true)]
async fn two_thousand_clients_move_and_the_next_server_never_meets_more_than_it_takes_in_a_second() {
    let store = Store::default();
    let sites = [Site::new(&store), Site::new(&store)];
    let [from, to] = sites.clone();
    let client = |number| {
        let (from, to) = (from.clone(), to.clone());
        moving(number, ["ws://from.test", "ws://to.test"]).connector(move |address: http::Uri| {
            let site = if address.host() == Some("to.test") { to.clone() } else { from.clone() };
            let (ours, theirs) = duplex(1024);
            tokio::spawn(async move {
                if let Ok(accepted) = site.sockets.accept(theirs).await {
                    site.serve(accepted).await;
                }
            });
            async { io::Result::Ok(ours) }
        })
    };
    all_move(2_000, 200, sites, client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_clients_move_over_sockets() {
    all_move_over_sockets(300, 150).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the size that is claimed, over sockets: a quarter of a minute"]
async fn two_thousand_clients_move_over_sockets() {
    all_move_over_sockets(2_000, 200).await;
}
