//! Redis: a cluster of two nodes, a replica without its primary, a server without a free connection, one that is
//! killed.

use core::time::Duration;
use std::io::Read as _;

use fred::prelude::{Builder, ClientLike as _, Config};
use fred::types::{ClusterHash, CustomCommand, Value};
use stagger::{Outcome, Policy, classify, policy};
use stagger_kit::{Port, Program, Ready, Server, User};
use tempfile::TempDir;

use super::recipes;

const POLICY: Policy = policy!(exponential(ms(5), ms(20)).max_attempts(400));

/// A Redis server with an empty data set.
struct Redis {
    // Drop order: the server is killed before its directory is removed and its port is released.
    server: Server,
    _data: TempDir,
    port: Port,
}

impl Redis {
    fn start(options: &[&str]) -> Self {
        let (port, data) = (Port::reserve().unwrap(), User::current().directory().unwrap());
        let number = port.number().to_string();
        let program = Program::find("redis-server").unwrap().directory(data.path());
        let program = program.args(["--bind", "127.0.0.1", "--save", "", "--port", &number]).args(options);
        let server = Server::start(program, Ready::Port(port.address()), Duration::from_secs(10)).unwrap();
        Self { server, _data: data, port }
    }

    fn client(&self) -> redis::Client {
        redis::Client::open(format!("redis://{}", self.port.address())).unwrap()
    }

    /// Runs a command, given as its words, over a new connection.
    async fn run(&self, words: &str) -> redis::RedisResult<redis::Value> {
        let mut connection = self.client().get_multiplexed_async_connection().await?;
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        words.fold(&mut command, |command, word| command.arg(word)).query_async(&mut connection).await
    }

    /// Asserts the outcome of the error of a command, with both clients.
    async fn check(&self, words: &str, reply: &str, want: Outcome) {
        let error = self.run(words).await.unwrap_err();
        assert_eq!((error.code().unwrap_or_default(), stagger_db::redis(&error)), (reply, want), "redis: {error}");
        let mut words = words.split(' ').map(str::to_owned);
        let command = CustomCommand::new(words.next().unwrap(), ClusterHash::FirstKey, false);
        let client = Builder::from_config(Config::from_url(&format!("redis://{}", self.port.address())).unwrap());
        let client = client.build().unwrap();
        // Connecting asks for the state of the server, which a replica without its primary does not answer.
        let connected = client.init().await.map(drop);
        let words = words.collect::<Vec<_>>();
        let error = match connected {
            Ok(()) => client.custom::<Value, _>(command, words).await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!((error.details().split(' ').next(), recipes::fred(&error)), (Some(reply), want), "fred: {error}");
        client.quit().await.unwrap();
    }
}

#[tokio::test]
async fn redirections_of_a_cluster_are_transient() {
    // On a busy machine, a node that answers late is not taken for lost.
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "600000"];
    let [one, two] = [(); 2].map(|()| Redis::start(&options));
    one.check("GET key", "CLUSTERDOWN", Outcome::TRANSIENT).await;
    one.run("CLUSTER ADDSLOTSRANGE 0 8191").await.unwrap();
    two.run("CLUSTER ADDSLOTSRANGE 8192 16383").await.unwrap();
    one.run(&format!("CLUSTER MEET 127.0.0.1 {}", two.port.number())).await.unwrap();
    // The cluster is up once both nodes know all slots.
    let up = async || one.run("SET a 1").await.and(two.run("GET key").await.map(drop));
    let not_yet = |error: &redis::RedisError| {
        if error.code() == Some("MOVED") { Outcome::Permanent } else { stagger_db::redis(error) }
    };
    let _ = stagger::retry(&POLICY, up).classify(not_yet).await;

    // `key` is in slot 12539, `a` in slot 15495.
    one.check("GET key", "MOVED", Outcome::TRANSIENT).await;
    one.check("MGET key a", "CROSSSLOT", Outcome::Permanent).await;
    // A slot that moves: its old node sends clients on to the new one.
    let id = |node: redis::Value| redis::from_redis_value::<String>(node).unwrap();
    let (first, second) = (id(one.run("CLUSTER MYID").await.unwrap()), id(two.run("CLUSTER MYID").await.unwrap()));
    two.run(&format!("CLUSTER SETSLOT 12539 MIGRATING {first}")).await.unwrap();
    one.run(&format!("CLUSTER SETSLOT 12539 IMPORTING {second}")).await.unwrap();
    two.check("GET key", "ASK", Outcome::TRANSIENT).await;
}

#[tokio::test]
async fn a_replica_is_transient_for_writes_and_without_its_primary_for_reads() {
    let absent = Port::reserve().unwrap();
    let primary = format!("127.0.0.1 {}", absent.number());
    let replica = Redis::start(&["--replicaof", &primary]);
    replica.check("SET key 1", "READONLY", Outcome::TRANSIENT).await;
    replica.run("CONFIG SET replica-serve-stale-data no").await.unwrap();
    replica.check("GET key", "MASTERDOWN", Outcome::TRANSIENT).await;
    replica.run("REPLICAOF NO ONE").await.unwrap();
    replica.run("SET key 1").await.unwrap();
    replica.check("LPUSH key 1", "WRONGTYPE", Outcome::Permanent).await;
    replica.run("CONFIG SET maxmemory 1").await.unwrap();
    replica.check("SET key 2", "OOM", Outcome::throttled(None)).await;
}

#[tokio::test]
async fn a_killed_server_is_transient() {
    let mut redis = Redis::start(&[]);
    let mut connection = redis.client().get_multiplexed_async_connection().await.unwrap();
    redis.server.kill();
    let lost = redis::cmd("PING").query_async::<()>(&mut connection).await.unwrap_err();
    assert_eq!(stagger_db::redis(&lost), Outcome::TRANSIENT, "{lost}");
    let refused = redis.run("PING").await.unwrap_err();
    assert_eq!(stagger_db::redis(&refused), Outcome::TRANSIENT, "{refused}");
    redis.server.restart().unwrap();
    stagger::retry(&POLICY, async || redis.run("PING").await).classify(stagger_db::redis).await.unwrap();
}

/// The reply of a server whose connections are all in use.
const FULL: &str = "-ERR max number of clients reached";

#[tokio::test]
async fn a_server_without_a_free_connection_is_throttled_where_its_reply_is_read() {
    let redis = Redis::start(&["--maxclients", "1"]);
    let connect = async || redis.client().get_multiplexed_async_connection().await;
    let _one = stagger::retry(&POLICY, connect).await.unwrap();
    let mut stream = std::net::TcpStream::connect(redis.port.address()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert_eq!((reply.trim_end(), classify::redis(&reply)), (FULL, Outcome::throttled(None)));

    // This client writes first, to a connection that the server has closed, and drops its reply.
    let lost = redis.run("PING").await.unwrap_err();
    assert_eq!(stagger_db::redis(&lost), Outcome::TRANSIENT, "{lost}");
    // This one reads the reply, unless the connection is reset before.
    let mut outcomes = Vec::new();
    while outcomes.last() != Some(&Outcome::throttled(None)) && outcomes.len() < 100 {
        let client = Builder::from_config(Config::from_url(&format!("redis://{}", redis.port.address())).unwrap());
        outcomes.push(recipes::fred(&client.build().unwrap().init().await.unwrap_err()));
    }
    assert_eq!(outcomes.last(), Some(&Outcome::throttled(None)), "{outcomes:?}");
}
