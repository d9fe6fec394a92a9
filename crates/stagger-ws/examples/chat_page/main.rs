//! A chat in the browser with a countdown to the next attempt. Compile the JavaScript client once, start the server,
//! open <http://127.0.0.1:8080/> in several windows, and kill the server or take the network away:
//!
//! ```sh
//! (cd clients/js && npm install && npm run build)
//! cargo run -p stagger-ws --example chat_page --features axum -- 127.0.0.1:8080 target/chat.jsonl
//! ```
//!
//! Messages wait while the server is away, and are stored once: a page sends each until it is acknowledged, and the
//! server recognizes what it has stored before. Without a file, a server that is started again has forgotten what was
//! said.
//!
//! Without an address, two clients in Rust chat over it, and it ends.

mod app;
mod history;
mod room;
mod site;

use core::net::SocketAddr;
use core::time::Duration;
use std::env;
use std::path::Path;

use axum::Router;
use futures_util::{SinkExt as _, StreamExt as _};
use stagger_ws::server::listen;
use stagger_ws::{BoxError, Client, Event, Message};
use tokio::time::timeout;

use crate::app::app;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let Some(address) = env::args().nth(1) else { return rehearse().await };
    let listener = listen(address.parse()?, 4096)?;
    println!("the chat is at http://{}/", listener.local_addr()?);
    let file = env::args_os().nth(2);
    axum::serve(listener, app(site::pages()?, file.as_deref().map(Path::new))?).await?;
    Ok(())
}

/// Lets two clients meet in the room, and a third read what they have said.
async fn rehearse() -> Result<(), BoxError> {
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 64)?;
    let url = format!("ws://{}/room", listener.local_addr()?);
    let app = app(Router::new(), None)?;
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let (mut ada, mut ben) = (Client::builder().url(&url).connect(), Client::builder().url(&url).connect());
    ada.send(Message::text(r#"{"page":"a","n":1,"name":"Ada","text":"Is anybody here?"}"#)).await?;
    println!("Ben reads  {}", next_line(&mut ben).await?);
    ben.send(Message::text(r#"{"page":"b","n":1,"name":"Ben","text":"I am."}"#)).await?;
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
