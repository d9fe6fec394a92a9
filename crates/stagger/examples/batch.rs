//! A batch: the function behind an SQS queue. Only the failed messages are sent again, what never works becomes a dead
//! letter, and it stops before the messages are delivered to somebody else. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example batch
//! ```

use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use stagger::batch::{Batch, BatchResult, Failed, UnknownItem};
use stagger::budget::Tokens;
use stagger::{Guards, Outcome, Policy, policy, time::Clock as _, time::Tokio};
use tokio::time::sleep;

const POLICY: Policy = policy!(exponential(ms(200), secs(5)).max_attempts(4));
/// Shared by all batches of this process.
static BUDGET: Tokens = Tokens::new();
/// How long a request to the table may take.
const REQUEST: Duration = Duration::from_secs(1);
/// A message that has failed so often is not tried again.
const MOST: NonZeroU32 = NonZeroU32::new(5).unwrap();

struct Message {
    body: &'static str,
    /// `ApproximateReceiveCount`, as SQS tells it.
    received: u32,
}

/// A table that takes several rows at once, and says which of them it did not take.
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

/// What the function does with one event; `left` is what is left of the invocation.
async fn handle(
    messages: Vec<(&'static str, Message)>,
    left: Duration,
    table: &mut Table,
    dead: &Letters,
) -> Result<BatchResult<Message, u16>, UnknownItem> {
    let letters = Arc::clone(dead);
    let mut batch = Batch::new(&POLICY, messages)
        .guards(Guards::none().budget(&BUDGET))
        .lease(Tokio.now().saturating_add(left), REQUEST)
        .attempts_before(|message| message.received - 1)
        .dead_letter(MOST, move |failed: Failed<Message, u16>| {
            if let Ok(mut letters) = letters.lock() {
                letters.push((failed.id, failed.error));
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
    let (mut table, dead) = (Table::default(), Letters::default());
    let messages = vec![
        ("m-1", message("fine", 1)),
        ("m-2", message("hot", 1)),
        ("m-3", message("malformed", 1)),
        ("m-4", message("lost", 4)),
        ("m-5", message("lost", 1)),
    ];
    let finished = handle(messages, Duration::from_secs(30), &mut table, &dead).await?;
    let letters = dead.lock().map(|letters| letters.clone()).unwrap_or_default();
    println!("rows in each request: {:?}", table.requests);
    println!("worked: {}, dead letters: {letters:?}", finished.succeeded);
    println!("response: {}", finished.response());
    // m-4 came for the fourth time and failed twice here, which makes five.
    assert_eq!(table.requests, [5, 3, 2, 1]);
    assert_eq!(letters, [("m-3".to_owned(), Some(400)), ("m-4".to_owned(), Some(503))]);
    assert_eq!((finished.succeeded, finished.failed[0].error), (2, Some(503)));
    assert_eq!(finished.response().to_string(), r#"{"batchItemFailures":[{"itemIdentifier":"m-5"}]}"#);

    // Too little is left of the invocation for another request: it ends before it is ended, and nothing is lost.
    let (mut table, began) = (Table::default(), Tokio.now());
    let finished = handle(vec![("m-6", message("lost", 1))], Duration::from_millis(1_050), &mut table, &dead).await?;
    let took = Tokio.now().saturating_since(began);
    println!("with 1.05 s left: {} request in {took:.0?}, then {}", table.requests.len(), finished.response());
    assert!(table.requests.len() == 1 && took < Duration::from_millis(60));
    Ok(())
}
