//! The named policies: libraries, SDKs, proxies and tools; then clients that reconnect; then our own.
//!
//! A profile is an entry here and not a file, so adding one changes one place. A jitter that only one system has is
//! drawn, forecast and planned like any other, but can be chosen only by the name of its profile.

use core::time::Duration;

use super::curves::{Band, CappedLast, DrawnOnce, Rounding, SocketIo};
use super::entry::{Profile, profiles};
use super::polly::Polly;
use crate::policy::{Capped, Formula, Memory};

/// Without a delay.
const NOW: (Duration, Duration) = (Duration::ZERO, Duration::ZERO);

profiles! {
    read "2026-11";

    // Retry libraries, SDKs, proxies and tools.

    /// The Go package `cenkalti/backoff`: ceilings in whole nanoseconds, drawn within ±50 % of the capped ceiling, so
    /// that delays of up to 90 s follow a cap of 60 s. [`max_elapsed`](crate::Policy::max_elapsed) is its 15 minutes.
    CENKALTI = "cenkalti" from "cenkalti/backoff for Go" version "4.3.0"
        in "github.com/cenkalti/backoff, exponential.go",
    jitter(Capped::First, &Band::shares(50, 150).rounded(Rounding::Nanos)):
    exponential(ms(500), secs(60)).multiplier(1.5).unlimited_attempts().max_elapsed(mins(15));

    /// Google's HTTP client for Java, from which `cenkalti/backoff` is derived: the same numbers, in whole
    /// milliseconds. Its limit of 15 minutes does not include the coming delay; here every limit does.
    GOOGLE_HTTP_JAVA = "google-http-java" from "google-http-java-client, ExponentialBackOff" version "1.45"
        in "github.com/googleapis/google-http-java-client, ExponentialBackOff.java",
    jitter(Capped::First, &Band::shares(50, 150).rounded(Rounding::Millis)):
    exponential(ms(500), secs(60)).multiplier(1.5).unlimited_attempts().max_elapsed(mins(15));

    /// The client libraries of Google Cloud: full jitter, two minutes in total. Generated clients have numbers of their
    /// own for each method.
    GOOGLE_CLOUD = "google-cloud" from "Google Cloud client libraries (google-api-core)" version "2.44.0"
        in "PyPI google-api-core, retry/retry_base.py":
    exponential(secs(1), secs(60)).unlimited_attempts().max_elapsed(mins(2));

    /// The AWS SDKs' standard mode: full jitter, 3 attempts, 20 s. A hint replaces the delay (in the SDKs up to 20 s
    /// only). Their retry quota is a budget, which is not part of the policy.
    ///
    /// These are the numbers of the SDKs for Rust, Go and .NET. That for JavaScript has a base of 100 ms; that for Java
    /// 100 ms, 500 ms after throttling, and 4 attempts; that for C++ 25 ms, 11 attempts and no quota.
    AWS_SDK = "aws-sdk" from "AWS SDKs, standard retry mode" version "aws-smithy-runtime 1.16.2, retries 2.0"
        in "crates.io aws-smithy-runtime, retries/strategy/standard.rs":
    exponential(secs(1), secs(20)).max_attempts(3).hint_mode(HintMode::Exact);

    /// The AWS SDKs' numbers of 2026: 50 ms after a transient failure, 1 s after throttling; a hint, in the header
    /// `x-amz-retry-after`, moves the delay by 5 s at most. They are opt-in (`AWS_NEW_RETRIES_2026=true`); AWS
    /// announced on 2026-05-20 that they become the default no sooner than November 2026.
    AWS_SDK_2026 = "aws-sdk-2026" from "AWS SDKs, standard retry mode of 2026"
        version "aws-smithy-runtime 1.16.2, retries 2.1"
        in "crates.io aws-smithy-runtime, retries/strategy/standard.rs":
    exponential(ms(50), secs(20)).throttled_base(secs(1)).max_attempts(3).hint_mode(HintMode::Clamp(secs(5)))
        .unlimited_hint();

    /// The AWS SDKs' numbers of 2026 for DynamoDB and DynamoDB Streams: [`AWS_SDK_2026`] with 25 ms and 4 attempts.
    AWS_DYNAMODB_2026 = "aws-dynamodb-2026" from "AWS SDKs, DynamoDB, standard retry mode of 2026"
        version "announcement of 2026-05-20"
        in "github.com/aws/aws-sdk-go-v2, issue 3416; github.com/aws/aws-sdk-net, issue 4411":
    exponential(ms(25), secs(20)).throttled_base(secs(1)).max_attempts(4).hint_mode(HintMode::Clamp(secs(5)))
        .unlimited_hint();

    /// OpenAI's SDK for Python: down to 75 % of the capped ceiling, 3 attempts. A hint replaces the delay, and one of
    /// more than two minutes ends the call. A hint of zero is ignored there, and followed here. Versions 1 ignored a
    /// hint of more than a minute.
    OPENAI = "openai" from "OpenAI SDK for Python" version "3.54.0" in "PyPI openai, _base_client.py, _constants.py",
    jitter(Capped::First, &Band::shares(75, 100)):
    exponential(ms(500), secs(8)).max_attempts(3).hint_mode(HintMode::Exact).max_hint(mins(2));

    /// Anthropic's SDK for Python: the delays of [`OPENAI`]. A hint replaces the delay, however long it is. A hint of
    /// zero is ignored there, and followed here.
    ANTHROPIC = "anthropic" from "Anthropic SDK for Python" version "2.12.0"
        in "PyPI anthropic, _base_client.py, _constants.py",
    jitter(Capped::First, &Band::shares(75, 100)):
    exponential(ms(500), secs(8)).max_attempts(3).hint_mode(HintMode::Exact).unlimited_hint();

    /// The article that made jitter known, with decorrelated jitter as it was published: `min(cap, U[base, 3 ·
    /// previous])` with the simulator's 5 ms and 2 s, which piles clients up on the cap. The article's full and equal
    /// jitter are [`Jitter::Full`](crate::Jitter::Full) and [`Jitter::Equal`](crate::Jitter::Equal).
    AWS_BLOG = "aws-blog" from "M. Brooker, \"Exponential Backoff And Jitter\"" version "2015"
        in "aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter",
    jitter(Capped::Last, &CappedLast).memory(Memory::Decorrelated).for_exponential_only():
    exponential(ms(5), secs(2)).unlimited_attempts();

    /// gRPC's `retryPolicy`, with the numbers of the proposal's example: within ±20 % of the capped ceiling.
    GRPC_A6 = "grpc-a6" from "gRPC A6, client retries" version "2024-08"
        in "github.com/grpc/proposal, A6-client-retries.md":
    exponential(ms(100), secs(1)).jitter(Jitter::Factor(Ratio::percent(20))).max_attempts(4).hint_mode(HintMode::Exact);

    /// Tenacity's `wait_exponential_jitter`: up to a second on top of the ceiling, cut at the cap afterwards. There is
    /// neither a cap nor an attempt limit unless one is set. To set the length of the jitter, use
    /// [`Jitter::Added`](crate::Jitter::Added): `tenacity jitter=add:500ms`.
    TENACITY = "tenacity" from "tenacity for Python, wait_exponential_jitter" version "9.2.1"
        in "PyPI tenacity, wait.py",
    jitter(Capped::Last, &Band::shares(100, 100).plus(ms(0), secs(1))):
    exponential(secs(1), secs(60)).uncapped().unlimited_attempts();

    /// Polly's exponential delays with jitter (`UseJitter`), 3 retries. With constant and linear backoff the jitter is
    /// ±25 %, cut at the cap.
    POLLY_V8 = "polly-v8" from "Polly for .NET, retry with jitter" version "8"
        in "github.com/App-vNext/Polly, RetryHelper.cs",
    jitter(Capped::Last, &Polly { band: Band::shares(75, 125) }).memory(Memory::Own):
    exponential(secs(2), secs(60)).uncapped().max_attempts(4);

    /// resilience4j's `ofExponentialRandomBackoff`: steps in whole milliseconds, ±50 %, cut at the cap.
    RESILIENCE4J = "resilience4j" from "resilience4j, ofExponentialRandomBackoff" version "2"
        in "github.com/resilience4j/resilience4j, IntervalFunction.java",
    jitter(Capped::Last, &Band::shares(50, 150).rounded(Rounding::Millis)):
    exponential(ms(500), secs(60)).uncapped().multiplier(1.5).max_attempts(3);

    /// failsafe-go with `WithBackoff(2 s, 30 s)`: no jitter unless configured, 2 retries. (Without `WithBackoff` it
    /// does not wait at all.)
    FAILSAFE_GO = "failsafe-go" from "failsafe-go, retrypolicy" version "0.6"
        in "github.com/failsafe-go/failsafe-go, retrypolicy":
    exponential(secs(2), secs(30)).jitter(Jitter::None).max_attempts(3);

    /// Envoy: full jitter in whole milliseconds below 25 ms, doubling to ten times that, and a single retry. Its
    /// documentation still describes another series.
    ENVOY = "envoy" from "Envoy, router retries" version "1.36"
        in "github.com/envoyproxy/envoy, retry_state_impl.cc, backoff_strategy.cc",
    jitter(Capped::First, &Band::shares(0, 100).open(ms(1)).rounded(Rounding::Millis)):
    exponential(ms(25), ms(250)).max_attempts(2);

    /// curl's `--retry`: from a second, doubling to ten minutes, without jitter. The caller sets the number of retries;
    /// here 3. (8.16.0 did not double, by mistake.)
    CURL = "curl" from "curl --retry" version "8" in "curl.se/docs/manpage.html":
    exponential(secs(1), mins(10)).jitter(Jitter::None).max_attempts(4);

    /// A Kubernetes container that keeps crashing: at once, then from 10 s doubling to five minutes, without jitter;
    /// healthy after ten minutes.
    KUBERNETES = "kubernetes" from "Kubernetes, CrashLoopBackOff" version "1.34"
        in "kubernetes.io, Pod lifecycle, container restarts":
    list(&[secs(0), secs(10), secs(20), secs(40), secs(80), secs(160), secs(300)])
        .jitter(Jitter::None).unlimited_attempts().stable_after(mins(10));

    // WebSocket, messaging and event-stream clients that reconnect, as they are shipped. Retry 1 is the first
    // connection after a drop.

    /// reconnecting-websocket: from one draw between 1 and 5 s, growing by 1.3 to 10 s. The original makes that draw
    /// once for the whole page; here it is made once per call.
    RECONNECTING_WEBSOCKET = "reconnecting-websocket" for connections from "reconnecting-websocket" version "4.4.0"
        in "npm reconnecting-websocket, reconnecting-websocket.ts, _getNextDelay",
    jitter(Capped::Last, &DrawnOnce { from: secs(1), to: secs(5) }).memory(Memory::Own).for_exponential_only():
    exponential(secs(1), secs(10)).multiplier(1.3).unlimited_attempts().stable_after(secs(5));

    /// partysocket: from 3 s, growing by 1.3 to 10 s, without jitter.
    PARTYSOCKET = "partysocket" for connections from "partysocket" version "1.3.0" in "npm partysocket, ws.ts":
    exponential(secs(3), secs(10)).multiplier(1.3).jitter(Jitter::None).unlimited_attempts().stable_after(secs(5));

    /// socket.io's client: around 1 s, doubling, cut at 5 s after the jitter, so that from the fifth retry on every
    /// client waits exactly 5 s. The count restarts with every connection.
    SOCKET_IO = "socket.io" for connections from "socket.io-client" version "4.8.4"
        in "npm socket.io-client, contrib/backo2.js, manager.js",
    jitter(Capped::Last, &SocketIo).for_exponential_only():
    exponential(secs(1), secs(5)).unlimited_attempts().stable_after(secs(0));

    /// phoenix.js: a table from 10 ms to 2 s, then 5 s, without jitter.
    PHOENIX = "phoenix" for connections from "phoenix.js" version "1.8.16"
        in "npm phoenix, socket.js, reconnectAfterMs":
    list(&[ms(10), ms(50), ms(100), ms(150), ms(200), ms(250), ms(500), ms(1000), ms(2000), ms(5000)])
        .jitter(Jitter::None).unlimited_attempts().stable_after(secs(0));

    /// centrifuge-js: half a second and a full jitter on top of it, up to 20 s.
    CENTRIFUGE = "centrifuge" for connections from "centrifuge-js" version "5.8.0"
        in "npm centrifuge, build/index.js, backoff",
    jitter(Capped::Twice, &Band::shares(0, 100).plus(ms(500), ms(500)).rounded(Rounding::Millis)):
    exponential(ms(500), secs(20)).unlimited_attempts().stable_after(secs(0));

    /// SignalR's JavaScript client with automatic reconnect: 0, 2, 10 and 30 s, and no more.
    SIGNALR = "signalr" for connections from "@microsoft/signalr" version "10.0.11"
        in "npm @microsoft/signalr, DefaultReconnectPolicy.js":
    list(&[secs(0), secs(2), secs(10), secs(30)]).jitter(Jitter::None).max_attempts(5).stable_after(secs(0));

    /// graphql-ws: 0.3 to 3 s on top of a ceiling that doubles from a second, without a cap; 5 retries.
    GRAPHQL_WS = "graphql-ws" for connections from "graphql-ws" version "6.4.2"
        in "npm graphql-ws, client.js, retryWait",
    jitter(Capped::Last, &Band::shares(100, 100).plus(ms(300), ms(2_999)).rounded(Rounding::Millis)):
    exponential(secs(1), secs(60)).uncapped().max_attempts(6).stable_after(secs(0));

    /// `websockets` for Python: at once after a drop, up to 5 s after the first failure, and from there on 3.1 s,
    /// growing by 1.618 to 90 s, without jitter.
    WEBSOCKETS = "websockets" for connections from "websockets for Python" version "17.4"
        in "PyPI websockets, client.py, backoff",
    jitter(Capped::First, &Band::shares(100, 100).lead(&[NOW, (Duration::ZERO, secs(5))])):
    exponential(ms(3100), secs(90)).multiplier(1.618).unlimited_attempts().stable_after(secs(0));

    /// GitHub's stable-socket: 100 to 150 ms after a drop, then from a second, doubling, plus up to a tenth. The caller
    /// sets the number of attempts and the cap; here there is neither.
    STABLE_SOCKET = "stable-socket" for connections from "@github/stable-socket" version "1.1.1"
        in "npm @github/stable-socket, dist/index.js",
    jitter(Capped::Last, &Band::shares(100, 110).rounded(Rounding::Millis).lead(&[(ms(100), ms(150))])):
    exponential(secs(1), secs(60)).uncapped().unlimited_attempts().stable_after(secs(0));

    /// Pusher's JavaScript client: a second, without jitter. (A connection that the server closes with 4200 to 4299 is
    /// retried at once; while the server is down, an attempt takes as long as its own timeout.)
    PUSHER = "pusher" for connections from "pusher-js" version "8.6.0" in "npm pusher-js, connection_manager.ts":
    constant(secs(1)).jitter(Jitter::None).unlimited_attempts().stable_after(secs(0));

    /// Ably's JavaScript client: at once after a drop, then 20, 25 and 30 s, less up to a fifth. (After two minutes
    /// without a connection it tries every 30 s, without jitter.)
    ABLY = "ably" for connections from "ably-js" version "2.28.0" in "npm ably, connectionmanager.ts, utils.ts",
    jitter(Capped::First, &Band::shares(80, 100)):
    list(&[secs(0), secs(20), secs(25), secs(30)]).unlimited_attempts().stable_after(secs(0));

    /// The AWS Common Runtime's MQTT 5 client: full jitter, but never below a second, so that the first delay is
    /// exactly a second for every client.
    AWS_MQTT5 = "aws-mqtt5" for connections from "AWS CRT, MQTT 5 client" version "1.33.2"
        in "npm aws-crt, browser/mqtt_shared_browser.ts":
    exponential(secs(1), mins(2)).floor(secs(1)).unlimited_attempts().stable_after(secs(30));

    /// async-nats: at once, then from 2 ms doubling to 4 s, without jitter. (It counts the servers of its list, not the
    /// rounds.)
    ASYNC_NATS = "async-nats" for connections from "async-nats for Rust" version "0.51.0"
        in "crates.io async-nats, connector.rs":
    list(&[
        ms(0), ms(2), ms(4), ms(8), ms(16), ms(32), ms(64), ms(128), ms(256), ms(512), ms(1024), ms(2048), ms(4000),
    ]).jitter(Jitter::None).unlimited_attempts().stable_after(secs(0));

    /// ezsockets: at once, then every 5 s, without jitter.
    EZSOCKETS = "ezsockets" for connections from "ezsockets for Rust" version "0.7.2"
        in "crates.io ezsockets, client.rs":
    list(&[secs(0), secs(5)]).jitter(Jitter::None).unlimited_attempts().stable_after(secs(0));

    /// stubborn-io: from 4 s, doubling to half an hour, ±5 %, cut at the cap after the jitter.
    STUBBORN_IO = "stubborn-io" for connections from "stubborn-io for Rust" version "0.3.6"
        in "crates.io stubborn-io, strategies.rs",
    jitter(Capped::Last, &Band::shares(95, 105)):
    exponential(secs(4), mins(30)).unlimited_attempts().stable_after(secs(0));

    /// stream-tungstenite: at once, then from a second, doubling to a minute, ±10 %.
    STREAM_TUNGSTENITE = "stream-tungstenite" for connections from "stream-tungstenite for Rust" version "0.6.1"
        in "crates.io stream-tungstenite, connection/retry.rs",
    jitter(Capped::First, &Band::shares(90, 110).lead(&[NOW])):
    exponential(secs(1), secs(60)).unlimited_attempts().stable_after(secs(0));

    /// The MCP SDK for TypeScript, when the event stream of a server is lost: 1 and 1.5 s, without jitter, and no more;
    /// with more retries, growing to 30 s. The count restarts with every stream. (A `retry` of the server replaces all
    /// delays, also with zero.)
    MCP_SDK = "mcp-sdk" for connections from "@modelcontextprotocol/sdk" version "1.32.2"
        in "npm @modelcontextprotocol/sdk, client/streamableHttp.js":
    exponential(secs(1), secs(30)).multiplier(1.5).jitter(Jitter::None).max_attempts(3).stable_after(secs(0));

    // Recommended policies. The guide, "How the profiles were chosen", has the criterion and the figures.

    /// The default: calls to a service nearby.
    DEFAULT = "default" from "stagger, the plain default" in "Policy::DEFAULT":
    exponential(ms(100), secs(30)).max_attempts(4).max_hint(secs(30));

    /// A WebSocket, or any long-lived connection that is kept up: spread over ten seconds after every loss, because it
    /// may have hit every client. A first failure after that is evidence of a common cause, so the backoff begins with
    /// 7.5 to 15 s. The count restarts only after ten healthy seconds. It does not give up, but
    /// [tells](crate::machine::Unreachable) after ten failed attempts, and waits for as long as the server says.
    WEB_SOCKET = "web-socket" for connections from "stagger, for connections that are kept up"
        in "a drop hits every client in the same instant; backoff alone brings them back within one base":
    exponential(secs(15), secs(30)).jitter(Jitter::Equal).spread(secs(10)).unlimited_attempts().unlimited_hint()
        .stable_after(secs(10));

    /// Background work that no user waits for. Its ten attempts take a quarter of an hour on average, so that nearly
    /// every job outlasts an outage of ten.
    BACKGROUND_JOB = "background-job" from "stagger, for background work"
        in "patient, and spread by half of each delay in both directions":
    exponential(secs(30), mins(2)).jitter(Jitter::Factor(Ratio::percent(50))).max_attempts(10);

    /// A function that is billed by its running time, which does not wait for more than ten seconds because a server
    /// says so. Set `max_elapsed` to the time that the invocation has left.
    SERVERLESS = "serverless" from "stagger, for functions that are billed by their time"
        in "set max-elapsed to what the invocation has left":
    exponential(ms(100), secs(2)).max_attempts(3).max_hint(secs(10));

    /// A call for which a person waits, and not for more than two seconds because a server says so.
    INTERACTIVE = "interactive" from "stagger, while a person waits" in "one more try, soon":
    exponential(ms(20), ms(500)).max_attempts(2).max_hint(secs(2));
}

impl Profile {
    /// Returns every profile: systems first, then clients that reconnect, then our own.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ALL.iter().copied()
    }

    /// Returns the profile with this name. Hyphens, underscores and dots are equivalent, and so are upper and lower
    /// case.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|profile| letters(profile.name).eq(letters(name)))
    }
}

/// Returns a name in the form that is compared.
fn letters(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().map(|byte| match byte {
        b'_' | b'.' => b'-',
        byte => byte.to_ascii_lowercase(),
    })
}
