//! A feed that goes on where it left off, without a gap and without anything twice.
//!
//! ```sh
//! cargo run -p stagger-ws --example feed
//! ```

use core::net::SocketAddr;
use core::time::Duration;
use std::io;

use futures_util::{SinkExt, StreamExt};
use http::{HeaderValue, Request, Response, Uri};
use stagger::{Policy, policy};
use stagger_ws::{BoxError, Client, Event, Message, Resume, ResumeStatus};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::handshake::server::{Request as Upgrade, Response as Answer};

/// For a server with one client. With thousands, the spread is what keeps a restart from becoming an outage: at least as
/// long as it takes the server to accept them all.
const POLICY: Policy = policy!(exponential(ms(20), ms(200)).spread(ms(50)).max_attempts(100));

/// There is a piece of news every 5 ms, and it is never forgotten.
const EVERY: Duration = Duration::from_millis(5);

/// The number of the last one that was seen goes into the address.
struct News {
    url: String,
    last: u64,
}

impl Resume for News {
    fn on_request(&mut self, request: &mut Request<()>) {
        // What the provider gave is left as it is if this is no address.
        if let Ok(uri) = Uri::try_from(format!("{}?after={}", self.url, self.last)) {
            *request.uri_mut() = uri;
        }
    }

    fn on_upgrade(&mut self, answer: &Response<()>) -> ResumeStatus {
        let is_complete = answer.headers().contains_key("feed-complete");
        if is_complete && self.last > 0 { ResumeStatus::Resumed } else { ResumeStatus::Fresh }
    }

    fn on_handshake_message(&mut self, _: &Message) -> ResumeStatus {
        ResumeStatus::Fresh
    }

    fn observe(&mut self, message: &Message) {
        self.last = number(message).unwrap_or(self.last);
    }
}

fn number(message: &Message) -> Option<u64> {
    message.to_text().ok()?.strip_prefix("news ")?.parse().ok()
}

/// Tells the news after the number in the address.
#[expect(clippy::result_large_err, reason = "it is the callback's type")]
async fn serve(stream: TcpStream, begin: Instant) {
    let mut last = 0_u64;
    let upgrade = |request: &Upgrade, mut answer: Answer| {
        let after = request.uri().query().and_then(|query| query.strip_prefix("after=")?.parse().ok());
        last = after.unwrap_or(0);
        answer.headers_mut().insert("feed-complete", HeaderValue::from_static("yes"));
        Ok(answer)
    };
    let Ok(mut socket) = accept_hdr_async(stream, upgrade).await else { return };
    let mut ticks = interval(EVERY);
    loop {
        let now = begin.elapsed().as_millis() / EVERY.as_millis();
        while u128::from(last) < now {
            last += 1;
            if socket.send(Message::text(format!("news {last}"))).await.is_err() {
                return;
            }
        }
        ticks.tick().await;
    }
}

/// Accepts connections. When it is dropped, they all are.
async fn listen(address: SocketAddr, begin: Instant) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn(serve(stream, begin));
    }
}

/// Restarts the server every now and then.
async fn restart(address: SocketAddr) {
    let begin = Instant::now();
    loop {
        let server = tokio::spawn(listen(address, begin));
        sleep(Duration::from_millis(300)).await;
        server.abort();
        println!("-- the server is down");
        sleep(Duration::from_millis(100)).await;
        println!("-- the server is back");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // A port that is free now.
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let server = tokio::spawn(restart(address));

    let url = format!("ws://{address}/feed");
    let news = News { url: url.clone(), last: 0 };
    let mut feed = Client::builder().url(url).policy(POLICY).resume(news).connect();
    let (mut last, mut connections) = (0, 0);
    while last < 300 {
        match feed.next().await.ok_or("the feed ended")?? {
            Event::Open(opened) => {
                connections += 1;
                println!("open at attempt {}, goes on: {}", opened.attempt, opened.resumed);
                assert_eq!(opened.resumed, last > 0);
            }
            Event::Message(message) => {
                let number = number(&message).ok_or("no news")?;
                assert_eq!(number, last + 1, "a gap, or the same twice");
                last = number;
            }
            Event::Closed(closed) => println!("{} after news {last}; next try in {:?}", closed.cause, closed.retry_in),
            _ => {}
        }
    }
    feed.close().await;
    server.abort();
    println!("{last} pieces of news over {connections} connections, each once and in order");
    assert!(connections > 1);
    Ok(())
}
