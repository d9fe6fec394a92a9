//! Metrics and logs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};

use http::Request;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use stagger::{Jitter, Policy, Retrier};
use stagger_ws::{Client, Message, Outbox};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use super::acking_server::{AckMode, AckingServer, Command, acks, numbered};
use super::events::events;
use super::peer::Step::{Echo, Hang, Upgrade, Wait};
use super::peer::rejection;
use super::reconnect_loop::run;
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs, seeded};

fn named(target: &str) -> Retrier {
    seeded(DOUBLING, 7).named(target)
}

fn paused() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Returns the metrics after the work, by name and by the label other than the target. What the work returns is kept
/// alive until then. For a histogram, the sum.
fn metrics_of<T>(work: impl Future<Output = T>) -> BTreeMap<(String, String), f64> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let snapshot = metrics::with_local_recorder(&recorder, || {
        paused().block_on(async {
            let _kept = work.await;
            snapshotter.snapshot()
        })
    });
    let seen = snapshot.into_vec().into_iter().map(|(key, _, _, value)| {
        let labels: Vec<_> = key.key().labels().map(|label| (label.key(), label.value())).collect();
        assert!(labels.contains(&("target", "feed")), "{labels:?}");
        let other = labels.iter().find(|(name, _)| *name != "target").map_or("", |(_, value)| value);
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.iter().map(|value| value.into_inner()).sum(),
        };
        ((key.key().name().to_owned(), other.to_owned()), value)
    });
    seen.collect()
}

#[test]
fn attempts_connections_and_downtime_are_counted() {
    let metrics = metrics_of(async {
        // A client that is never connected and never gives up.
        let refused = ScriptedServer::new(vec![rejection(503, ""); 20]);
        let kept = seeded(DOUBLING.unlimited_attempts(), 7).named("feed");
        let mut unreachable = refused.over_pipes().retrier(kept).reconnect_loop();
        let _ = timeout(secs(600), unreachable.next_connection()).await;
        let server =
            ScriptedServer::new([rejection(503, ""), vec![Upgrade, Wait(secs(60))], vec![], vec![Upgrade, Hang]]);
        let mut client = server.over_pipes().retrier(named("feed")).outbox(Outbox::drop_oldest(2)).connect();
        for text in ["a", "b", "c"] {
            client.handle().try_send(Message::text(text)).unwrap();
        }
        events(&mut client).await;
        // The task has no time to write them.
        client.handle().try_send(Message::text("d")).unwrap();
        client.handle().try_send(Message::text("e")).unwrap();
        let never = |_| core::future::pending::<io::Result<tokio::io::DuplexStream>>();
        (
            client,
            unreachable,
            Client::builder().url("ws://server.test").retrier(named("feed")).connector(never).acked(acks()),
        )
    });
    let value = |name: &str, other: &str| metrics.get(&(name.to_owned(), other.to_owned())).copied();
    assert!(value("stagger_ws_attempts_total", "rejected") > Some(10.0));
    assert_eq!(value("stagger_ws_attempts_total", "lost"), Some(1.0));
    assert_eq!(value("stagger_ws_attempts_total", "opened"), Some(2.0));
    assert_eq!(value("stagger_ws_downtime_seconds", ""), Some(3.0));
    assert_eq!(value("stagger_ws_unreachable", ""), Some(1.0));
    assert_eq!(value("stagger_ws_outbox_len", ""), Some(2.0));
    assert_eq!(value("stagger_ws_outbox_dropped_total", ""), Some(1.0));
    let documented: BTreeSet<_> = include_str!("../../src/client/metrics.md")
        .lines()
        .filter_map(|row| row.strip_prefix("| `")?.split('`').next())
        .collect();
    let recorded: BTreeSet<_> = metrics.keys().map(|(name, _)| name.as_str()).collect();
    assert_eq!(recorded, documented);
}

#[test]
fn unacknowledged_and_resent_messages_are_counted() {
    for (is_dropped, want) in [(false, 2.0), (true, 0.0)] {
        let metrics = metrics_of(async {
            let server = AckingServer::new(AckMode::Nothing);
            let client = server.over_pipes(64 << 10).retrier(named("feed")).acked(acks());
            for n in 1..=3 {
                client.send(numbered(n)).await.unwrap();
            }
            sleep(secs(1)).await;
            server.command(Command::Drop);
            sleep(secs(60)).await;
            server.send("one 2");
            sleep(secs(1)).await;
            let kept = (!is_dropped).then_some(client);
            // Gives its task time to end.
            sleep(secs(1)).await;
            kept
        });
        let value = |name: &str| metrics[&(name.to_owned(), String::new())];
        assert!((value("stagger_ws_unacked") - want).abs() < f64::EPSILON, "{metrics:?}");
        assert!((value("stagger_ws_resent_total") - 3.0).abs() < f64::EPSILON, "{metrics:?}");
    }
}

#[test]
fn the_gauge_of_connections_goes_up_and_down() {
    for (is_available, want) in [(true, 1.0), (false, 0.0)] {
        let metrics = metrics_of(async {
            let server = ScriptedServer::new([vec![Upgrade, Echo]]);
            let client = server.over_pipes().retrier(named("feed")).connect();
            client.connected().await.unwrap();
            if !is_available {
                client.close().await;
            }
            client
        });
        let connected = metrics[&(String::from("stagger_ws_connected"), String::new())];
        assert!((connected - want).abs() < f64::EPSILON, "{connected}");
    }
}

/// Collects the log as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Runs a client in virtual time. Returns what it logs.
fn log_of(client: impl Future<Output = ()>) -> String {
    log_at(Level::TRACE, client)
}

/// Returns what it logs at this level and at more severe ones.
fn log_at(level: Level, client: impl Future<Output = ()>) -> String {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || paused().block_on(client));
    let log = log.0.lock().unwrap().clone();
    String::from_utf8(log).unwrap()
}

#[test]
fn logs_of_all_clients_of_a_target_are_limited_together() {
    let log = log_of(async {
        for _ in 0..50 {
            let retrier = seeded(DOUBLING.max_attempts(1), 7).named("flood");
            run(&mut ScriptedServer::new([]).over_pipes().retrier(retrier).reconnect_loop()).await.unwrap_err();
        }
    });
    assert_eq!(log.matches("giving up").count(), 1, "{log}");
}

/// Runs a client of this target that gives up after two attempts, a millisecond apart.
async fn give_up_at_once(target: &str) {
    let quick = Policy::constant(ms(1)).jitter(Jitter::None).max_attempts(2);
    let retrier = seeded(quick, 7).named(target);
    run(&mut ScriptedServer::new([]).over_pipes().retrier(retrier).reconnect_loop()).await.unwrap_err();
}

#[test]
fn a_client_that_gives_up_right_after_a_failure_is_logged() {
    let log = log_of(give_up_at_once("quick"));
    assert_eq!((log.matches("reconnecting").count(), log.matches("giving up").count()), (1, 1), "{log}");
}

/// The level of a subscriber can change while the program runs.
#[test]
fn failures_that_are_filtered_out_take_no_slot() {
    for (level, messages) in [(Level::ERROR, &[][..]), (Level::WARN, &["giving up"]), (Level::DEBUG, &["reconnecting"])]
    {
        let log = log_at(level, give_up_at_once("filtered"));
        assert!(!messages.is_empty() || log.is_empty(), "{level}: {log}");
        for message in messages {
            let is_first = |line: &str| line.contains(message) && line.contains(" silenced=0 ");
            assert!(log.lines().any(is_first), "{level}: {log}");
        }
    }
}

#[test]
fn attempts_have_a_span_with_the_host_and_without_secrets() {
    let log = log_of(async {
        let script =
            [rejection(503, "Set-Cookie: secret\r\n"), rejection(307, "Location: ws://server.test/?token=secret\r\n")];
        let server = ScriptedServer::new(script);
        let mut reconnect = server
            .over_pipes()
            .retrier(named("logged"))
            .request(|_| async {
                let url = "ws://me:secret@server.test/feed?token=secret";
                Ok(Request::get(url).header("authorization", "Bearer secret").body(())?)
            })
            .reconnect_loop();
        sleep(secs(10)).await;
        run(&mut reconnect).await.unwrap_err();
    });
    for part in [
        "stagger.connect{attempt=1 delay=0.0 url.host=\"server.test\"}",
        "stagger.connect{attempt=2 delay=1.0 url.host=\"server.test\"}",
        "reconnecting target_name=\"logged\" attempt=1 cause=upgrade rejected with 503 Service Unavailable",
        "delay_ms=1000.0",
        "WARN",
        "giving up target_name=\"logged\" attempt=2",
        "stop=\"permanent\"",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(!log.contains("secret"), "{log}");
}
