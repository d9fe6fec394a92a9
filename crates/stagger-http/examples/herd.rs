//! Ten thousand clients come back at the same moment, to a server that takes 500 a second: with an appointment for each,
//! with a `Retry-After` in whole seconds, and with nothing but their own backoff. On virtual time.
//!
//! ```sh
//! cargo run --release -p stagger-http --example herd
//! ```

use core::convert::Infallible;
use core::error::Error;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use stagger::{Admission, Policy, Retrier, policy};
use stagger_http::advice::SLOT;
use stagger_http::tower::{AdmissionLayer, ReplayBody, RetryLayer};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, ServiceExt as _, service_fn};

const CLIENTS: usize = 10_000;
const PER_SECOND: u32 = 500;
/// What a client does by itself.
const POLICY: Policy = policy!(exponential(ms(500), secs(30)).max_attempts(1000));

type Body = Empty<Bytes>;

/// What the server says to those that it does not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Appointment,
    RetryAfter,
    Nothing,
}

impl Says {
    const fn name(self) -> &'static str {
        match self {
            Self::Appointment => "an appointment",
            Self::RetryAfter => "Retry-After",
            Self::Nothing => "nothing",
        }
    }
}

/// What happened in each second.
#[derive(Default)]
struct Log {
    arrived: Vec<u32>,
    admitted: Vec<u32>,
}

fn count(seconds: &mut Vec<u32>, at: Duration) {
    let second = at.as_secs() as usize;
    seconds.resize(seconds.len().max(second + 1), 0);
    seconds[second] += 1;
}

async fn run(says: Says) -> Result<(Log, Duration), Box<dyn Error>> {
    let (start, log) = (Instant::now(), Arc::new(Mutex::new(Log::default())));
    let handler = {
        let log = Arc::clone(&log);
        service_fn(move |_: Request<Body>| {
            if let Ok(mut log) = log.lock() {
                count(&mut log.admitted, start.elapsed());
            }
            async { Ok::<_, Infallible>(Response::new(Body::new())) }
        })
    };
    let admission = Admission::per_second(PER_SECOND).secret(stagger::seed()).build()?;
    let server = AdmissionLayer::new(admission).layer(handler);
    let network = {
        let log = Arc::clone(&log);
        service_fn(move |request: Request<ReplayBody<Body>>| {
            let (server, log) = (server.clone(), Arc::clone(&log));
            async move {
                sleep(Duration::from_millis(10)).await;
                if let Ok(mut log) = log.lock() {
                    count(&mut log.arrived, start.elapsed());
                }
                let mut answer = server.oneshot(request.map(|_| Body::new())).await?;
                if says != Says::Appointment {
                    answer.headers_mut().remove(SLOT);
                }
                if says == Says::Nothing {
                    answer.headers_mut().remove("retry-after");
                }
                sleep(Duration::from_millis(10)).await;
                Ok::<_, Infallible>(answer)
            }
        })
    };
    let layer = RetryLayer::new(Retrier::new(POLICY));
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(layer.layer(network.clone()).oneshot(Request::new(Body::new())))).collect();
    for client in clients {
        assert_eq!(client.await?.map(|answer| answer.status().as_u16()), Ok(200));
    }
    let took = start.elapsed();
    let log = core::mem::take(&mut *log.lock().map_err(|_| "a client panicked")?);
    Ok((log, took))
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{CLIENTS} clients, {PER_SECOND} a second\n");
    println!("the server says   attempts   arrivals a second   admitted a second   everybody is in   wasted");
    println!("                  a client    at first    then        at most            after");
    for says in [Says::Appointment, Says::RetryAfter, Says::Nothing] {
        let (log, took) = run(says).await?;
        let attempts = f64::from(log.arrived.iter().sum::<u32>()) / CLIENTS as f64;
        let later = log.arrived.iter().skip(1).copied().max().unwrap_or_default();
        let admitted = log.admitted.iter().copied().max().unwrap_or_default();
        let limit = Duration::from_secs(CLIENTS as u64 / u64::from(PER_SECOND));
        // The burst lets the first few in at once, so the limit can be undercut a little.
        let wasted = (took.as_secs_f64() / limit.as_secs_f64() - 1.0).max(0.0);
        println!(
            "{:16}  {attempts:8.2}   {:9}  {later:6}   {admitted:17}   {:>13.1} s   {:>5.0} %",
            says.name(),
            log.arrived.first().copied().unwrap_or_default(),
            took.as_secs_f64(),
            100.0 * wasted
        );
        if says == Says::Appointment {
            assert!(attempts <= 2.2 && took <= limit * 6 / 5, "{attempts} attempts, {took:?}");
            assert!(admitted <= PER_SECOND * 11 / 10 && later <= PER_SECOND * 11 / 10, "{admitted}, {later}");
        }
    }
    Ok(())
}
