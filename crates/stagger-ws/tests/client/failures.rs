//! The reaction of the client to each kind of failure.

use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use http::Request;
use stagger::{Jitter, Policy, StopReason};
use stagger_ws::codes::{self, CloseAction};
use stagger_ws::{ClientBuilder, ReconnectAdvice};
use tokio::time::timeout;

use super::peer::Step::{Hang, Upgrade, Wait};
use super::peer::{close, frame, header, rejection};
use super::reconnect_loop::run;
use super::scripted_server::{DOUBLING, ScriptedServer, secs, seeded};

/// Records the auth rejections that the request provider has seen.
#[derive(Clone, Default)]
struct AuthRejections(Arc<Mutex<Vec<Option<u16>>>>);

impl AuthRejections {
    fn record(&self, builder: ClientBuilder) -> ClientBuilder {
        let asked = self.clone();
        builder.request(move |cx| {
            asked.0.lock().unwrap().push(cx.auth_rejection());
            async { Ok(Request::get("ws://server.test/").body(())?) }
        })
    }

    fn seen(&self) -> Vec<Option<u16>> {
        self.0.lock().unwrap().clone()
    }
}

/// Returns the wait after a connection that was up for a minute and was closed with this code and reason.
async fn wait_after_close(seed: u64, code: u16, reason: &str) -> Duration {
    let server =
        ScriptedServer::new([vec![Upgrade, Wait(secs(60)), close(code, reason), Hang], vec![Upgrade, close(1000, "")]]);
    run(&mut server.over_pipes().retrier(seeded(DOUBLING, seed)).reconnect_loop()).await.unwrap();
    server.waits()[0].1.unwrap()
}

#[tokio::test(start_paused = true)]
async fn restart_and_overload_waits_are_spread_over_their_interval() {
    for (code, from, to) in [(1012, 5, 30), (1013, 30, 120)] {
        let mut waits = Vec::new();
        for seed in 0..40 {
            waits.push(wait_after_close(seed, code, "").await);
        }
        waits.sort();
        assert!(secs(from) <= waits[0] && waits[39] <= secs(to), "{code}: {waits:?}");
        // Spread over the whole interval: by chance, less than one run in a million misses the first or the last third.
        let third = secs(to - from) / 3;
        assert!(waits[0] < secs(from) + third && waits[39] > secs(to) - third, "{code}: {waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_close_draws_its_own_wait() {
    let mut differing = 0;
    for seed in 0..10 {
        let restarting = vec![Upgrade, close(1012, ""), Hang];
        let server = ScriptedServer::new([restarting.clone(), restarting, vec![Upgrade, close(1000, "")]]);
        run(&mut server.over_pipes().retrier(seeded(DOUBLING, seed)).reconnect_loop()).await.unwrap();
        differing += u32::from(server.waits()[0] != server.waits()[1]);
    }
    assert_eq!(differing, 10);
}

#[tokio::test(start_paused = true)]
async fn the_meaning_of_a_normal_close_can_be_set_alone() {
    for (code, comes_back) in [(1000, true), (1001, false)] {
        let server = ScriptedServer::new([vec![Upgrade, close(code, ""), Hang], vec![Upgrade, close(1008, "")]]);
        let builder = server.over_pipes().close_codes(codes::rfc6455().fatal(1001));
        run(&mut builder.on_normal_close(CloseAction::Reconnect).reconnect_loop()).await.unwrap_err();
        assert_eq!(server.arrivals().len() == 2, comes_back, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn advice_in_the_close_reason_is_honored() {
    for seed in 0..20 {
        let advice = ReconnectAdvice { retry_after: secs(7), spread: secs(2) };
        let wait = wait_after_close(seed, 1012, &advice.to_reason()).await;
        assert!(secs(7) <= wait && wait <= secs(9), "{wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_server_failed_is_never_healthy() {
    let (not_utf8, reserved_opcode) = (frame(0x81, &[0xff]), frame(0x83, b"?"));
    for (name, failure) in [("closed", close(1011, "")), ("protocol", not_utf8), ("protocol", reserved_opcode)] {
        let server = ScriptedServer::new(vec![vec![Upgrade, Wait(secs(60)), failure, Hang]; 6]);
        let fatal = run(&mut server.over_pipes().reconnect_loop()).await.unwrap_err();
        assert_eq!((fatal.stop_reason(), fatal.cause().name()), (StopReason::Attempts, name), "{fatal}");
        let waits: Vec<_> = server.waits().into_iter().map_while(|(_, wait)| wait).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16].map(secs), "{fatal}");
    }
}

#[tokio::test(start_paused = true)]
async fn reconnects_after_1011_are_spread() {
    let mut waits = Vec::new();
    for seed in 0..40 {
        let server = ScriptedServer::new([vec![Upgrade, close(1011, ""), Hang], vec![Upgrade, close(1000, "")]]);
        let policy = DOUBLING.spread(secs(100));
        run(&mut server.over_pipes().retrier(seeded(policy, seed)).reconnect_loop()).await.unwrap();
        waits.push(server.waits()[0].1.unwrap());
    }
    waits.sort();
    assert!(waits[39] - waits[0] > secs(60), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn the_spread_after_1011_is_no_hint_of_the_server() {
    let policy = DOUBLING.spread(secs(100)).max_hint(secs(1));
    for seed in 0..10 {
        let server = ScriptedServer::new([vec![Upgrade, close(1011, ""), Hang], vec![Upgrade, close(1000, "")]]);
        run(&mut server.over_pipes().retrier(seeded(policy, seed)).reconnect_loop()).await.unwrap();
        let wait = server.waits()[0].1.unwrap();
        assert!(secs(1) <= wait && wait <= secs(101), "{wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fatal_codes_stop_the_client_with_the_code_and_reason() {
    for code in [1002, 1003, 1007, 1008, 1009, 1010, 4401] {
        let server = ScriptedServer::new([vec![Upgrade, close(code, "no"), Hang]]);
        let mut reconnect = server.over_pipes().close_codes(codes::rfc6455().fatal(4401)).reconnect_loop();
        let fatal = run(&mut reconnect).await.unwrap_err();
        assert_eq!((fatal.stop_reason(), fatal.cause().close_code()), (StopReason::Permanent, Some(code)));
        let cause = format!("closed by the server with {code} \"no\"");
        assert_eq!(fatal.to_string(), "gave up after 1 attempt, the failure is permanent");
        assert_eq!(format!("{fatal:#}"), format!("{fatal}: {cause}"));
        assert_eq!(core::error::Error::source(&fatal).unwrap().to_string(), cause);
    }
}

#[tokio::test(start_paused = true)]
async fn every_status_is_classified() {
    for (status, comes_back) in [
        (200, false),
        (302, false),
        (400, false),
        (404, false),
        (405, false),
        (408, true),
        (410, false),
        (425, true),
        (426, false),
        (429, true),
        (500, true),
        (501, false),
        (502, true),
        (503, true),
        (504, true),
        (505, false),
        (522, true),
    ] {
        let server = ScriptedServer::new([rejection(status, ""), vec![Upgrade, close(1000, "")]]);
        let result = run(&mut server.over_pipes().reconnect_loop()).await;
        assert_eq!(result.is_ok(), comes_back, "{status}");
        if let Err(fatal) = result {
            assert_eq!((fatal.stop_reason(), server.arrivals().len()), (StopReason::Permanent, 1), "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_a_minimum_with_a_spread() {
    let mut waits = Vec::new();
    for seed in 0..40 {
        let server = ScriptedServer::new([rejection(503, "Retry-After: 20\r\n"), vec![Upgrade, close(1000, "")]]);
        run(&mut server.over_pipes().retrier(seeded(DOUBLING, seed)).reconnect_loop()).await.unwrap();
        waits.push(server.times()[1]);
    }
    waits.sort();
    assert!(secs(20) <= waits[0] && waits[39] <= secs(30) + Duration::from_millis(1), "{waits:?}");
    assert!(waits[39] - waits[0] > secs(5), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_beyond_max_hint_gives_up() {
    let server = ScriptedServer::new([rejection(503, "Retry-After: 100000\r\n")]);
    let fatal = run(&mut server.over_pipes().reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), fatal.attempts()), (StopReason::Hint, 1));
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_are_renewed_once_and_then_fatal() {
    for (retries, status, requests) in [(1, 401, 2), (1, 403, 2), (0, 401, 1), (3, 403, 4)] {
        let server = ScriptedServer::new(vec![rejection(status, ""); 6]);
        let asked = AuthRejections::default();
        let mut reconnect = asked.record(server.over_pipes()).max_auth_retries(retries).reconnect_loop();
        let fatal = run(&mut reconnect).await.unwrap_err();
        assert_eq!(
            (fatal.stop_reason(), server.arrivals().len()),
            (StopReason::Permanent, requests),
            "{retries} {status}"
        );
        let mut want = vec![Some(status); requests];
        want[0] = None;
        assert_eq!(asked.seen(), want);
    }
}

#[tokio::test(start_paused = true)]
async fn reconnect_now_resets_rejected_credentials() {
    let server = ScriptedServer::new(vec![rejection(401, ""); 9]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    for requests in [2, 4, 6] {
        assert_eq!(run(&mut reconnect).await.unwrap_err().stop_reason(), StopReason::Permanent);
        assert_eq!(server.arrivals().len(), requests);
        reconnect.reconnect_now();
    }
}

#[tokio::test(start_paused = true)]
async fn accepted_credentials_reset_the_count_of_rejections() {
    let day = || vec![Upgrade, Wait(secs(86_400)), close(1001, ""), Hang];
    let server = ScriptedServer::new([
        rejection(401, ""),
        day(),
        day(),
        rejection(401, ""),
        day(),
        rejection(401, ""),
        rejection(401, ""),
    ]);
    let asked = AuthRejections::default();
    let fatal = run(&mut asked.record(server.over_pipes()).reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), server.arrivals().len()), (StopReason::Permanent, 7));
    assert_eq!(asked.seen(), [0, 401, 0, 0, 401, 0, 401].map(|status| Some(status).filter(|status| *status > 0)));
}

#[tokio::test(start_paused = true)]
async fn auth_close_codes_renew_credentials_once() {
    for code in [3000, 3003] {
        let server = ScriptedServer::new(vec![vec![Upgrade, close(code, ""), Hang]; 5]);
        let fatal = run(&mut server.over_pipes().reconnect_loop()).await.unwrap_err();
        assert_eq!(
            (fatal.stop_reason(), fatal.cause().close_code(), server.arrivals().len()),
            (StopReason::Permanent, Some(code), 2)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_expire_after_a_healthy_connection_are_renewed_each_time() {
    for code in [3000, 3003, 4401] {
        let expiring = || vec![Upgrade, Wait(secs(10)), close(code, "token expired"), Hang];
        // Before the last one, the fresh credentials were not accepted at the first attempt.
        let script =
            [expiring(), expiring(), expiring(), rejection(503, ""), expiring(), vec![Upgrade, close(1000, "")]];
        let server = ScriptedServer::new(script);
        let asked = AuthRejections::default();
        let client = asked.record(server.over_pipes()).close_codes(codes::rfc6455().reauthenticate(4401));
        run(&mut client.reconnect_loop()).await.unwrap();
        let code = Some(code);
        assert_eq!(asked.seen(), [None, code, code, code, code, code]);
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_rejected_at_the_upgrade_and_expired_later_are_not_in_a_row() {
    let expiring = || vec![Upgrade, Wait(secs(10)), close(3000, ""), Hang];
    let script = [rejection(401, ""), expiring(), expiring(), rejection(401, ""), rejection(401, "")];
    let server = ScriptedServer::new(script);
    let fatal = run(&mut server.over_pipes().reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), server.arrivals().len()), (StopReason::Permanent, 4));
}

#[tokio::test(start_paused = true)]
async fn a_connection_shorter_than_stable_after_proves_no_credentials() {
    let closed_after = |wait| vec![vec![Upgrade, Wait(wait), close(3000, ""), Hang]; 5];
    let unset = Policy::exponential(secs(1), secs(60)).jitter(Jitter::None);
    for (policy, lived, arrivals) in [
        (DOUBLING, secs(9), 2),
        (unset, secs(9), 2),
        (unset, secs(10), 6),
        // Zero is no proof, so the default counts.
        (unset.stable_after(secs(0)), secs(9), 2),
        (unset.stable_after(secs(0)), secs(10), 6),
    ] {
        let policy = policy.max_attempts(6);
        let server = ScriptedServer::new(closed_after(lived));
        let client = server.over_pipes().retrier(seeded(policy, 7));
        let fatal = run(&mut client.reconnect_loop()).await.unwrap_err();
        let is_rejected = fatal.stop_reason() == StopReason::Permanent;
        assert_eq!((is_rejected, server.arrivals().len().min(6)), (arrivals == 2, arrivals), "{policy:?} {lived:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_error_shows_the_location_without_its_query() {
    let server = ScriptedServer::new([rejection(307, "Location: wss://user:pass@other.test/v2?token=secret\r\n")]);
    let fatal = run(&mut server.over_pipes().reconnect_loop()).await.unwrap_err();
    let stagger_ws::ConnectionError::Rejected(rejected) = fatal.cause() else { panic!("{fatal}") };
    assert_eq!(rejected.location(), Some("wss://user:pass@other.test/v2?token=secret"));
    for shown in [format!("{fatal:#}"), format!("{fatal:?}")] {
        assert!(shown.contains("other.test/v2") && !shown.contains("secret") && !shown.contains("pass"), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn followed_redirects_do_not_send_credentials_to_other_hosts() {
    const SECRETS: [&str; 6] = [
        "authorization",
        "cookie",
        "proxy-authorization",
        "x-api-key",
        "sec-websocket-protocol",
        "stagger-reservation-token",
    ];
    let to = |place: &str| rejection(302, &format!("Location: {place}\r\n"));
    let server = ScriptedServer::new([to("/v2"), to("ws://other.test/v3"), vec![Upgrade, close(1000, "")]]);
    let mut reconnect = server
        .over_pipes()
        .max_redirects(2)
        .request(|_| async {
            let mut request = Request::get("ws://server.test/v1").header("user-agent", "feed/1").body(())?;
            for name in SECRETS {
                request.headers_mut().insert(name, "secret".parse()?);
            }
            Ok(request)
        })
        .reconnect_loop();
    run(&mut reconnect).await.unwrap();
    let seen: Vec<_> = server
        .arrivals()
        .iter()
        .map(|arrival| {
            let path = arrival.head.split(' ').nth(1).unwrap().to_owned();
            let secrets = SECRETS.into_iter().filter(|name| header(&arrival.head, name).is_some()).count();
            assert_eq!(header(&arrival.head, "user-agent").as_deref(), Some("feed/1"));
            (path, header(&arrival.head, "host").unwrap(), secrets)
        })
        .collect();
    let want = [("/v1", "server.test", 6), ("/v2", "server.test", 6), ("/v3", "other.test", 0)];
    assert_eq!(seen, want.map(|(path, host, secrets)| (path.to_owned(), host.to_owned(), secrets)));
}

// An origin is scheme, host and port. The default port is the same whether it is written or not.
#[tokio::test(start_paused = true)]
async fn a_redirect_keeps_credentials_within_the_origin_only() {
    for (from, to, is_kept) in [
        ("ws://server.test/v1", "/v2", true),
        ("ws://server.test/v1", "ws://SERVER.test:80/v2", true),
        ("wss://server.test:443/v1", "https://server.test/v2", true),
        ("ws://server.test/v1", "ws://server.test:8080/v2", false),
        ("ws://server.test:443/v1", "wss://server.test:443/v2", false),
        ("ws://server.test/v1", "wss://server.test/v2", false),
        ("wss://server.test/v1", "wss://feed.server.test/v2", false),
    ] {
        let there = rejection(302, &format!("Location: {to}\r\n"));
        let server = ScriptedServer::new([there, vec![Upgrade, close(1000, "")]]);
        let builder = server.over_pipes().max_redirects(1).request(move |_| {
            let request = Request::get(from).header("authorization", "Bearer secret").body(());
            async move { Ok(request?) }
        });
        run(&mut builder.reconnect_loop()).await.unwrap();
        let second = &server.arrivals()[1].head;
        assert_eq!(header(second, "authorization").is_some(), is_kept, "{from} to {to}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_requests_are_fatal_and_provider_errors_are_retried() {
    for url in ["http://server.test/", "/feed", "ws://", "not a url"] {
        let server = ScriptedServer::new([]);
        let fatal = run(&mut server.over_pipes().url(url).reconnect_loop()).await.unwrap_err();
        assert_eq!(
            (fatal.stop_reason(), fatal.cause().name(), server.arrivals().len()),
            (StopReason::Permanent, "request", 0),
            "{url}"
        );
    }
    let server = ScriptedServer::new([]);
    let failing = server.over_pipes().request(|_| async { Err("no token: secret".into()) }).reconnect_loop();
    let mut reconnect = failing;
    let fatal = timeout(secs(600), run(&mut reconnect)).await.unwrap().unwrap_err();
    assert_eq!((fatal.stop_reason(), fatal.attempts()), (StopReason::Attempts, 6));
    assert!(!format!("{fatal:#} {fatal:?}").contains("secret"));
    assert_eq!(core::error::Error::source(fatal.cause()).unwrap().to_string(), "no token: secret");
}

#[tokio::test(start_paused = true)]
async fn network_errors_are_transient_and_invalid_addresses_are_permanent() {
    for (kind, attempts) in [
        (io::ErrorKind::ConnectionReset, 6),
        (io::ErrorKind::PermissionDenied, 6),
        (io::ErrorKind::NotFound, 6),
        (io::ErrorKind::InvalidInput, 1),
    ] {
        let mut reconnect = ScriptedServer::new([])
            .over_pipes()
            .connector(move |_| async move { Err::<tokio::io::DuplexStream, _>(io::Error::from(kind)) })
            .reconnect_loop();
        assert_eq!(run(&mut reconnect).await.unwrap_err().attempts(), attempts, "{kind}");
    }
}

/// Returns the hosts and times in seconds of the attempts of a client with three servers.
fn attempts(server: &ScriptedServer) -> Vec<(String, u64)> {
    let of = |arrival: super::scripted_server::Arrival| {
        (header(&arrival.head, "host").unwrap_or_default(), arrival.at.as_secs())
    };
    server.arrivals().into_iter().map(of).collect()
}

// The second server is connected for a second, and then the first is tried again, although the count goes on.
#[tokio::test(start_paused = true)]
async fn several_servers_are_tried_in_turn_with_a_wait_before_each_and_the_preferred_one_first() {
    let busy = || rejection(503, "");
    let server = ScriptedServer::new([
        busy(),
        vec![Upgrade, Wait(secs(1)), close(1001, "")],
        busy(),
        busy(),
        vec![Upgrade, Wait(secs(60)), close(1001, "")],
        vec![Upgrade, close(1000, "")],
    ]);
    let mut reconnect = server.over_pipes().urls(["ws://a/", "ws://b/", "ws://c/"]).reconnect_loop();
    run(&mut reconnect).await.unwrap();
    let want = [("a", 0), ("b", 1), ("a", 4), ("b", 8), ("c", 16), ("a", 77)];
    assert_eq!(attempts(&server), want.map(|(host, at)| (host.to_owned(), at)));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_answer_of_one_server_leaves_the_others() {
    let gone = || rejection(404, "");
    let server = ScriptedServer::new([gone(), rejection(503, ""), gone(), vec![Upgrade, close(1000, "")]]);
    run(&mut server.over_pipes().urls(["ws://a/", "ws://b/"]).reconnect_loop()).await.unwrap();
    assert_eq!(attempts(&server).iter().map(|(host, _)| &**host).collect::<String>(), "abab");

    let server = ScriptedServer::new(vec![gone(); 5]);
    let fatal = run(&mut server.over_pipes().urls(["ws://a/", "ws://b/"]).reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), attempts(&server).len()), (StopReason::Permanent, 2));

    let none: [&str; 0] = [];
    let fatal = run(&mut server.over_pipes().urls(none).reconnect_loop()).await.unwrap_err();
    assert_eq!(fatal.cause().to_string(), "invalid request: there is no URL");
}

/// Returns the tokens that the requests presented.
fn presented(server: &ScriptedServer) -> Vec<Option<String>> {
    server.arrivals().iter().map(|arrival| header(&arrival.head, "stagger-reservation-token")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_kept_to_the_millisecond_and_presented_once() {
    let [one, two] = ["00000000000000010123456789abcdef", "00000000000000020123456789abcdef"];
    let by_close = format!(r#"{{"retry_after_ms":1520,"reservation":"{one}"}}"#);
    let server = ScriptedServer::new([
        vec![Upgrade, close(1013, &by_close), Hang],
        rejection(503, &format!("Retry-After: 3\r\nstagger-reservation: 2480;token={two}\r\n")),
        rejection(503, ""),
        vec![Upgrade, close(1000, "")],
    ]);
    run(&mut server.over_pipes().reconnect_loop()).await.unwrap();
    let times = server.times();
    assert_eq!([times[1] - times[0], times[2] - times[1]], [1520, 2480].map(Duration::from_millis));
    assert_eq!(presented(&server), [None, Some(one.to_owned()), Some(two.to_owned()), None]);
    let first = &server.closed()[0].cause;
    assert!(!format!("{first} {first:?}").contains(one), "{first}");
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_presented_to_the_server_that_made_it_alone() {
    let token = "00000000000000010123456789abcdef";
    let rejected = || rejection(503, &format!("stagger-reservation: 10;token={token}\r\n"));
    let to = |place: &str| rejection(302, &format!("Location: {place}\r\n"));
    // The second server is next, and does not get the token of the first; at the third attempt it is out of date.
    let script = [rejected(), rejection(503, ""), vec![Upgrade, close(1000, "")]];
    let server = ScriptedServer::new(script);
    let builder = server.over_pipes().urls(["ws://server.test/feed", "ws://other.test/feed"]);
    run(&mut builder.reconnect_loop()).await.unwrap();
    assert_eq!(presented(&server), [None, None, None]);
    // The reservation is of the server behind the redirect.
    let script = [to("ws://other.test/"), rejected(), to("ws://other.test/"), vec![Upgrade, close(1000, "")]];
    let server = ScriptedServer::new(script);
    run(&mut server.over_pipes().max_redirects(1).reconnect_loop()).await.unwrap();
    assert_eq!(presented(&server), [None, None, None, Some(token.to_owned())]);
}
