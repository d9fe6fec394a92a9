//! One hundred connection pools lose their PostgreSQL server at once, and reconnect spread out over time.
//!
//! ```sh
//! cargo run -p stagger-examples --example sqlx_pools
//! ```

use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use stagger::{Policy, Retrier, policy};
use stagger_kit::Postgres;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, block_in_place};

const CLIENTS: i32 = 100;
/// The interval within which connections count as simultaneous.
const WINDOW: Duration = Duration::from_millis(100);
const OUTAGE: Duration = Duration::from_secs(1);

/// Spreads the retries: the first ones alone take a second.
const STAGGERED: Policy = policy!(exponential(secs(1), secs(3)).local_base(secs(1)).max_attempts(12));
/// The same delays for all clients, like a loop with a sleep.
const IN_STEP: Policy = policy!(exponential(ms(500), secs(2)).jitter(Jitter::None).max_attempts(12));

/// A proxy in front of the database that records when each connection arrives.
#[derive(Clone, Default)]
struct Proxy {
    arrivals: Arc<Mutex<Vec<Instant>>>,
}

impl Proxy {
    /// Forwards connections to the database. While the database is down, it closes them.
    async fn serve(self, listener: TcpListener, database: u16) -> std::io::Result<()> {
        loop {
            let (mut client, _) = listener.accept().await?;
            self.arrivals().push(Instant::now());
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", database)).await?;
                copy_bidirectional(&mut client, &mut server).await
            });
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of arrivals since `then`, and the maximum within `WINDOW`.
    fn since(&self, then: Instant) -> (usize, usize) {
        let arrivals: Vec<_> = self.arrivals().iter().copied().filter(|arrival| *arrival > then).collect();
        let within = |from: &Instant| arrivals.iter().filter(|to| (*from..*from + WINDOW).contains(to)).count();
        (arrivals.len(), arrivals.iter().map(within).max().unwrap_or(0))
    }
}

/// A client with its own pool, which inserts one row per outage.
#[derive(Clone)]
struct Client {
    id: i32,
    pool: PgPool,
}

impl Client {
    fn new(id: i32, proxy: SocketAddr) -> Result<Self, sqlx::Error> {
        let url = format!("postgres://postgres@{proxy}/postgres?sslmode=disable");
        // The pool retries by itself for this long, without jitter, so the timeout is short.
        let options = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(2));
        Ok(Self { id, pool: options.connect_lazy(&url)? })
    }

    /// Inserts the client's row. Idempotent: if a response was lost, the row may exist already.
    async fn sign(&self, outage: i32) -> Result<(), sqlx::Error> {
        let statement = "insert into signed (client, outage) values ($1, $2) on conflict do nothing";
        sqlx::query(statement).bind(self.id).bind(outage).execute(&self.pool).await?;
        Ok(())
    }
}

/// Inserts the rows of all clients at once, with this policy. Returns the maximum number of attempts.
async fn all_sign(clients: &[Client], outage: i32, policy: Policy) -> Result<u32, Box<dyn Error>> {
    let retrier = Arc::new(Retrier::new(policy).classify(stagger_db::sqlx));
    let mut signing = JoinSet::new();
    for client in clients {
        let (client, retrier) = (client.clone(), Arc::clone(&retrier));
        signing.spawn(async move {
            let report = retrier.run(|| client.sign(outage)).with_report().await;
            report.result.map(|()| report.attempts).map_err(|error| error.to_string())
        });
    }
    let mut most = 0;
    while let Some(attempts) = signing.join_next().await {
        most = most.max(attempts??);
    }
    Ok(most)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut postgres = Postgres::start()?;
    postgres.sql("create table signed (client int, outage int, primary key (client, outage))")?;
    // Connections for all clients and for administration.
    postgres.sql("alter system set max_connections = 120")?;
    postgres.server().restart()?;

    let (proxy, listener) = (Proxy::default(), TcpListener::bind("127.0.0.1:0").await?);
    let address = listener.local_addr()?;
    tokio::spawn(proxy.clone().serve(listener, postgres.port()));
    let clients = (0..CLIENTS).map(|id| Client::new(id, address)).collect::<Result<Vec<_>, _>>()?;
    all_sign(&clients, 0, STAGGERED).await?;

    let mut busiest = Vec::new();
    for (outage, (name, policy)) in (1..).zip([("staggered", STAGGERED), ("in step", IN_STEP)]) {
        postgres.server().kill();
        let lost = Instant::now();
        let clients = clients.clone();
        let signing = tokio::spawn(async move { all_sign(&clients, outage, policy).await.map_err(|e| e.to_string()) });
        tokio::time::sleep(OUTAGE).await;
        block_in_place(|| postgres.server().restart())?;
        let most = signing.await??;
        // All clients detect the loss at the same moment, whatever the policy. The policy determines what follows.
        let (retries, window) = proxy.since(lost + WINDOW * 3);
        println!(
            "{name}: all reconnected {:.1?} after the loss, with {retries} retries and {most} attempts at most; \
             {window} in the busiest {WINDOW:?}",
            lost.elapsed()
        );
        busiest.push(window);
    }

    let signed: i64 = sqlx::query_scalar("select count(*) from signed").fetch_one(&clients[0].pool).await?;
    assert_eq!(signed, i64::from(CLIENTS) * 3, "each client signed once before, and once after each outage");
    // About 17 are expected where the first and the second retries overlap.
    assert!(busiest[0] <= 40, "a retry storm: {} of {CLIENTS} within {WINDOW:?}", busiest[0]);
    Ok(())
}
