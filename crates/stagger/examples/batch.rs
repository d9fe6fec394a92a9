//! A batch: the function behind an SQS queue. Only failed messages are sent again, messages that fail permanently
//! become dead letters, and the function stops before the messages are redelivered to another consumer. On virtual
//! time.
//!
//! ```sh
//! cargo run -p stagger --example batch
//! ```

use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::{Arc, LazyLock, Mutex};

use stagger::batch::{Batch, BatchResult, Failed, ItemResult, UnknownItem};
use stagger::budget::Tokens;
use stagger::time::{Clock as _, Tokio};
use stagger::{Outcome, Policy, Retrier, policy};
use tokio::time::sleep;

const POLICY: Policy = policy!(exponential(ms(200), secs(5)).max_attempts(4));
/// Shared by all batches of this process: a budget for all requests to the table.
static TABLE: LazyLock<Retrier> = LazyLock::new(|| Retrier::new(POLICY).named("table").budget(Tokens::new()));
/// Maximum duration of a request to the table.
const REQUEST: Duration = Duration::from_secs(1);
/// Attempts after which a message becomes a dead letter.
const MAX_ATTEMPTS: NonZeroU32 = NonZeroU32::new(5).unwrap();

struct Message {
    body: &'static str,
    /// `ApproximateReceiveCount`, as reported by SQS.
    received: u32,
}

/// A table that takes several rows per request, and reports which of them it rejected.
#[derive(Default)]
struct Table {
    requests: Vec<usize>,
}

impl Table {
    async fn put(&mut self, rows: &[(String, &'static str)]) -> Vec<(String, u16)> {
        sleep(Duration::from_millis(50)).await;
        self.requests.push(rows.len());
        let request = self.requests.len();
        let status = |body: &str| match body {
            "malformed" => Some(400),
            "hot" if request < 3 => Some(429),
            "lost" => Some(503),
            _ => None,
        };
        rows.iter().filter_map(|(id, body)| Some((id.clone(), status(body)?))).collect()
    }
}

type Letters = Arc<Mutex<Vec<(String, Option<u16>)>>>;

/// Handles one event; `left` is the remaining time of the invocation.
async fn handle(
    messages: Vec<(&'static str, Message)>,
    left: Duration,
    table: &mut Table,
    dead_letters: &Letters,
) -> Result<BatchResult<Message, u16>, UnknownItem> {
    let letters = Arc::clone(dead_letters);
    let mut batch = Batch::new(&*TABLE, messages)
        .lease(Tokio.now().saturating_add(left), REQUEST)
        .attempts_before(|message| message.received - 1)
        .dead_letter(MAX_ATTEMPTS, move |failed: &Failed<Message, u16>| {
            if let Ok(mut letters) = letters.lock() {
                letters.push((failed.id.clone(), failed.error));
            }
        });
    while batch.next_attempt().await {
        let rows: Vec<_> = batch.entries().iter().map(|entry| (entry.id.clone(), entry.item.body)).collect();
        for (id, status) in table.put(&rows).await {
            let outcome = match status {
                429 => Outcome::throttled(None),
                500.. => Outcome::TRANSIENT,
                _ => Outcome::Permanent,
            };
            batch.failed(&id, outcome, status)?;
        }
    }
    Ok(batch.finish())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), UnknownItem> {
    let message = |body, received| Message { body, received };
    let (mut table, dead_letters) = (Table::default(), Letters::default());
    let messages = vec![
        ("m-1", message("fine", 1)),
        ("m-2", message("hot", 1)),
        ("m-3", message("malformed", 1)),
        ("m-4", message("lost", 4)),
        ("m-5", message("lost", 1)),
    ];
    let result = handle(messages, Duration::from_secs(30), &mut table, &dead_letters).await?;
    let letters = dead_letters.lock().map(|letters| letters.clone()).unwrap_or_default();
    println!("rows in each request: {:?}", table.requests);
    println!("succeeded: {}, dead letters: {letters:?}", result.succeeded());
    println!("response: {}", result.response());
    // m-4 was received for the fourth time and failed twice here, which makes five.
    assert_eq!(table.requests, [5, 3, 2, 1]);
    assert_eq!(letters, [("m-3".to_owned(), Some(400)), ("m-4".to_owned(), Some(503))]);
    assert_eq!((result.succeeded(), result.failed().next().and_then(|failed| failed.error)), (2, Some(503)));
    // One result per message, in the order of the messages.
    assert!(result.items.iter().map(ItemResult::id).eq(["m-1", "m-2", "m-3", "m-4", "m-5"]));
    assert_eq!(result.response().to_string(), r#"{"batchItemFailures":[{"itemIdentifier":"m-5"}]}"#);

    // Too little time is left for another request: the batch stops before the invocation is killed, and loses nothing.
    let (mut table, began) = (Table::default(), Tokio.now());
    let messages = vec![("m-6", message("lost", 1))];
    let result = handle(messages, Duration::from_millis(1_050), &mut table, &dead_letters).await?;
    let took = Tokio.now().saturating_since(began);
    println!("with 1.05 s left: {} request in {took:.0?}, then {}", table.requests.len(), result.response());
    assert!(table.requests.len() == 1 && took < Duration::from_millis(60));
    Ok(())
}
