//! The clients are of STS, the smallest of the SDK.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use aws_sdk_sts::config::retry::RetryConfig;
use aws_sdk_sts::config::timeout::TimeoutConfig;
use aws_sdk_sts::config::{BehaviorVersion, Builder, Credentials, Region, StalledStreamProtectionConfig};
use aws_sdk_sts::error::DisplayErrorContext;
use aws_sdk_sts::operation::get_caller_identity::GetCallerIdentityError;
use aws_sdk_sts::{Client, Config};
use aws_smithy_runtime::client::retries::{RetryPartition, TokenBucket};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use stagger::time::Tokio;
use stagger::{Outcome, Retrier, policy};
use stagger_http::aws::{Retries, outcome};
use tokio::time::Instant;

use super::super::recipes;
use super::server::{POLICY, Reply, Server, breaker, header, script, tokens};
use super::transport::Transport;

const OK: Reply = Reply::Response(
    200,
    "",
    "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>7</Account>\
     </GetCallerIdentityResult></GetCallerIdentityResponse>",
);
/// A code that means throttling, with a status that does not.
const THROTTLED: Reply =
    Reply::Response(400, "", "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>");
const SLOW_DOWN: Reply =
    Reply::Response(503, "", "<ErrorResponse><Error><Code>SlowDown</Code></Error></ErrorResponse>");
const INVALID: Reply =
    Reply::Response(400, "", "<ErrorResponse><Error><Code>ValidationError</Code></Error></ErrorResponse>");
const FAILED: Reply =
    Reply::Response(500, "", "<ErrorResponse><Error><Code>InternalFailure</Code></Error></ErrorResponse>");

fn retries(retrier: Retrier) -> Retries {
    Retries::with_clock(Tokio, retrier)
}

fn config(server: &Server) -> Builder {
    Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(server.url())
        .http_client(Transport::new())
        // It measures in virtual time what the server does in real time.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        // The bucket of the SDK is one for the process.
        .retry_partition(RetryPartition::custom("test").token_bucket(TokenBucket::unlimited()).build())
}

fn client(server: &Server, retries: Retries) -> Client {
    Client::from_conf(config(server).interceptor(retries.clone()).retry_classifier(retries).build())
}

type Answer = Result<Option<String>, SdkError<GetCallerIdentityError, HttpResponse>>;

async fn call(client: &Client) -> Answer {
    client.get_caller_identity().send().await.map(|identity| identity.account().map(str::to_owned))
}

#[tokio::test(start_paused = true)]
async fn an_aws_client_waits_as_the_policy_says() {
    for reply in [&[THROTTLED, THROTTLED, THROTTLED, OK], &[SLOW_DOWN, FAILED, Reply::Cut, OK]] {
        let server = script(reply);
        let start = Instant::now();
        assert_eq!(call(&client(&server, retries(Retrier::new(POLICY)))).await.unwrap().as_deref(), Some("7"));
        assert_eq!(server.requests().len(), 4, "{reply:?}");
        assert_eq!(start.elapsed().as_secs(), 1 + 2 + 4, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_aws_client_stops_as_the_policy_says_whatever_its_own_configuration() {
    for own in [RetryConfig::disabled(), RetryConfig::standard().with_max_attempts(9), RetryConfig::adaptive()] {
        let server = script(&[FAILED]);
        let retries = retries(Retrier::new(POLICY));
        let config = config(&server).retry_config(own).interceptor(retries.clone()).retry_classifier(retries).build();
        call(&Client::from_conf(config)).await.unwrap_err();
        assert_eq!(server.requests().len(), 5);
    }
}

// On the system's clock, although time is paused.
#[tokio::test(start_paused = true)]
async fn an_aws_client_retries_whatever_the_clock_says() {
    let server = script(&[FAILED, FAILED, OK]);
    let start = Instant::now();
    call(&recipes::aws(config(&server), Retrier::new(POLICY))).await.unwrap();
    assert_eq!((server.requests().len(), start.elapsed().as_secs()), (3, 1 + 2));
}

#[tokio::test(start_paused = true)]
async fn each_attempt_of_an_aws_client_is_signed_and_numbered_by_the_sdk() {
    let server = script(&[FAILED, OK]);
    call(&client(&server, retries(Retrier::new(POLICY)))).await.unwrap();
    for (number, request) in (1..).zip(server.requests()) {
        assert_eq!(header(&request, "amz-sdk-request"), Some(&*format!("attempt={number}; max=5")));
        assert!(header(&request, "authorization").unwrap().starts_with("aws4-hmac-sha256"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_aws_client_honors_server_hints() {
    for (reply, seconds) in [
        (Reply::Response(503, "x-amz-retry-after: 30000\r\n", ""), 30),
        (Reply::Response(429, "retry-after: 7\r\n", ""), 7),
    ] {
        let server = Server::start(move |number| if number == 0 { reply } else { OK });
        let start = Instant::now();
        call(&client(&server, retries(Retrier::new(POLICY)))).await.unwrap();
        assert_eq!((server.requests().len(), start.elapsed().as_secs()), (2, seconds), "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_of_aws_is_not_retried() {
    let server = script(&[INVALID]);
    let error = call(&client(&server, retries(Retrier::new(POLICY)))).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
    assert_eq!(error.into_service_error().meta().code(), Some("ValidationError"));
}

#[tokio::test(start_paused = true)]
async fn two_aws_clients_share_a_budget() {
    let tokens = tokens(15);
    let retries = retries(Retrier::new(POLICY).shared_guard(tokens));
    let servers = [script(&[FAILED]), script(&[FAILED])];
    let clients = [0, 1].map(|number: usize| client(&servers[number], retries.clone()));
    for client in clients.iter().cycle().take(10) {
        call(client).await.unwrap_err();
    }
    let requests: usize = servers.iter().map(|server| server.requests().len()).sum();
    assert_eq!(requests, 10 + 3, "ten calls, and the three retries of the budget");
}

#[tokio::test(start_paused = true)]
async fn a_success_of_an_aws_client_refills_the_budget() {
    let tokens = tokens(5);
    let server = Server::start(|number| if number % 2 == 0 { FAILED } else { OK });
    let client = client(&server, retries(Retrier::new(POLICY).shared_guard(tokens)));
    for _ in 0..3 {
        call(&client).await.unwrap();
    }
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_rejects_calls_of_an_aws_client_before_they_are_sent() {
    let server = script(&[FAILED]);
    let client = client(&server, retries(Retrier::new(policy!(constant(ms(1)).max_attempts(2))).breaker(breaker())));
    call(&client).await.unwrap_err();
    let error = call(&client).await.unwrap_err();
    assert_eq!(server.requests().len(), 2);
    let text = DisplayErrorContext(&error).to_string();
    assert!(text.contains("breaker"), "{text}");
}

// In real time, since virtual time passes while a client waits for a server.
#[tokio::test]
async fn an_aws_client_does_not_wait_for_an_attempt_after_its_operation_timeout() {
    let server = script(&[FAILED]);
    let timeouts = TimeoutConfig::builder().operation_timeout(Duration::from_secs(60)).build();
    let retrier = Retrier::new(policy!(constant(mins(60))));
    let error = call(&recipes::aws(config(&server).timeout_config(timeouts), retrier)).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
    assert!(error.as_service_error().is_some(), "the last error, and no timeout: {error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_may_not_run_twice_is_retried_only_if_it_was_not_processed() {
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&names);
    let retries = retries(Retrier::new(POLICY)).idempotent_if(move |service, operation| {
        seen.lock().unwrap().push(format!("{service} {operation}"));
        false
    });
    for (reply, want) in [(FAILED, 1), (Reply::Cut, 1), (THROTTLED, 5)] {
        let server = Server::start(move |_| reply);
        call(&client(&server, retries.clone())).await.unwrap_err();
        assert_eq!(server.requests().len(), want, "{reply:?}");
    }
    assert_eq!(names.lock().unwrap()[0], "STS GetCallerIdentity");
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_may_not_run_twice_is_retried_if_nothing_listens() {
    let events = Arc::new(Mutex::new(0));
    let attempts = Arc::clone(&events);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        if matches!(event.action, stagger::observe::Action::Retry { .. }) {
            *attempts.lock().unwrap() += 1;
        }
    });
    let retries = retries(retrier).idempotent_if(|_, _| false);
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url("http://127.0.0.1:1")
        .http_client(Transport::new())
        .interceptor(retries.clone())
        .retry_classifier(retries);
    call(&Client::from_conf(config.build())).await.unwrap_err();
    assert_eq!(*events.lock().unwrap(), 4);
}

#[tokio::test(start_paused = true)]
async fn calls_of_an_aws_client_inside_an_attempt_do_not_retry() {
    let server = script(&[FAILED]);
    let client = client(&server, retries(Retrier::new(POLICY)));
    let outer = Retrier::new(policy!(zero().max_attempts(2))).classify(outcome::<GetCallerIdentityError>);
    outer.run(|| call(&client)).await.unwrap_err();
    assert_eq!(server.requests().len(), 2, "the attempts of the outer call");
}

#[tokio::test(start_paused = true)]
async fn retries_that_are_an_interceptor_only_are_an_error() {
    let server = script(&[OK]);
    let error = call(&Client::from_conf(config(&server).interceptor(retries(Retrier::new(POLICY))).build())).await;
    let text = DisplayErrorContext(error.unwrap_err()).to_string();
    assert!(text.contains("set them as a retry classifier, too"), "{text}");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_retrier_around_an_aws_client_classifies_its_errors() {
    let tokens = tokens(15);
    let api = Retrier::new(POLICY).classify(outcome::<GetCallerIdentityError>).shared_guard(tokens);
    for (reply, requests) in [(THROTTLED, 4), (SLOW_DOWN, 1), (INVALID, 1)] {
        let server = Server::start(move |_| reply);
        let client = Client::from_conf(config(&server).retry_config(RetryConfig::disabled()).build());
        api.run(|| call(&client)).await.unwrap_err();
        // Three retries empty the budget.
        assert_eq!(server.requests().len(), requests, "{reply:?}");
    }
    assert_eq!(outcome(&SdkError::<GetCallerIdentityError, _>::timeout_error("late")), Outcome::TRANSIENT);
}
