//! The clients of an outage: requests at equal intervals, each retried as a program would.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use stagger::Retrier;
use stagger_core::{Outcome, Policy, Seed};
use tokio::task::JoinSet;

use super::serve::PROBE;

/// Requests to the server at a steady rate.
#[derive(Clone, Debug)]
pub(super) struct RequestLoad {
    client: Client<HttpConnector, String>,
    uri: Uri,
    probe: Uri,
    policy: Policy,
    timeout: Duration,
    seed: Seed,
}

/// Why an attempt failed, in addition to its timeout.
#[derive(Debug)]
enum AttemptError {
    Refused(StatusCode),
    Connection(hyper_util::client::legacy::Error),
}

/// What became of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestTrace {
    pub(super) arrived: Instant,
    /// When its attempts were sent.
    pub(super) sent: Vec<Instant>,
    /// How many attempts were answered or failed before their timeout.
    pub(super) ended: u64,
    /// How many attempts failed for another reason than a refusal or a timeout, such as a lack of local ports.
    pub(super) broken: u64,
    pub(super) served: Option<Instant>,
}

/// Requests in the order of their arrival. Each is written by its own task.
pub(super) type Traces = Vec<Arc<Mutex<RequestTrace>>>;

/// Number of probes, which are sent one after the other.
const PROBES: usize = 40;

impl RequestLoad {
    pub(super) fn new(address: SocketAddr, policy: Policy, timeout: Duration, seed: Seed) -> Result<Self, http::Error> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let uri =
            |path: &str| Uri::builder().scheme("http").authority(address.to_string()).path_and_query(path).build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, uri: uri("/")?, probe: uri(PROBE)?, policy, timeout, seed })
    }

    /// Returns the 10th and the 90th percentile of the one-way delay: half of the time that an idle server takes to
    /// answer.
    pub(super) async fn one_way(&self) -> [Duration; 2] {
        let mut times = Vec::with_capacity(PROBES);
        for _ in 0..PROBES {
            let sent = Instant::now();
            if self.client.get(self.probe.clone()).await.is_ok() {
                times.push(sent.elapsed() / 2);
            }
        }
        times.sort_unstable();
        [1, 9].map(|tenth| times.get(times.len() * tenth / 10).copied().unwrap_or_default())
    }

    /// Sends requests at equal intervals from `begin` to `end`, whatever becomes of them. Returns their traces when the
    /// last has been sent; those that are open by then are dropped.
    pub(super) async fn run(self: Arc<Self>, rate: f64, begin: Instant, end: Instant) -> Traces {
        let (mut traces, mut tasks) = (Traces::new(), JoinSet::new());
        for nth in 1_u32.. {
            let at = begin + Duration::from_secs_f64(f64::from(nth) / rate);
            if at >= end {
                break;
            }
            tokio::time::sleep_until(at.into()).await;
            let trace = RequestTrace { arrived: at, sent: Vec::new(), ended: 0, broken: 0, served: None };
            let trace = Arc::new(Mutex::new(trace));
            traces.push(Arc::clone(&trace));
            tasks.spawn(Arc::clone(&self).request(u64::from(nth), trace));
            // Only the results of those that have ended; nothing is awaited.
            while tasks.try_join_next().is_some() {}
        }
        tasks.shutdown().await;
        traces
    }

    /// Makes a request as a program would: through a retrier, with a timeout for each attempt.
    async fn request(self: Arc<Self>, nth: u64, trace: Arc<Mutex<RequestTrace>>) {
        let retrier = Retrier::new(self.policy).timeout(self.timeout).seed(self.seed.for_call(nth)).classify(
            |error: &AttemptError| match error {
                AttemptError::Refused(_) => Outcome::throttled(None),
                AttemptError::Connection(_) => Outcome::TRANSIENT,
            },
        );
        let result = retrier
            .run(|| {
                let (load, trace) = (Arc::clone(&self), Arc::clone(&trace));
                with(&trace, |trace| trace.sent.push(Instant::now()));
                async move {
                    let result = load.attempt().await;
                    with(&trace, |trace| {
                        trace.ended += 1;
                        trace.broken += u64::from(matches!(result, Err(AttemptError::Connection(_))));
                    });
                    result
                }
            })
            .await;
        if result.is_ok() {
            with(&trace, |trace| trace.served = Some(Instant::now()));
        }
    }

    async fn attempt(&self) -> Result<(), AttemptError> {
        let response = self.client.get(self.uri.clone()).await.map_err(AttemptError::Connection)?;
        if response.status().is_success() { Ok(()) } else { Err(AttemptError::Refused(response.status())) }
    }
}

/// Runs `f` on a trace while no task writes to it.
fn with<T>(trace: &Mutex<RequestTrace>, f: impl FnOnce(&mut RequestTrace) -> T) -> T {
    f(&mut trace.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the traces, once nothing writes them any more.
pub(super) fn ended(traces: &Traces) -> Vec<RequestTrace> {
    traces.iter().map(|trace| with(trace, |trace| trace.clone())).collect()
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(status) => write!(f, "the server refused the request: {status}"),
            Self::Connection(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AttemptError {}
