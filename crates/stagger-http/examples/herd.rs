//! Ten thousand clients come back at the same moment, to a server that takes 500 a second: with an appointment for each,
//! with a `Retry-After` in whole seconds, and with nothing but their own backoff. On virtual time.
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
use stagger::{Policy, Retrier, admission::Admission, policy};
use stagger_http::advice::SLOT;
use stagger_http::attempt_number;
use stagger_http::tower::{AdmissionLayer, ReplayBody, RetryLayer};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, ServiceExt as _, service_fn};

pub(crate) const CLIENTS: usize = 10_000;
pub(crate) const PER_SECOND: u32 = 500;
/// Nobody can let them all in sooner.
pub(crate) const LIMIT: Duration = Duration::from_secs(CLIENTS as u64 / PER_SECOND as u64);
/// What a client does by itself.
const POLICY: Policy = policy!(exponential(ms(500), secs(30)).max_attempts(1000));

type Body = Empty<Bytes>;

/// What the server says to those that it does not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Reservation,
    RetryAfter,
    Nothing,
}

impl Says {
    const fn name(self) -> &'static str {
        match self {
            Self::Reservation => "an appointment",
            Self::RetryAfter => "Retry-After",
            Self::Nothing => "nothing",
        }
    }
}

/// When requests came, and when one was let in.
#[derive(Default)]
struct Log {
    first: Vec<Duration>,
    again: Vec<Duration>,
    admitted: Vec<Duration>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Figures {
    /// For each client.
    pub(crate) attempts: f64,
    /// First attempts in the busiest second.
    pub(crate) at_first: usize,
    /// Other attempts in the busiest second.
    pub(crate) then: usize,
    /// Let in, in the busiest second.
    pub(crate) admitted: usize,
    /// Until everybody was in.
    pub(crate) took: Duration,
}

/// The most that lie within a second of each other, wherever that second begins.
fn in_busiest_second(mut times: Vec<Duration>) -> usize {
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

pub(crate) async fn run(says: Says) -> Result<Figures, Box<dyn Error>> {
    let (start, log) = (Instant::now(), Arc::new(Mutex::new(Log::default())));
    let note = {
        let log = Arc::clone(&log);
        move |which: fn(&mut Log) -> &mut Vec<Duration>| {
            which(&mut log.lock().unwrap_or_else(PoisonError::into_inner)).push(start.elapsed());
        }
    };
    let admission = Admission::per_second(PER_SECOND).secret(stagger::seed()).build()?;
    let handler = {
        let note = note.clone();
        service_fn(move |_: Request<Body>| {
            note(|log| &mut log.admitted);
            async { Ok::<_, Infallible>(Response::new(Body::new())) }
        })
    };
    let server = AdmissionLayer::new(admission).layer(handler);
    // Each client is 5 to 24 ms away.
    let network = |client: usize| {
        let (server, note, way) = (server.clone(), note.clone(), Duration::from_millis(5 + client as u64 % 20));
        service_fn(move |request: Request<ReplayBody<Body>>| {
            let (server, note) = (server.clone(), note.clone());
            async move {
                sleep(way).await;
                let is_first = attempt_number(request.extensions()) == 1;
                note(if is_first { |log| &mut log.first } else { |log| &mut log.again });
                let mut answer = server.oneshot(request.map(|_| Body::new())).await?;
                if says != Says::Reservation {
                    answer.headers_mut().remove(SLOT);
                }
                if says == Says::Nothing {
                    answer.headers_mut().remove("retry-after");
                }
                sleep(way).await;
                Ok::<_, Infallible>(answer)
            }
        })
    };
    let layer = RetryLayer::new(Retrier::new(POLICY));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(layer.layer(network(client)).oneshot(Request::new(Body::new()))))
        .collect();
    for client in clients {
        assert_eq!(client.await?.map(|answer| answer.status().as_u16()), Ok(200));
    }
    let log = core::mem::take(&mut *log.lock().map_err(|_| "a client panicked")?);
    Ok(Figures {
        attempts: (log.first.len() + log.again.len()) as f64 / CLIENTS as f64,
        at_first: in_busiest_second(log.first),
        then: in_busiest_second(log.again),
        admitted: in_busiest_second(log.admitted),
        took: start.elapsed(),
    })
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{CLIENTS} clients, {PER_SECOND} a second\n");
    println!("the server says   attempts   arrivals a second   admitted a second   everybody is in   wasted");
    println!("                  a client    at first    then        at most            after");
    for says in [Says::Reservation, Says::RetryAfter, Says::Nothing] {
        let Figures { attempts, at_first, then, admitted, took } = run(says).await?;
        // The burst lets the first few in at once, so the limit can be undercut a little.
        let wasted = (took.as_secs_f64() / LIMIT.as_secs_f64() - 1.0).max(0.0);
        println!(
            "{:16}  {attempts:8.2}   {at_first:9}  {then:6}   {admitted:17}   {:>13.1} s   {:>5.0} %",
            says.name(),
            took.as_secs_f64(),
            100.0 * wasted
        );
    }
    Ok(())
}
