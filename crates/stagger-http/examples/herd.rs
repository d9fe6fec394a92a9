//! 10,000 clients reconnect at the same moment to a server that handles 500 a second: with a reservation for each, with
//! `Retry-After` in whole seconds, and with only their own backoff. Runs on virtual time.
//!
//! ```sh
//! cargo run --release -p stagger-http --example herd
//! ```

use core::convert::Infallible;
use core::error::Error;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use stagger::admission::{Admission, random_secret};
use stagger::{Policy, Retrier, policy};
use stagger_http::attempt_number;
use stagger_http::header::RESERVATION;
use stagger_http::tower::{AdmissionLayer, ReplayBody, RetryLayer};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, ServiceExt as _, service_fn};

pub(crate) const CLIENTS: usize = 10_000;
pub(crate) const PER_SECOND: u32 = 500;
/// The minimum time to admit all clients.
pub(crate) const LIMIT: Duration = Duration::from_secs(CLIENTS as u64 / PER_SECOND as u64);
/// The policy of the clients.
const POLICY: Policy = policy!(exponential(ms(500), secs(30)).max_attempts(1000));

type Body = Empty<Bytes>;

/// What the server sends to the clients that it does not admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RejectionHint {
    Reservation,
    RetryAfter,
    Nothing,
}

impl RejectionHint {
    const fn name(self) -> &'static str {
        match self {
            Self::Reservation => "a reservation",
            Self::RetryAfter => "Retry-After",
            Self::Nothing => "nothing",
        }
    }
}

/// The times of arrivals and admissions.
#[derive(Default)]
struct Log {
    /// First attempts.
    first: Vec<Duration>,
    /// Retries.
    retries: Vec<Duration>,
    admitted: Vec<Duration>,
}

/// The figures of a run.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Attempts per client.
    pub(crate) attempts: f64,
    /// First attempts in the busiest second.
    pub(crate) peak_first: usize,
    /// Retries in the busiest second.
    pub(crate) peak_retries: usize,
    /// Admissions in the busiest second.
    pub(crate) peak_admitted: usize,
    /// Time until all clients were admitted.
    pub(crate) duration: Duration,
}

/// Returns the maximum number of times within any interval of one second.
fn peak_per_second(mut times: Vec<Duration>) -> usize {
    times.sort_unstable();
    let (mut from, mut most) = (0, 0);
    for (number, &time) in times.iter().enumerate() {
        while time - times[from] >= Duration::from_secs(1) {
            from += 1;
        }
        most = most.max(number + 1 - from);
    }
    most
}

pub(crate) async fn run(hint: RejectionHint) -> Result<Figures, Box<dyn Error>> {
    let (start, log) = (Instant::now(), Arc::new(Mutex::new(Log::default())));
    let note = {
        let log = Arc::clone(&log);
        move |which: fn(&mut Log) -> &mut Vec<Duration>| {
            which(&mut log.lock().unwrap_or_else(PoisonError::into_inner)).push(start.elapsed());
        }
    };
    let admission = Admission::per_second(PER_SECOND).build(random_secret())?;
    let handler = {
        let note = note.clone();
        service_fn(move |_: Request<Body>| {
            note(|log| &mut log.admitted);
            async { Ok::<_, Infallible>(Response::new(Body::new())) }
        })
    };
    let server = AdmissionLayer::new(admission).layer(handler);
    // Each client has a one-way latency of 5 to 24 ms.
    let network = |client: usize| {
        let (server, note, latency) = (server.clone(), note.clone(), Duration::from_millis(5 + client as u64 % 20));
        service_fn(move |request: Request<ReplayBody<Body>>| {
            let (server, note) = (server.clone(), note.clone());
            async move {
                sleep(latency).await;
                let is_first = attempt_number(request.extensions()) == 1;
                note(if is_first { |log| &mut log.first } else { |log| &mut log.retries });
                let mut response = server.oneshot(request.map(|_| Body::new())).await?;
                if hint != RejectionHint::Reservation {
                    response.headers_mut().remove(RESERVATION);
                }
                if hint == RejectionHint::Nothing {
                    response.headers_mut().remove("retry-after");
                }
                sleep(latency).await;
                Ok::<_, Infallible>(response)
            }
        })
    };
    // Each client stands for a process of its own, so none knows what the server has asked another one for.
    let layer = RetryLayer::new(Retrier::new(POLICY));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(layer.layer(network(client)).oneshot(Request::new(Body::new()))))
        .collect();
    for client in clients {
        assert_eq!(client.await?.map(|response| response.status().as_u16()), Ok(200));
    }
    let log = core::mem::take(&mut *log.lock().map_err(|_| "a client panicked")?);
    Ok(Figures {
        attempts: (log.first.len() + log.retries.len()) as f64 / CLIENTS as f64,
        peak_first: peak_per_second(log.first),
        peak_retries: peak_per_second(log.retries),
        peak_admitted: peak_per_second(log.admitted),
        duration: start.elapsed(),
    })
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{CLIENTS} clients, {PER_SECOND} admissions per second\n");
    println!("the server sends   attempts   arrivals per second   admitted per   all clients      wasted");
    println!("                   per client    first   retries    second at most   admitted after");
    for hint in [RejectionHint::Reservation, RejectionHint::RetryAfter, RejectionHint::Nothing] {
        let Figures { attempts, peak_first, peak_retries, peak_admitted, duration } = run(hint).await?;
        // The burst admits the first few immediately, so a run can take slightly less than the limit.
        let wasted = (duration.as_secs_f64() / LIMIT.as_secs_f64() - 1.0).max(0.0);
        println!(
            "{:16}   {attempts:10.2}   {peak_first:6}   {peak_retries:7}   {peak_admitted:15}   {:>12.1} s   {:>5.0} %",
            hint.name(),
            duration.as_secs_f64(),
            100.0 * wasted
        );
    }
    Ok(())
}
