//! A consumer of a Redis stream whose server is killed and restarted: every job is executed exactly once.
//!
//! ```sh
//! cargo run -p stagger-examples --example redis_consumer
//! ```

use core::error::Error;
use core::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands as _, Client, RedisError, pipe};
use stagger::{Policy, Retrier, policy, reconnect::Reconnect};
use stagger_kit::{Port, Program, Ready, Server, User};
use tokio::task::block_in_place;

const JOBS: u32 = 300;

/// Reconnects without a limit. After a loss, each consumer waits up to 100 ms before its first attempt, so that
/// consumers do not reconnect at the same moment.
const LINK: Policy = policy!(exponential(ms(20), ms(500)).spread(ms(100)).stable_after(secs(1)).unlimited_attempts());
const COMMAND: Policy = policy!(exponential(ms(20), ms(500)).max_attempts(30));

/// Appends a job. Its number is its id, so that a repeated command cannot append it twice.
async fn append(client: &Client, job: u32) -> Result<(), RedisError> {
    let mut connection = client.get_multiplexed_async_connection().await?;
    let appended: Result<String, _> = connection.xadd("jobs", format!("{job}-0"), &[("job", job)]).await;
    match appended {
        // The job exists: the reply to an earlier attempt was lost.
        Err(error) if error.detail().is_some_and(|detail| detail.contains("equal or smaller")) => Ok(()),
        appended => appended.map(|_| ()),
    }
}

async fn produce(client: Client) -> Result<(), String> {
    let retrier = Retrier::new(COMMAND).classify(stagger_db::redis);
    for job in 1..=JOBS {
        retrier.run(|| append(&client, job)).await.map_err(|error| error.to_string())?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// Executes jobs until all are done, or the connection is lost.
async fn work(connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
    // First the jobs that were delivered to this consumer and not acknowledged, then new ones.
    let mut from = "0";
    loop {
        let options = StreamReadOptions::default().group("workers", "one").count(10).block(100);
        let read: Option<StreamReadReply> = connection.xread_options(&["jobs"], &[from], &options).await?;
        let entries: Vec<_> = read.into_iter().flat_map(|read| read.keys).flat_map(|stream| stream.ids).collect();
        if entries.is_empty() {
            if from == ">" && connection.scard::<_, u32>("done").await? == JOBS {
                return Ok(());
            }
            from = ">";
        }
        for entry in entries {
            // The effect and its acknowledgement are one transaction: after a kill, both exist or neither does.
            let mut done = pipe();
            done.atomic().sadd("done", &entry.id).ignore().incr("effects", 1).ignore();
            done.xack("jobs", "workers", &[&entry.id]).ignore();
            done.exec_async(connection).await?;
        }
    }
}

/// Maintains one connection, and executes jobs on it. Returns the number of connections used.
async fn consume(client: Client) -> Result<u32, String> {
    let retrier = Retrier::new(LINK).classify(stagger_db::redis);
    let mut links = Reconnect::new(retrier, || client.get_multiplexed_async_connection());
    let mut connections = 0;
    loop {
        let mut connection = links.next().await.map_err(|error| error.to_string())?;
        connections += 1;
        match work(&mut connection).await {
            Ok(()) => return Ok(connections),
            // After a permanent error, the next call gives up.
            Err(error) => links.lost(stagger_db::redis(&error)),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (port, data) = (Port::reserve()?, User::current().directory()?);
    let number = port.number().to_string();
    let program = Program::find("redis-server")?.directory(data.path());
    // Acknowledged writes are on disk.
    let program =
        program.args(["--bind", "127.0.0.1", "--port", &number, "--appendonly", "yes", "--appendfsync", "always"]);
    let mut server = Server::start(program, Ready::Port(port.address()), Duration::from_secs(10))?;
    let client = Client::open(format!("redis://{}", port.address()))?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let _: () = connection.xgroup_create_mkstream("jobs", "workers", "0").await?;

    let producer = tokio::spawn(produce(client.clone()));
    let consumer = tokio::spawn(consume(client.clone()));
    for kill in 1..=2_u32 {
        let retrier = Retrier::new(COMMAND).classify(stagger_db::redis);
        while retrier.run(|| done(&client)).await? < kill * JOBS / 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        block_in_place(|| server.kill());
        println!("killed the server");
        tokio::time::sleep(Duration::from_millis(200)).await;
        block_in_place(|| server.restart())?;
    }
    producer.await??;
    let connections = consumer.await??;

    let mut connection = client.get_multiplexed_async_connection().await?;
    let effects: u32 = connection.get("effects").await?;
    println!("{effects} effects of {JOBS} jobs, over {connections} connections");
    assert_eq!((effects, done(&client).await?), (JOBS, JOBS), "each job was executed once");
    assert!(connections >= 3, "the server was killed twice");
    Ok(())
}

async fn done(client: &Client) -> Result<u32, RedisError> {
    client.get_multiplexed_async_connection().await?.scard("done").await
}
