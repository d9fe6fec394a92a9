//! A chat in the browser with a countdown to the next attempt. Compile the JavaScript client once, start the server, open
//! <http://127.0.0.1:8080/> in several windows, and kill the server or take the network away:
//!
//! ```sh
//! (cd clients/js && npm install && npm run build)
//! cargo run -p stagger-ws --example chat_page --features axum -- 127.0.0.1:8080
//! ```
//!
//! Without an address, two clients in Rust chat over it, and it ends.

mod room;
mod site;

use core::net::SocketAddr;
use core::time::Duration;
use std::env;

use axum::Router;
use axum::routing::any;
use futures_util::{SinkExt as _, StreamExt as _};
use stagger::admission::{Admission, random_secret};
use stagger_ws::server::{RejectBy, Sockets, listen};
use stagger_ws::{BoxError, Client, Event, Message};
use tokio::time::timeout;

use crate::room::Room;

/// How many browsers are let in per second. The others are told when their turn is.
const PER_SECOND: u32 = 20;

/// Returns the application: the room, and the page if its client is compiled.
fn app(site: Router<Sockets>) -> Result<Router, BoxError> {
    let admission = Admission::per_second(PER_SECOND).build(random_secret())?;
    // A browser shows a page what is in a close frame, and nothing of a response with the status 503.
    let sockets = Sockets::builder(admission).max_connections(10_000).reject_by(RejectBy::browser).build()?;
    let room = Room::default();
    let join = move |query, upgrade| room.clone().join(query, upgrade);
    Ok(site.route("/room", any(join)).with_state(sockets))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let Some(address) = env::args().nth(1) else { return rehearse().await };
    let listener = listen(address.parse()?, 4096)?;
    println!("the chat is at http://{}/", listener.local_addr()?);
    axum::serve(listener, app(site::pages()?)?).await?;
    Ok(())
}

/// Lets two clients meet in the room, and a third read what they have said.
async fn rehearse() -> Result<(), BoxError> {
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 64)?;
    let url = format!("ws://{}/room", listener.local_addr()?);
    let app = app(Router::new())?;
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let (mut ada, mut ben) = (Client::builder().url(&url).connect(), Client::builder().url(&url).connect());
    ada.send(Message::text(r#"{"name":"Ada","text":"Is anybody here?"}"#)).await?;
    println!("Ben reads  {}", next_line(&mut ben).await?);
    ben.send(Message::text(r#"{"name":"Ben","text":"I am."}"#)).await?;
    let mut cleo = Client::builder().url(&url).connect();
    for _ in 0..2 {
        println!("Cleo reads {}", next_line(&mut cleo).await?);
    }
    server.abort();
    Ok(())
}

/// Waits for the next line that somebody has said.
async fn next_line(client: &mut Client) -> Result<String, BoxError> {
    let line = async {
        while let Some(event) = client.next().await {
            match event? {
                Event::Message(message) if message.to_text()?.contains("\"id\"") => {
                    return Ok(message.to_text()?.to_owned());
                }
                _ => {}
            }
        }
        Err(BoxError::from("the client has ended"))
    };
    timeout(Duration::from_secs(30), line).await?
}
