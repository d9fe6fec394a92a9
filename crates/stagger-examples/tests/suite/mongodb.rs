//! MongoDB: replies as the server sends them, over a socket, because no system package has the server.

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::Error;
use stagger::{FailureKind, Outcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::recipes;

/// The operation codes of the wire protocol: the first message of a connection, and all others.
const OP_REPLY: i32 = 1;
const OP_QUERY: i32 = 2004;
const OP_MSG: i32 = 2013;

/// Serves one connection: the driver's own questions as a primary does, and `ping` with this reply.
async fn serve(mut stream: TcpStream, reply: Document) -> std::io::Result<()> {
    loop {
        let mut head = [0; 16];
        stream.read_exact(&mut head).await?;
        let number = |at: usize| i32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let mut body = vec![0; usize::try_from(number(0)).unwrap() - head.len()];
        stream.read_exact(&mut body).await?;
        let text = String::from_utf8_lossy(&body);
        let answer = if text.contains("ping\0") {
            reply.clone()
        } else {
            doc! {
                "ok": 1, "helloOk": true, "isWritablePrimary": true, "ismaster": true, "setName": "rs", "hosts": [stream.local_addr()?.to_string()],
                "me": stream.local_addr()?.to_string(), "setVersion": 1, "minWireVersion": 0, "maxWireVersion": 25,
                "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000,
                "logicalSessionTimeoutMinutes": 30,
            }
        };
        let answer = answer.to_vec().unwrap();
        let (code, prefix) = match number(12) {
            // Flags, cursor, offset, and the number of documents.
            OP_QUERY => (OP_REPLY, [&[0; 16][..], &1_i32.to_le_bytes()].concat()),
            // Flags, and the kind of the section.
            _ => (OP_MSG, vec![0; 5]),
        };
        let length = i32::try_from(16 + prefix.len() + answer.len()).unwrap();
        let fields = [length, 1, number(4), code].map(i32::to_le_bytes).concat();
        stream.write_all(&[fields, prefix, answer].concat()).await?;
    }
}

/// Returns the driver's error for a reply to a command.
async fn error_for(reply: Document) -> Error {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, reply.clone()));
        }
    });
    let client = Client::with_uri_str(format!("mongodb://{address}/?directConnection=true")).await.unwrap();
    client.database("test").run_command(doc! { "ping": 1 }).await.unwrap_err()
}

#[tokio::test]
async fn recorded_replies_are_classified_by_their_labels_and_codes() {
    let failed = |code: i32, name: &str, labels: &[&str]| {
        doc! { "ok": 0.0, "errmsg": "recorded", "code": code, "codeName": name, "errorLabels": labels }
    };
    for (reply, want) in [
        (failed(112, "WriteConflict", &["TransientTransactionError"]), Outcome::TRANSIENT),
        (failed(10107, "NotWritablePrimary", &["RetryableWriteError"]), Outcome::TRANSIENT),
        (failed(11600, "InterruptedAtShutdown", &[]), Outcome::TRANSIENT),
        (
            failed(462, "IngressRequestRateLimitExceeded", &["SystemOverloadedError", "RetryableError"]),
            Outcome::throttled(None),
        ),
        (
            failed(50, "MaxTimeMSExpired", &["UnknownTransactionCommitResult"]),
            Outcome::UnsafeToRetry(FailureKind::Transient),
        ),
        (failed(13, "Unauthorized", &[]), Outcome::Permanent),
        (failed(11000, "DuplicateKey", &[]), Outcome::Permanent),
    ] {
        let error = error_for(reply.clone()).await;
        assert_eq!(recipes::mongodb(&error), want, "{reply}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_transient() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let options = "directConnection=true&serverSelectionTimeoutMS=1";
    let client = Client::with_uri_str(format!("mongodb://{address}/?{options}")).await.unwrap();
    let error = client.database("test").run_command(doc! { "ping": 1 }).await.unwrap_err();
    assert_eq!(recipes::mongodb(&error), Outcome::TRANSIENT, "{error}");
}
