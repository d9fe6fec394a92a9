//! Budget, breaker, rules, listeners and operator controls of the client's retrier.

use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::control::RetryControls;
use stagger::guard::{End, Now, Permit, QuietPeriod};
use stagger::observe::{Action, Event as RetryEvent};
use stagger::time::{Clock as _, Tokio};
use stagger::{DelaySource, FailureKind, Guard, Jitter, Policy, Retrier, Seed, StopReason};
use stagger_ws::{ClientBuilder, ConnectionError, Fatal};
use tokio::io::DuplexStream;
use tokio::time::{sleep, timeout};

use super::acking_server::acks;
use super::peer::Step::{Hang, Upgrade, Wait};
use super::peer::{close, rejection};
use super::reconnect_loop::run;
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs, seeded};

#[path = "../../../../dev/examples/bulkhead.rs"]
mod bulkhead;

use bulkhead::Bulkhead;

/// The three kinds of client.
#[derive(Clone, Copy, Debug)]
enum Kind {
    ReconnectLoop,
    Client,
    AckedClient,
}

const KINDS: [Kind; 3] = [Kind::ReconnectLoop, Kind::Client, Kind::AckedClient];

/// Runs a client until it gives up.
async fn run_until_fatal(builder: ClientBuilder, kind: Kind) -> Fatal {
    match kind {
        Kind::ReconnectLoop => run(&mut builder.reconnect_loop()).await.unwrap_err(),
        Kind::Client => builder.connect().filter_map(async |event| event.err()).boxed_local().next().await.unwrap(),
        Kind::AckedClient => {
            builder.acked(acks()).filter_map(async |event| event.err()).boxed_local().next().await.unwrap()
        }
    }
}

/// A budget that grants every retry and records what happens to its permits.
#[derive(Clone, Debug, Default)]
struct RecordingBudget(Arc<Mutex<Vec<String>>>);

impl RecordingBudget {
    fn add(&self, event: String) {
        self.0.lock().unwrap().push(event);
    }

    fn events(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Guard for RecordingBudget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn reserve(&self, kind: FailureKind, _: &dyn Now) -> Option<Permit> {
        self.add(format!("reserve {kind:?}"));
        Some(Permit(1))
    }

    fn settle(&self, permit: Permit, end: End<'_>, _: &dyn Now) {
        match end {
            _ if permit == Permit::NONE => {}
            End::Made(outcome) => self.add(format!("made {:?}", outcome.verdict())),
            End::NeverMade => self.add(String::from("never made")),
        }
    }
}

/// What a listener has received.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<HeardEvent>>>);

/// Target, attempt, decision, and the name of the error.
type HeardEvent = (String, u32, Action, &'static str);

impl Heard {
    fn listen(&self, retrier: Retrier) -> Retrier {
        let heard = self.clone();
        retrier.on_event(move |event: &RetryEvent<'_>| {
            let error = event.error_as::<ConnectionError>().map_or("", ConnectionError::name);
            heard.0.lock().unwrap().push((event.target.to_owned(), event.attempt, event.action, error));
        })
    }

    fn events(&self) -> Vec<HeardEvent> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_limits_the_attempts_of_every_kind_of_client() {
    for kind in KINDS {
        let budget = Tokens::builder().capacity(2).cost(1).build().unwrap();
        let server = ScriptedServer::new([]);
        let fatal = run_until_fatal(server.over_pipes().retrier(seeded(DOUBLING, 1).budget(budget)), kind).await;
        assert_eq!((fatal.stop_reason(), fatal.attempts()), (StopReason::BUDGET, 3), "{kind:?}");
        assert_eq!(fatal.cause().name(), "io", "{kind:?}");
    }
}

#[tokio::test]
async fn clients_share_the_budget_of_their_retrier() {
    let policy = Policy::constant(ms(1)).jitter(Jitter::None).max_attempts(6);
    let budget = Tokens::builder().capacity(7).cost(1).build().unwrap();
    let retrier = seeded(policy, 1).budget(budget);
    let mut stops = Vec::new();
    for _ in 0..2 {
        let server = ScriptedServer::new([]);
        let fatal = run_until_fatal(server.over_sockets().await.retrier(&retrier), Kind::Client).await;
        stops.push((fatal.stop_reason(), fatal.attempts()));
    }
    assert_eq!(stops, [(StopReason::Attempts, 6), (StopReason::BUDGET, 3)]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_period_that_fails_fast_ends_every_kind_of_client_with_the_remaining_time() {
    for kind in KINDS {
        let quiet = QuietPeriod::builder().max_waiting(0).build().unwrap();
        quiet.pause(secs(20), &Tokio.now());
        let server = ScriptedServer::new([]);
        let fatal = run_until_fatal(server.over_pipes().retrier(seeded(DOUBLING, 1).guard(quiet)), kind).await;
        let &ConnectionError::ByGuard { guard, retry_in } = fatal.cause() else { panic!("{kind:?}: {fatal:?}") };
        assert_eq!((fatal.stop_reason(), retry_in.as_secs()), (StopReason::QUIET, 20), "{kind:?}");
        assert_eq!(guard, "quiet", "{kind:?}");
    }
}

/// One client meets `Retry-After`. Another one, which shares the quiet period, does not connect before the time is
/// over.
#[tokio::test(start_paused = true)]
async fn a_rejected_upgrade_with_a_hint_holds_the_attempts_of_other_clients() {
    let quiet = Arc::new(QuietPeriod::new());
    let retrier = || seeded(DOUBLING, 1).shared_guard(Arc::clone(&quiet) as _);
    let first = ScriptedServer::new([rejection(503, "Retry-After: 20\r\n"), vec![Upgrade, close(1000, "")]]);
    let second = ScriptedServer::new([vec![Upgrade, close(1000, "")]]);
    let other = async {
        sleep(secs(1)).await;
        run(&mut second.over_pipes().retrier(retrier()).reconnect_loop()).await.unwrap();
    };
    let mut client = first.over_pipes().retrier(retrier()).reconnect_loop();
    let (one, ()) = tokio::join!(run(&mut client), other);
    one.unwrap();
    assert!(second.times()[0] >= secs(20), "{:?}", second.times());
}

/// An open connection is no attempt any more.
#[tokio::test(start_paused = true)]
async fn a_guard_of_the_application_lets_clients_connect_one_after_the_other() {
    let bulkhead = Arc::new(Bulkhead::new(1, secs(60)));
    for _ in 0..2 {
        let accepted = vec![Wait(secs(1)), Upgrade, Wait(secs(60)), close(1000, "")];
        let rejected = [vec![Wait(secs(1))], rejection(503, "")].concat();
        let server = ScriptedServer::new([accepted.clone(), rejected, accepted.clone(), accepted]);
        let client = || async {
            let retrier = seeded(DOUBLING, 1).shared_guard(Arc::clone(&bulkhead) as _);
            run(&mut server.over_pipes().retrier(retrier).reconnect_loop()).await.unwrap();
        };
        tokio::join!(client(), client(), client());
        // The retry of the second one comes last.
        let seconds: Vec<_> = server.times().iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [0, 1, 2, 3]);
    }
}

/// A client that is dropped while it waits leaves the line.
#[tokio::test(start_paused = true)]
async fn a_client_that_is_dropped_while_a_guard_lets_it_wait_holds_up_nobody() {
    for kind in KINDS {
        let bulkhead = Arc::new(Bulkhead::new(1, secs(60)));
        let server = ScriptedServer::new([vec![Wait(secs(5))], vec![Upgrade, close(1000, "")]]);
        let builder = || server.over_pipes().retrier(seeded(DOUBLING, 1).shared_guard(Arc::clone(&bulkhead) as _));
        let first = builder();
        let first = tokio::spawn(async move { run(&mut first.reconnect_loop()).await });
        sleep(ms(1)).await;
        assert!(timeout(secs(1), run_until_fatal(builder(), kind)).await.is_err());
        first.abort();
        assert!(first.await.is_err());
        timeout(secs(1), run(&mut builder().reconnect_loop())).await.expect("nobody is before it").unwrap();
        assert_eq!((server.times().len(), bulkhead.in_flight()), (2, 0), "{kind:?}");
    }
}

fn breaker() -> Arc<CircuitBreaker> {
    let open = Policy::constant(secs(60)).jitter(Jitter::None).build().unwrap();
    Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(2).open(open).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn failed_attempts_open_the_breaker_which_stops_every_kind_of_client() {
    for kind in KINDS {
        let server = ScriptedServer::new(vec![rejection(503, ""); 6]);
        let retrier = seeded(DOUBLING, 1).shared_guard(breaker());
        let fatal = run_until_fatal(server.over_pipes().retrier(retrier), kind).await;
        assert_eq!((fatal.stop_reason(), fatal.attempts()), (StopReason::BREAKER, 2), "{kind:?}");
        assert_eq!(fatal.cause().name(), "rejected", "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_rejects_the_first_attempt_of_every_kind_of_client() {
    for kind in KINDS {
        let (server, breaker) = (ScriptedServer::new([]), breaker());
        breaker.force_open(&Tokio.now());
        let heard = Heard::default();
        let retrier = heard.listen(seeded(DOUBLING, 1).shared_guard(breaker));
        let fatal = run_until_fatal(server.over_pipes().retrier(retrier), kind).await;
        assert_eq!((fatal.stop_reason(), fatal.cause().name()), (StopReason::BREAKER, "guard"), "{kind:?}");
        assert!(fatal.cause().to_string().contains("circuit breaker is open"), "{fatal:#}");
        assert_eq!((fatal.attempts(), server.arrivals().len()), (0, 0), "{kind:?}");
        assert_eq!(heard.events(), [(String::new(), 0, Action::Stop(StopReason::BREAKER), "")], "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn listeners_receive_every_attempt_and_loss_of_every_kind_of_client() {
    for kind in KINDS {
        let server =
            ScriptedServer::new([rejection(503, ""), vec![Upgrade, Wait(secs(60))], vec![Upgrade, close(1008, "")]]);
        let heard = Heard::default();
        let retrier = heard.listen(seeded(DOUBLING, 1).named("feed"));
        run_until_fatal(server.over_pipes().retrier(retrier), kind).await;
        let retry = Action::Retry { after: secs(1), source: DelaySource::Schedule };
        let want = [
            (1, retry, "rejected"),
            (2, Action::Done, ""),
            (2, retry, "lost"),
            (1, Action::Done, ""),
            (1, Action::Stop(StopReason::Permanent), "closed"),
        ];
        assert_eq!(heard.events(), want.map(|(n, action, error)| ("feed".to_owned(), n, action, error)));
    }
}

#[tokio::test(start_paused = true)]
async fn rules_come_before_the_close_codes_and_the_meaning_of_a_status() {
    let always = || seeded(DOUBLING, 1).when(|_: &ConnectionError| true);
    let never = || seeded(DOUBLING, 1).when(|_: &ConnectionError| false);
    for (failure, built_in) in [
        (rejection(404, ""), 1),
        (vec![Upgrade, close(1008, ""), Hang], 1),
        (vec![Upgrade, close(1001, ""), Hang], 6),
        (rejection(503, ""), 6),
    ] {
        for (retrier, attempts) in [(seeded(DOUBLING, 1), built_in), (always(), 6), (never(), 1)] {
            let server = ScriptedServer::new(vec![failure.clone(); 6]);
            let fatal = run_until_fatal(server.over_pipes().retrier(retrier), Kind::ReconnectLoop).await;
            assert_eq!(fatal.attempts(), attempts, "{fatal}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_io_errors_applies_to_the_error_of_the_connector() {
    let refused = |error: &io::Error| error.kind() != io::ErrorKind::ConnectionRefused;
    for (kind, attempts) in [(io::ErrorKind::ConnectionRefused, 1), (io::ErrorKind::InvalidInput, 6)] {
        let builder = ScriptedServer::new([])
            .over_pipes()
            .connector(move |_| async move { Err::<DuplexStream, _>(io::Error::from(kind)) })
            .retrier(seeded(DOUBLING, 1).when(refused));
        assert_eq!(run_until_fatal(builder, Kind::Client).await.attempts(), attempts, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_io_errors_applies_to_the_error_of_the_request_provider() {
    let builder = ScriptedServer::new([])
        .over_pipes()
        .request(|_| async { Err(io::Error::from(io::ErrorKind::NotFound).into()) })
        .retrier(seeded(DOUBLING, 1).when(|error: &io::Error| error.kind() != io::ErrorKind::NotFound));
    let fatal = run_until_fatal(builder, Kind::ReconnectLoop).await;
    assert_eq!((fatal.stop_reason(), fatal.attempts()), (StopReason::Permanent, 1));
}

#[tokio::test(start_paused = true)]
async fn operator_controls_stop_the_reconnects_of_their_target() {
    for (line, attempts) in [("feed=no-retries", 1), ("other=no-retries", 6)] {
        let controls = RetryControls::new();
        let retrier = seeded(DOUBLING, 1).named("feed").controls(&controls);
        controls.apply(line).unwrap();
        let fatal = run_until_fatal(ScriptedServer::new([]).over_pipes().retrier(retrier), Kind::Client).await;
        assert_eq!(fatal.attempts(), attempts, "{line}");
    }
}

// A client that is closed or dropped must not hold on to what another client could use.
#[tokio::test(start_paused = true)]
async fn the_permit_of_a_retry_is_settled_however_the_client_ends() {
    let hangs = || ScriptedServer::new([vec![], vec![Hang]]);
    for (asleep_for, want) in [(ms(500), "never made"), (secs(2), "made Unknown")] {
        let budget = RecordingBudget::default();
        let retrier = seeded(DOUBLING, 1).budget(budget.clone());
        let client = hangs().over_pipes().retrier(&retrier).connect();
        sleep(asleep_for).await;
        drop(client);
        sleep(ms(1)).await;
        assert_eq!(budget.events(), ["reserve Transient", want]);

        let budget = RecordingBudget::default();
        let retrier = seeded(DOUBLING, 1).budget(budget.clone());
        let mut reconnect = hangs().over_pipes().retrier(&retrier).reconnect_loop();
        assert!(timeout(asleep_for, reconnect.next_connection()).await.is_err());
        reconnect.close();
        assert_eq!(budget.events(), ["reserve Transient", want]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_later_reconnect_throttles() {
    let budget = RecordingBudget::default();
    let server = ScriptedServer::new([vec![Upgrade, close(1013, ""), Hang], vec![Upgrade, close(1000, "")]]);
    let retrier = seeded(DOUBLING, 1).budget(budget.clone());
    run(&mut server.over_pipes().retrier(retrier).reconnect_loop()).await.unwrap();
    assert_eq!(budget.events(), ["reserve Throttled", "made Healthy"]);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_the_retrier_does_not_apply() {
    let server = ScriptedServer::new([vec![Wait(secs(3)), Upgrade, close(1000, "")]]);
    let retrier = seeded(DOUBLING, 1).timeout(Duration::from_millis(1));
    run(&mut server.over_pipes().retrier(retrier).reconnect_loop()).await.unwrap();
    assert_eq!(server.arrivals().len(), 1);
}
