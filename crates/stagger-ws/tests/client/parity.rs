//! The client decides as [`Reconnect`] does, for the same retrier, script and seed.

use core::cell::Cell;
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, StatusCode};
use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::observe::Action;
use stagger::reconnect::Reconnect;
use stagger::testing::{Recorded, Recorder};
use stagger::time::{Clock as _, Tokio};
use stagger::{Jitter, Marked, NestedRetries, Outcome, Policy, Retrier, Seed, StopReason, classify, scope};
use stagger_http::Idempotency;
use stagger_http::hint::server_hint;
use stagger_http::status::outcome;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use super::peer::Step::{Hang, Upgrade, Wait};
use super::peer::{Step, close, rejection};
use super::reconnect_loop::run;
use super::scripted_server::{ScriptedServer, ms, secs};

/// What the server does with one attempt to connect.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// It responds with this status.
    Status(u16),
    /// It responds with this status and one header.
    Hint(u16, &'static str, &'static str),
    /// It accepts, and the connection is lost after this time.
    LostAfter(Duration),
    /// It accepts, and closes with this code after this time.
    ClosedAfter(Duration, u16),
}

impl Reply {
    fn steps(self) -> Vec<Step> {
        match self {
            Self::Status(status) => rejection(status, ""),
            Self::Hint(status, name, value) => rejection(status, &format!("{name}: {value}\r\n")),
            Self::LostAfter(life) => vec![Upgrade, Wait(life)],
            Self::ClosedAfter(life, code) => vec![Upgrade, Wait(life), close(code, ""), Hang],
        }
    }

    /// Connects: returns the life of the connection and the outcome of its loss.
    fn connect(self) -> Result<(Duration, Outcome), Marked<io::Error>> {
        let rejected = |status, headers: &HeaderMap| {
            let hint = server_hint(headers, SystemTime::now);
            let outcome = outcome(StatusCode::from_u16(status).unwrap(), Idempotency::ByMethod, hint);
            Err(Marked::with_outcome(io::Error::other("rejected"), outcome))
        };
        match self {
            Self::Status(status) => rejected(status, &HeaderMap::new()),
            Self::Hint(status, name, value) => {
                let header = (HeaderName::from_static(name), value.parse().unwrap());
                rejected(status, &HeaderMap::from_iter([header]))
            }
            Self::LostAfter(life) | Self::ClosedAfter(life, 1001) => Ok((life, Outcome::TRANSIENT)),
            Self::ClosedAfter(life, _) => Ok((life, Outcome::Permanent)),
        }
    }
}

/// A script is followed by refused connections.
const SCRIPTS: [&[Reply]; 8] = [
    &[],
    &[Reply::Status(503), Reply::Status(500), Reply::LostAfter(secs(60)), Reply::Status(503)],
    &[Reply::LostAfter(ms(100)); 4],
    &[Reply::LostAfter(secs(20)), Reply::ClosedAfter(secs(20), 1001), Reply::ClosedAfter(secs(1), 1001)],
    &[Reply::Status(503), Reply::Status(404)],
    &[Reply::ClosedAfter(secs(20), 1008)],
    &[Reply::Hint(503, "retry-after", "3"), Reply::Hint(429, "retry-after-ms", "30"), Reply::LostAfter(secs(60))],
    &[Reply::Status(503), Reply::Hint(503, "retry-after", "3600")],
];

/// What the retrier has in addition to its policy, or what the client runs inside.
#[derive(Clone, Copy, Debug)]
enum Setup {
    Plain,
    /// A budget of two retries.
    Budget,
    /// A breaker that opens after three failures.
    Breaker,
    /// A breaker that is open from the start.
    OpenBreaker,
    /// The client runs inside an attempt of a call.
    Nested,
}

const SETUPS: [Setup; 5] = [Setup::Plain, Setup::Budget, Setup::Breaker, Setup::OpenBreaker, Setup::Nested];

const POLICIES: [&str; 4] = [
    "exponential base=500ms cap=30s jitter=full max-attempts=6 stable-after=10s",
    "exponential base=500ms cap=30s jitter=equal spread=5s max-attempts=6 stable-after=10s",
    "decorrelated base=100ms cap=10s max-attempts=6 throttled-base=1s stable-after=10s",
    "constant base=1s jitter=none max-attempts=4 max-elapsed=2500ms stable-after=10s",
];

#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    policy: &'a Policy,
    script: &'a [Reply],
    setup: Setup,
    seed: Seed,
}

/// What a client did. Events include the target, the attempt, the action with its delay, and what is left in the
/// budget.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    events: Vec<Recorded>,
    /// When each attempt was made.
    attempts: Vec<Duration>,
    stop: (StopReason, u32),
}

impl Trace {
    fn new(recorder: &Recorder, attempts: Vec<Duration>, stop: (StopReason, u32)) -> Self {
        // The types of the errors differ.
        let without_error = |event: Recorded| {
            let mut event = event;
            event.error = None;
            event
        };
        Self { events: recorder.events().into_iter().map(without_error).collect(), attempts, stop }
    }
}

impl Case<'_> {
    /// Returns a retrier with guards of its own, whose events are recorded.
    fn retrier(&self, recorder: &Recorder) -> Retrier {
        let retrier = Retrier::new(*self.policy).named("feed").seed(self.seed).on_event(recorder.listener());
        match self.setup {
            Setup::Plain => retrier,
            Setup::Budget => retrier.budget(Tokens::builder().capacity(2).cost(1).build().unwrap()),
            Setup::Breaker => retrier.breaker(breaker()),
            Setup::OpenBreaker => {
                let breaker = Arc::new(breaker());
                breaker.force_open(&Tokio.now());
                retrier.shared_guard(breaker)
            }
            Setup::Nested => retrier.nested(NestedRetries::Disable),
        }
    }

    fn block_on<T>(&self, runtime: &Runtime, client: impl Future<Output = T>) -> T {
        match self.setup {
            Setup::Nested => runtime.block_on(scope::inside(client)),
            _ => runtime.block_on(client),
        }
    }
}

fn breaker() -> CircuitBreaker {
    let open = Policy::constant(secs(60)).jitter(Jitter::None).build().unwrap();
    CircuitBreaker::builder(Seed::new(1)).consecutive(3).open(open).build().unwrap()
}

/// Runs [`Reconnect`] until it gives up.
async fn plain(case: &Case<'_>) -> Trace {
    let (recorder, start, attempts) = (Recorder::new(), Instant::now(), Cell::new(Vec::new()));
    let mut reconnect = Reconnect::new(case.retrier(&recorder), async || {
        let mut made = attempts.take();
        made.push(start.elapsed());
        let reply = case.script.get(made.len() - 1);
        attempts.set(made);
        let refused = || {
            let error = io::Error::from(io::ErrorKind::ConnectionRefused);
            let outcome = classify::io(&error);
            Err(Marked::with_outcome(error, outcome))
        };
        reply.map_or_else(refused, |reply| reply.connect())
    });
    let error = loop {
        match reconnect.next().await {
            Ok((life, loss)) => {
                sleep(life).await;
                reconnect.lost(loss);
            }
            Err(error) => break error,
        }
    };
    drop(reconnect);
    Trace::new(&recorder, attempts.take(), (error.stop_reason(), error.attempts()))
}

/// Runs the WebSocket client until it gives up.
async fn web_socket(case: &Case<'_>) -> Trace {
    let (recorder, server) = (Recorder::new(), ScriptedServer::new(case.script.iter().map(|reply| reply.steps())));
    let mut client = server.over_pipes().retrier(case.retrier(&recorder)).reconnect_loop();
    let fatal = run(&mut client).await.unwrap_err();
    Trace::new(&recorder, server.times(), (fatal.stop_reason(), fatal.attempts()))
}

#[test]
fn the_client_decides_as_a_plain_reconnect() {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    for policy in POLICIES {
        let policy: Policy = policy.parse().unwrap_or_else(|error| panic!("{policy}: {error}"));
        for script in SCRIPTS {
            for setup in SETUPS {
                for seed in (0..5).map(|n| Seed::new(0x5eed).for_call(n)) {
                    let case = Case { policy: &policy, script, setup, seed };
                    let want = case.block_on(&runtime, plain(&case));
                    assert_eq!(want.events.last().unwrap().action, Action::Stop(want.stop.0), "{case:?}");
                    assert_eq!(case.block_on(&runtime, web_socket(&case)), want, "{case:?}");
                }
            }
        }
    }
}
