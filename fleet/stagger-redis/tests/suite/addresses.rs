//! Stores that are not one plain server: behind Sentinel, a cluster, over TLS.

use core::time::Duration;
use std::fs;

use stagger_kit::{Port, Program, Ready, Server, User};
use stagger_redis::Fleet;

use super::reasons::reason;
use super::sharing::until;
use super::worker::{Calls, Log, Redis, Workers};

#[tokio::test]
async fn a_failover_by_sentinel_is_followed() {
    let mut primary = Redis::start(&[]);
    let number = primary.port.number().to_string();
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &number, "--repl-diskless-sync-delay", "0"]);
    let (port, data) = (Port::reserve().unwrap(), User::current().directory().unwrap());
    let configuration = format!(
        "bind 127.0.0.1\nport {}\nsentinel monitor shop 127.0.0.1 {number} 1\n\
         sentinel down-after-milliseconds shop 500\nsentinel failover-timeout shop 3000\n",
        port.number()
    );
    fs::write(data.path().join("sentinel.conf"), configuration).unwrap();
    let program = Program::find("redis-server").unwrap().directory(data.path()).args(["sentinel.conf", "--sentinel"]);
    let _sentinel = Server::start(program, Ready::Port(port.address()), Duration::from_secs(10)).unwrap();

    let sentinels = [&*format!("redis://{}", port.address())];
    let fleet = Fleet::sentinel(&sentinels, "redis://shop", 1).build().unwrap();
    let tokens = fleet.tokens("t").build().unwrap();
    until(|| fleet.snapshot().is_leased).await;
    // The sentinel has found the replica.
    until(|| format!("{:?}", replica.run("ROLE")).contains("connected")).await;
    let sentinel = redis::Client::open(sentinels[0]).unwrap();
    until(|| {
        let replicas: Vec<redis::Value> =
            redis::cmd("SENTINEL").arg("REPLICAS").arg("shop").query(&mut sentinel.get_connection().unwrap()).unwrap();
        !replicas.is_empty()
    })
    .await;
    primary.server.kill();
    let says = |command: &str, text: &str| replica.try_run(command).is_ok_and(|it| format!("{it:?}").contains(text));
    until(|| says("ROLE", "master")).await;
    // A report that was made to the new primary has a reply.
    let reports = fleet.snapshot().reports;
    until(|| fleet.snapshot().answered > reports).await;
    until(|| says("KEYS *", "{stagger:default}:t:tokens")).await;
    assert!(tokens.snapshot().left <= 500);
}

#[tokio::test]
async fn a_namespace_is_in_one_slot_of_a_cluster() {
    let [one, two] = Redis::cluster(["0 8191", "8192 16383"]).await;
    let (url, names) = (one.url(), ["a", "b", "c", "d"]);
    for name in names {
        let fleet = Fleet::cluster(&[&url], 1).namespace(name).build().unwrap();
        // Two targets are renewed by one call.
        let tokens = [fleet.tokens("s").build().unwrap(), fleet.tokens("t").build().unwrap()];
        until(|| tokens.iter().all(|tokens| tokens.snapshot().held > 0)).await;
        assert!(fleet.snapshot().is_leased, "{name}");
    }
    // The names reach both nodes.
    let keys = |redis: &Redis| format!("{:?}", redis.run("KEYS *")).matches(":tokens").count();
    assert_eq!(keys(&one) + keys(&two), 2 * names.len());
    assert!(keys(&one) > 0 && keys(&two) > 0);
}

#[tokio::test]
async fn a_store_is_reached_over_tls() {
    let certificate = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let data = User::current().directory().unwrap();
    let (pem, key) = (data.path().join("certificate.pem"), data.path().join("key.pem"));
    fs::write(&pem, certificate.cert.pem()).unwrap();
    fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
    let (pem, key) = (pem.display().to_string(), key.display().to_string());
    let port = Port::reserve().unwrap();
    let program = Program::find("redis-server").unwrap().directory(data.path());
    let program = program.args(["--bind", "127.0.0.1", "--save", "", "--port", "0"]);
    let program = program.args(["--tls-port", &port.number().to_string(), "--tls-auth-clients", "no"]);
    let program = program.args(["--tls-cert-file", &pem, "--tls-key-file", &key, "--tls-ca-cert-file", &pem]);
    let _server = Server::start(program, Ready::Port(port.address()), Duration::from_secs(10)).unwrap();
    let url = format!("rediss://{}", port.address());
    // What the process trusts is read from its environment.
    for (trusted, losses) in [(&*pem, 0), ("/dev/null", 1)] {
        let log = Log::sum(&Workers::start_with(&url, 1.5, &[Calls::Fail], &[("SSL_CERT_FILE", trusted)]).finish());
        assert_eq!(log.losses, [losses], "{trusted}");
        assert_eq!(log.retries.is_empty(), losses == 1, "{trusted}");
    }
    let plain = reason(&url.replace("rediss:", "redis:")).await;
    assert!(plain.contains("use rediss:// if this port has TLS"), "{plain}");
    let untrusted = reason(&url).await;
    assert!(untrusted.contains("certificate"), "{untrusted}");
}
