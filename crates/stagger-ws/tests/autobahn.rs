//! The conformance tests of the Autobahn Test Suite, against the server and the client.
//!
//! `cargo xtask autobahn` installs the suite and runs them. They take minutes, most of them for large messages.
//! Compression is not offered, so its cases (12 and 13) are left out.

#![cfg(all(feature = "client", feature = "server", target_os = "linux"))]

#[cfg(test)]
mod autobahn {
    use core::time::Duration;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use futures_util::{SinkExt as _, StreamExt as _};
    use serde::Deserialize;
    use serde_json::{Value, json};
    use stagger::admission::{Admission, random_secret};
    use stagger_kit::{Port, Program, Ready, Server};
    use stagger_ws::server::{Accepted, Sockets, listen};
    use stagger_ws::{Client, Event, Message};
    use tokio::net::TcpStream;
    use tokio::task::spawn_blocking;
    use tokio::time::timeout;

    const AGENT: &str = "stagger";
    const COMPRESSION: [&str; 2] = ["12.*", "13.*"];
    /// How long the whole suite may take.
    const LIMIT: Duration = Duration::from_secs(20 * 60);
    /// How long the suite may take to start.
    const START: Duration = Duration::from_secs(30);

    /// How the suite judges a case: the reply, and how the connection was closed.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Case {
        behavior: String,
        behavior_close: String,
    }

    /// Returns the suite's program in `mode`, whose settings are written to `directory`.
    fn suite(mode: &str, settings: &Value, directory: &Path) -> Program {
        let path =
            std::env::var_os("WSTEST").expect("WSTEST is the path of the suite's program: run cargo xtask autobahn");
        let file = directory.join("settings.json");
        fs::write(&file, settings.to_string()).unwrap();
        Program::at(path).args(["-m", mode, "-s"]).arg(file).directory(directory)
    }

    /// Asserts that no case of the report has failed, and prints how many had which result.
    fn assert_conforms(directory: &Path) {
        let index = fs::read_to_string(directory.join("report/index.json")).unwrap();
        let agents: BTreeMap<String, BTreeMap<String, Case>> = serde_json::from_str(&index).unwrap();
        let cases = &agents[AGENT];
        let mut counts = BTreeMap::<_, u32>::new();
        for case in cases.values() {
            *counts.entry(case.behavior.as_str()).or_default() += 1;
        }
        println!("{} cases: {counts:?}", cases.len());
        assert!(cases.len() > 280, "the suite has run {} cases only", cases.len());
        let accepted = ["OK", "NON-STRICT", "INFORMATIONAL"];
        let failed: Vec<_> = cases
            .iter()
            .filter(|(_, case)| {
                [&case.behavior, &case.behavior_close].iter().any(|word| !accepted.contains(&word.as_str()))
            })
            .map(|(number, case)| format!("{number}: {}, {}", case.behavior, case.behavior_close))
            .collect();
        assert!(failed.is_empty(), "{failed:?}");
    }

    async fn echo(Accepted { mut socket, .. }: Accepted<TcpStream>) {
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() || message.is_binary() {
                _ = socket.send(message).await;
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "takes minutes, and needs Python 2.7: cargo xtask autobahn"]
    async fn the_server_conforms() {
        let directory = tempfile::tempdir().unwrap();
        let admission = Admission::per_second(1_000).burst(1_000).build(random_secret()).unwrap();
        let sockets = Sockets::builder(admission).build().unwrap();
        let listener = listen("127.0.0.1:0".parse().unwrap(), 64).unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { sockets.serve(listener, echo).await });
        let settings = json!({
            "outdir": "report", "servers": [{"agent": AGENT, "url": url}], "cases": ["*"], "exclude-cases": COMPRESSION,
        });
        let suite = suite("fuzzingclient", &settings, directory.path());
        let finished = spawn_blocking(move || suite.run(LIMIT)).await.unwrap().unwrap();
        serving.abort();
        assert_eq!(finished.code(), Some(0), "{}", finished.stderr_text());
        assert_conforms(directory.path());
    }

    /// Connects once, echoes messages until the connection ends, and returns the last one received.
    async fn connect(url: String) -> Option<Message> {
        let mut client = Client::builder().url(url).connect();
        let mut last = None;
        while let Some(Ok(event)) = client.next().await {
            match event {
                Event::Message(message) => {
                    last = Some(message.clone());
                    // `send` would wait for the next connection if this one is lost.
                    client.handle().try_send(message).unwrap();
                }
                Event::Closed(_) => break,
                _ => {}
            }
        }
        last
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "takes minutes, and needs Python 2.7: cargo xtask autobahn"]
    async fn the_client_conforms() {
        let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
        let url = format!("ws://{}", port.address());
        let settings = json!({"outdir": "report", "url": url, "cases": ["*"], "exclude-cases": COMPRESSION});
        let suite = suite("fuzzingserver", &settings, directory.path());
        let _server = Server::start(suite, Ready::Port(port.address()), START).unwrap();
        let count = connect(format!("{url}/getCaseCount")).await.unwrap();
        let count: u32 = count.to_text().unwrap().parse().unwrap();
        for case in 1..=count {
            let end = timeout(LIMIT, connect(format!("{url}/runCase?case={case}&agent={AGENT}"))).await;
            assert!(end.is_ok(), "case {case} has not ended");
        }
        connect(format!("{url}/updateReports?agent={AGENT}")).await;
        assert_conforms(directory.path());
    }
}
