//! A retry queue: a consumer with thousands of pending retries on one task. They can be cancelled, rescheduled, and
//! handed over to the next process on shutdown. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example retry_queue
//! ```

use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use stagger::budget::Tokens;
use stagger::queue::{Key, Pending, RetryQueue};
use stagger::time::{Clock as _, Tokio};
use stagger::{Outcome, Policy, Retrier, policy};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

const POLICY: Policy = policy!(exponential(secs(30), mins(5)).max_attempts(6));
const MESSAGES: u32 = 10_000;
/// Duration of the outage of the service behind the consumer.
const OUTAGE: Duration = Duration::from_secs(20);

type Queue = RetryQueue<u32, Tokio>;

struct Service {
    comes_back: stagger::Instant,
    calls: u32,
}

impl Service {
    async fn handle(&mut self, _message: u32) -> Result<(), &'static str> {
        self.calls += 1;
        if Tokio.now() < self.comes_back { Err("down") } else { Ok(()) }
    }
}

/// The results of the messages.
#[derive(Default)]
struct Outcomes {
    done: u32,
    given_up: u32,
    /// Attempts of the completed messages.
    attempts: u32,
    /// Keys of the messages in the queue.
    keys: Vec<Key>,
}

/// Consumes new messages and retries in one `select!`, until there are neither.
async fn consume(queue: &mut Queue, incoming: &mut mpsc::Receiver<u32>, service: &mut Service, out: &mut Outcomes) {
    loop {
        let begun = tokio::select! {
            Some(message) = incoming.recv() => queue.begin(message),
            Some(due) = queue.next() => due,
            else => return,
        };
        // Only a breaker can reject an attempt.
        let Ok(job) = begun else { continue };
        match service.handle(job.item).await {
            Ok(()) => {
                out.attempts += job.number();
                out.done += 1;
                job.succeeded();
            }
            Err(_) => match queue.push_retry(job, Outcome::TRANSIENT) {
                Ok(queued) => out.keys.push(queued.key),
                Err(stopped) => {
                    out.attempts += stopped.attempts;
                    out.given_up += 1;
                }
            },
        }
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let (sender, mut incoming) = mpsc::channel(100);
    tokio::spawn(async move {
        for message in 0..MESSAGES {
            if sender.send(message).await.is_err() {
                return;
            }
            if message % 10 == 0 {
                sleep(Duration::from_millis(9)).await;
            }
        }
    });
    // Enough for 20,000 retries in a row, plus one more for each success.
    let budget = Arc::new(Tokens::builder().capacity(100_000).build()?);
    let new_queue = || Queue::new(Retrier::new(POLICY).shared_guard(budget.clone())).capacity(100_000);

    let (mut queue, mut out) = (new_queue(), Outcomes::default());
    let mut service = Service { comes_back: Tokio.now().saturating_add(OUTAGE), calls: 0 };
    let shutdown = Instant::now() + Duration::from_secs(11);
    // Dropping the consumer while it waits loses nothing: pending messages stay in the queue.
    let _ = timeout_at(shutdown, consume(&mut queue, &mut incoming, &mut service, &mut out)).await;
    let pending = queue.len();
    println!("after 11 s {pending} of {MESSAGES} messages wait for their next attempt, on one task with one timer");
    assert!(pending > 5_000 && out.done == 0);

    // Cancel one message, and move another one to the front.
    let [.., one, other] = out.keys[..] else { return Err("no message failed".into()) };
    out.attempts += queue.pending(one).map_or(0, |pending| pending.paused.attempt());
    let cancelled = queue.cancel(one).ok_or("not pending")?;
    assert!(queue.reschedule(other, Duration::ZERO) && queue.next_due().is_some_and(|due| due <= Tokio.now()));
    assert_eq!((queue.len(), queue.cancel(one)), (pending - 1, None));
    println!("message {cancelled} is cancelled, {:?} is rescheduled", queue.get(other));

    // Shutdown: all pending messages, with their remaining waits. With the feature `serde` they can be persisted.
    let handed_over: Vec<Pending<u32>> = queue.into_pending().collect();
    let longest = handed_over.iter().map(|pending| pending.left).max().unwrap_or_default();
    println!("handed over: {} retries, the last of them due in {longest:.1?}", handed_over.len());

    let downtime = Duration::from_secs(2);
    sleep(downtime).await;
    let (mut queue, mut rejected) = (new_queue(), 0);
    for pending in handed_over {
        rejected += u32::from(queue.restore(pending.advanced_by(downtime)).is_err());
    }
    println!("restored after {downtime:?} of downtime: {}; rejected by the budget: {rejected}", queue.len());
    consume(&mut queue, &mut incoming, &mut service, &mut out).await;

    let calls = f64::from(service.calls) / f64::from(MESSAGES);
    println!("{} done, {} given up, 1 cancelled, {calls:.2} calls per message", out.done, out.given_up);
    assert_eq!((rejected, out.done + out.given_up + 1), (0, MESSAGES));
    assert_eq!(out.attempts, service.calls, "attempts are counted across the restart");
    assert!(out.given_up < MESSAGES / 100 && calls < 3.0);
    assert!(queue.is_empty());
    Ok(())
}
