//! A feed that resumes after each reconnect, without gaps or duplicates.
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

/// For a server with a single client. With thousands of clients, the spread keeps a restart from becoming an outage: it
/// should be at least the time that the server needs to accept all of them.
const POLICY: Policy = policy!(exponential(ms(20), ms(200)).spread(ms(50)).max_attempts(100));

/// The feed publishes an item every 5 ms and keeps all of them.
const EVERY: Duration = Duration::from_millis(5);

/// Adds the number of the last received item to the URL.
struct News {
    url: String,
    last: u64,
}

impl Resume for News {
    fn on_request(&mut self, request: &mut Request<()>) {
        // If this is not a valid URI, the request is left unchanged.
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

/// Sends all items after the number in the URL.
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

/// Accepts connections. Dropping the future drops all of them.
async fn listen(address: SocketAddr, begin: Instant) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn(serve(stream, begin));
    }
}

/// Restarts the server repeatedly.
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
    // A port that is currently free.
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let server = tokio::spawn(restart(address));

    let url = format!("ws://{address}/feed");
    let news = News { url: url.clone(), last: 0 };
    let mut feed = Client::builder().url(url).retrier(POLICY).resume(news).connect();
    let (mut last, mut connections) = (0, 0);
    while last < 300 {
        match feed.next().await.ok_or("the feed ended")?? {
            Event::Open(opened) => {
                connections += 1;
                println!("open at attempt {}, resumed: {}", opened.attempt, opened.resumed);
                assert_eq!(opened.resumed, last > 0);
            }
            Event::Message(message) => {
                let number = number(&message).ok_or("not an item")?;
                assert_eq!(number, last + 1, "a gap or a duplicate");
                last = number;
            }
            Event::Closed(closed) => {
                println!("{} after item {last}; next attempt in {:?}", closed.cause, closed.retry_in)
            }
            _ => {}
        }
    }
    feed.close().await;
    server.abort();
    println!("{last} items over {connections} connections, each exactly once and in order");
    assert!(connections > 1);
    Ok(())
}
