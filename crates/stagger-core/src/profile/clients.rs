//! WebSocket, messaging and event-stream clients that reconnect, as they are shipped. Retry 1 is the first connection after a drop.

use core::time::Duration;

use super::Profile;
use super::entry::profiles;
use super::once::Once;
use super::socket_io::SocketIo;
use crate::policy::{Capped, Formula, Memory};
use crate::schedule::{Band, Steps};

/// Without a delay.
const NOW: (Duration, Duration) = (Duration::ZERO, Duration::ZERO);

profiles! {
    read "2026-11";

    /// reconnecting-websocket: from one draw between 1 and 5 s, growing by 1.3 to 10 s. The original makes that draw
    /// once for the whole page; here it is made once per call.
    RECONNECTING_WEBSOCKET = "reconnecting-websocket" from "reconnecting-websocket" version "4.4.0"
        in "npm reconnecting-websocket, reconnecting-websocket.ts, _getNextDelay",
    jitter(Capped::Last, &Once { from: secs(1), to: secs(5) }).memory(Memory::Own).for_exponential_only():
    exponential(secs(1), secs(10)).multiplier(1.3).unlimited_attempts().stable_after(secs(5));

    /// partysocket: from 3 s, growing by 1.3 to 10 s, without jitter.
    PARTYSOCKET = "partysocket" from "partysocket" version "1.3.0" in "npm partysocket, ws.ts":
    exponential(secs(3), secs(10)).multiplier(1.3).jitter(Jitter::None).unlimited_attempts().stable_after(secs(5));

    /// socket.io's client: around 1 s, doubling, cut at 5 s after the jitter, so that from the fifth retry on every
    /// client waits exactly 5 s. The count restarts with every connection.
    SOCKET_IO = "socket.io" from "socket.io-client" version "4.8.4"
        in "npm socket.io-client, contrib/backo2.js, manager.js",
    jitter(Capped::Last, &SocketIo).for_exponential_only():
    exponential(secs(1), secs(5)).unlimited_attempts().stable_after(secs(0));

    /// phoenix.js: a table from 10 ms to 2 s, then 5 s, without jitter.
    PHOENIX = "phoenix" from "phoenix.js" version "1.8.16" in "npm phoenix, socket.js, reconnectAfterMs":
    list(&[ms(10), ms(50), ms(100), ms(150), ms(200), ms(250), ms(500), ms(1000), ms(2000), ms(5000)])
        .jitter(Jitter::None).unlimited_attempts().stable_after(secs(0));

    /// centrifuge-js: half a second and a full jitter on top of it, up to 20 s.
    CENTRIFUGE = "centrifuge" from "centrifuge-js" version "5.8.0" in "npm centrifuge, build/index.js, backoff",
    jitter(Capped::Twice, &Band::shares(0, 100).plus(ms(500), ms(500)).steps(Steps::Millis)):
    exponential(ms(500), secs(20)).unlimited_attempts().stable_after(secs(0));

    /// SignalR's JavaScript client with automatic reconnect: 0, 2, 10 and 30 s, and no more.
    SIGNALR = "signalr" from "@microsoft/signalr" version "10.0.11"
        in "npm @microsoft/signalr, DefaultReconnectPolicy.js":
    list(&[secs(0), secs(2), secs(10), secs(30)]).jitter(Jitter::None).max_attempts(5).stable_after(secs(0));

    /// graphql-ws: 0.3 to 3 s on top of a ceiling that doubles from a second, without a cap; 5 retries.
    GRAPHQL_WS = "graphql-ws" from "graphql-ws" version "6.4.2" in "npm graphql-ws, client.js, retryWait",
    jitter(Capped::Last, &Band::shares(100, 100).plus(ms(300), ms(2_999)).steps(Steps::Millis)):
    exponential(secs(1), secs(60)).uncapped().max_attempts(6).stable_after(secs(0));

    /// `websockets` for Python: at once after a drop, up to 5 s after the first failure, and from there on 3.1 s,
    /// growing by 1.618 to 90 s, without jitter.
    WEBSOCKETS = "websockets" from "websockets for Python" version "17.4" in "PyPI websockets, client.py, backoff",
    jitter(Capped::First, &Band::shares(100, 100).lead(&[NOW, (Duration::ZERO, secs(5))])):
    exponential(ms(3100), secs(90)).multiplier(1.618).unlimited_attempts().stable_after(secs(0));

    /// GitHub's stable-socket: 100 to 150 ms after a drop, then from a second, doubling, plus up to a tenth. The caller
    /// sets the number of attempts and the cap; here there is neither.
    STABLE_SOCKET = "stable-socket" from "@github/stable-socket" version "1.1.1"
        in "npm @github/stable-socket, dist/index.js",
    jitter(Capped::Last, &Band::shares(100, 110).steps(Steps::Millis).lead(&[(ms(100), ms(150))])):
    exponential(secs(1), secs(60)).uncapped().unlimited_attempts().stable_after(secs(0));

    /// Pusher's JavaScript client: a second, without jitter. (A connection that the server closes with 4200 to 4299 is
    /// retried at once; while the server is down, an attempt takes as long as its own timeout.)
    PUSHER = "pusher" from "pusher-js" version "8.6.0" in "npm pusher-js, connection_manager.ts":
    constant(secs(1)).jitter(Jitter::None).unlimited_attempts().stable_after(secs(0));

    /// Ably's JavaScript client: at once after a drop, then 20, 25 and 30 s, less up to a fifth. (After two minutes
    /// without a connection it tries every 30 s, without jitter.)
    ABLY = "ably" from "ably-js" version "2.28.0" in "npm ably, connectionmanager.ts, utils.ts",
    jitter(Capped::First, &Band::shares(80, 100)):
    list(&[secs(0), secs(20), secs(25), secs(30)]).unlimited_attempts().stable_after(secs(0));

    /// The AWS Common Runtime's MQTT 5 client: full jitter, but never below a second, so that the first delay is
    /// exactly a second for every client.
    AWS_MQTT5 = "aws-mqtt5" from "AWS CRT, MQTT 5 client" version "1.33.2"
        in "npm aws-crt, browser/mqtt_shared_browser.ts":
    exponential(secs(1), mins(2)).floor(secs(1)).unlimited_attempts().stable_after(secs(30));

    /// async-nats: at once, then from 2 ms doubling to 4 s, without jitter. (It counts the servers of its list, not the
    /// rounds.)
    ASYNC_NATS = "async-nats" from "async-nats for Rust" version "0.51.0" in "crates.io async-nats, connector.rs":
    list(&[
        ms(0), ms(2), ms(4), ms(8), ms(16), ms(32), ms(64), ms(128), ms(256), ms(512), ms(1024), ms(2048), ms(4000),
    ]).jitter(Jitter::None).unlimited_attempts().stable_after(secs(0));

    /// ezsockets: at once, then every 5 s, without jitter.
    EZSOCKETS = "ezsockets" from "ezsockets for Rust" version "0.7.2" in "crates.io ezsockets, client.rs":
    list(&[secs(0), secs(5)]).jitter(Jitter::None).unlimited_attempts().stable_after(secs(0));

    /// stubborn-io: from 4 s, doubling to half an hour, ±5 %, cut at the cap after the jitter.
    STUBBORN_IO = "stubborn-io" from "stubborn-io for Rust" version "0.3.6" in "crates.io stubborn-io, strategies.rs",
    jitter(Capped::Last, &Band::shares(95, 105)):
    exponential(secs(4), mins(30)).unlimited_attempts().stable_after(secs(0));

    /// stream-tungstenite: at once, then from a second, doubling to a minute, ±10 %.
    STREAM_TUNGSTENITE = "stream-tungstenite" from "stream-tungstenite for Rust" version "0.6.1"
        in "crates.io stream-tungstenite, connection/retry.rs",
    jitter(Capped::First, &Band::shares(90, 110).lead(&[NOW])):
    exponential(secs(1), secs(60)).unlimited_attempts().stable_after(secs(0));

    /// The MCP SDK for TypeScript, when the event stream of a server is lost: 1 and 1.5 s, without jitter, and no more; with
    /// more retries, growing to 30 s. The count restarts with every stream. (A `retry` of the server replaces all delays,
    /// also with zero.)
    MCP_SDK = "mcp-sdk" from "@modelcontextprotocol/sdk" version "1.32.2"
        in "npm @modelcontextprotocol/sdk, client/streamableHttp.js":
    exponential(secs(1), secs(30)).multiplier(1.5).jitter(Jitter::None).max_attempts(3).stable_after(secs(0));
}
