//! A thousand tasks before a server that refuses everything for ten seconds, in virtual time.

use stagger::time::Tokio;
use stagger_http::tower::RetryLayer;
use tokio::time::{sleep, sleep_until};
use tower::{ServiceBuilder, ServiceExt as _};

use super::*;

const FOUR: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));
const TASKS: u32 = 1_000;
const PERIOD: Duration = Duration::from_secs(10);
const REFUSES: core::ops::Range<Duration> = Duration::from_secs(20)..Duration::from_secs(30);
const LENGTH: Duration = Duration::from_secs(60);
const ONE_WAY: Duration = ms(25);

/// What a server saw, and how many calls failed.
struct Seen {
    /// When each request arrived, and whether it was refused.
    requests: Vec<(Duration, bool)>,
    calls: usize,
    failed: usize,
}

impl Seen {
    fn between(&self, from: Duration, until: Duration) -> usize {
        self.requests.iter().filter(|(at, _)| (from..until).contains(at)).count()
    }

    fn refused_from(&self, from: Duration) -> usize {
        self.requests.iter().filter(|(at, is_refused)| *at >= from && *is_refused).count()
    }

    fn most_within(&self, length: Duration, from: Duration) -> usize {
        let times: Vec<_> = self.requests.iter().map(|(at, _)| *at).filter(|at| *at >= from).collect();
        (0..times.len()).map(|n| times[n..].iter().take_while(|at| **at < times[n] + length).count()).max().unwrap_or(0)
    }
}

/// Runs the tasks, each of which makes a call every ten seconds, before a server that takes 120 per second in bursts of
/// 12.
async fn run(layer: RetryLayer<Tokio>) -> Seen {
    let start = Instant::now();
    let log = Arc::new(Mutex::new((Vec::new(), 12.0_f64, Duration::ZERO)));
    let server = {
        let log = Arc::clone(&log);
        tower::service_fn(move |_: LayerRequest| {
            let log = Arc::clone(&log);
            async move {
                sleep(ONE_WAY).await;
                let at = start.elapsed();
                let is_refused = {
                    let (requests, tokens, filled) = &mut *log.lock().unwrap();
                    *tokens = (*tokens + (at - *filled).as_secs_f64() * 120.0).min(12.0);
                    *filled = at;
                    let is_refused = REFUSES.contains(&at) || *tokens < 1.0;
                    *tokens -= f64::from(u8::from(!is_refused));
                    requests.push((at, is_refused));
                    is_refused
                };
                sleep(ONE_WAY).await;
                Ok::<_, std::io::Error>(match (is_refused, REFUSES.contains(&at)) {
                    (true, true) => limited("retry-after", "10"),
                    (true, false) => Response::builder().status(429).body(Full::default()).unwrap(),
                    (false, _) => ok(),
                })
            }
        })
    };
    let client = ServiceBuilder::new().layer(layer).service(server);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let client = client.clone();
            // Spread evenly, in an order that is not that of the tasks.
            let first = PERIOD * (task * 619 % TASKS) / TASKS;
            tokio::spawn(async move {
                let (mut next, mut calls, mut failed) = (start + first, 0, 0);
                while next < start + LENGTH {
                    sleep_until(next).await;
                    let call = client.clone().oneshot(get(API));
                    let Ok(answer) = tokio::time::timeout_at(start + LENGTH, call).await else { break };
                    calls += 1;
                    failed += usize::from(code(&answer) != 200);
                    next = (next + PERIOD).max(Instant::now());
                }
                (calls, failed)
            })
        })
        .collect();
    let (mut calls, mut failed) = (0, 0);
    for task in tasks {
        let (made, lost) = task.await.unwrap();
        calls += made;
        failed += lost;
    }
    let requests = log.lock().unwrap().0.clone();
    Seen { requests, calls, failed }
}

#[tokio::test(start_paused = true)]
async fn one_hint_holds_a_thousand_tasks_and_their_return_is_paced() {
    let seen = run(RetryLayer::new(quiet(FOUR))).await;
    let end = REFUSES.end;
    // One round trip after the first refusal, the last request of before has arrived.
    let (in_pause, most) = (seen.between(REFUSES.start + ms(100), end), seen.most_within(ms(100), end));
    let figures = (in_pause, most, seen.refused_from(end), seen.failed, seen.calls);
    assert!(in_pause <= 1 && most <= 18 && seen.refused_from(end) <= 50 && seen.failed <= 3, "{figures:?}");
    assert!(seen.calls >= 5_000, "{figures:?}");
}

#[tokio::test(start_paused = true)]
async fn by_default_each_call_finds_out_for_itself() {
    let seen = run(RetryLayer::new(FOUR)).await;
    let in_pause = seen.between(REFUSES.start + ms(100), REFUSES.end);
    assert!(in_pause > 500 && seen.failed > 200, "{in_pause} requests, {} failed", seen.failed);
}
