//! A server that follows a script, and clients that connect to it: over pipes with paused time, or over sockets.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use stagger::{Jitter, Policy, PolicyBuilder, Retrier, Seed};
use stagger_ws::{ClientBuilder, Closed, ReconnectLoop};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::peer::{Step, serve};

pub(super) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(super) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Waits of 1, 2, 4, 8 and 16 s, without jitter; healthy after 10 s.
pub(super) const DOUBLING: PolicyBuilder =
    Policy::exponential(secs(1), secs(60)).jitter(Jitter::None).max_attempts(6).stable_after(secs(10));

/// Returns a retrier whose delays are drawn from this seed.
pub(super) fn seeded(policy: PolicyBuilder, seed: u64) -> Retrier {
    Retrier::new(policy.build().unwrap()).seed(Seed::new(seed))
}

/// A connection that the server has received.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    /// Time since the server was created.
    pub(super) at: Duration,
    /// The head of its request, once it has been read.
    pub(super) head: String,
}

/// A scripted server and what it has received. When the script is used up, it accepts no more connections.
#[derive(Clone, Debug)]
pub(super) struct ScriptedServer(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    script: VecDeque<Vec<Step>>,
    arrivals: Vec<Arrival>,
    closed: Vec<Closed>,
    since: Instant,
}

impl ScriptedServer {
    pub(super) fn new(script: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let (script, since) = (script.into_iter().collect(), Instant::now());
        Self(Arc::new(Mutex::new(Inner { script, arrivals: Vec::new(), closed: Vec::new(), since })))
    }

    /// Returns a builder of a client that connects over pipes.
    pub(super) fn over_pipes(&self) -> ClientBuilder {
        let server = self.clone();
        self.client().url("ws://server.test/feed").connector(move |_| {
            let pipe = server.pipe();
            async move { pipe.ok_or_else(|| io::ErrorKind::ConnectionRefused.into()) }
        })
    }

    /// Returns a builder of a client that connects over sockets.
    pub(super) async fn over_sockets(&self) -> ClientBuilder {
        let port = self.listen(|stream| async { io::Result::Ok(stream) }).await;
        self.fast_retries().url(format!("ws://127.0.0.1:{port}/feed"))
    }

    /// Returns a builder of a client with very short waits, for real sockets.
    pub(super) fn fast_retries(&self) -> ClientBuilder {
        let policy = Policy::constant(ms(2)).jitter(Jitter::None).max_attempts(6).stable_after(secs(10));
        self.client().retrier(seeded(policy, 7))
    }

    /// Starts a listener with this adapter for each stream. Returns its port.
    pub(super) async fn listen<A, S>(&self, accept: impl Fn(TcpStream) -> A + Send + 'static) -> u16
    where
        A: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Connections beyond the script are dropped.
                let Some((steps, n)) = server.arrive() else { continue };
                if let Ok(stream) = accept(stream).await {
                    server.serve(stream, steps, n);
                }
            }
        });
        port
    }

    fn client(&self) -> ClientBuilder {
        let server = self.clone();
        ReconnectLoop::builder()
            .retrier(seeded(DOUBLING, 7))
            .no_keepalive()
            .on_closed(move |closed| server.0.lock().unwrap().closed.push(closed.clone()))
    }

    fn pipe(&self) -> Option<DuplexStream> {
        let (steps, n) = self.arrive()?;
        let (ours, theirs) = duplex(64 << 10);
        self.serve(theirs, steps, n);
        Some(ours)
    }

    fn arrive(&self) -> Option<(Vec<Step>, usize)> {
        let mut inner = self.0.lock().unwrap();
        let at = inner.since.elapsed();
        inner.arrivals.push(Arrival { at, head: String::new() });
        let n = inner.arrivals.len() - 1;
        inner.script.pop_front().map(|steps| (steps, n))
    }

    fn serve(&self, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, steps: Vec<Step>, n: usize) {
        let server = self.clone();
        tokio::spawn(async move {
            serve(io, steps, |head| server.0.lock().unwrap().arrivals[n].head = head).await;
        });
    }

    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        self.0.lock().unwrap().arrivals.clone()
    }

    /// Returns when each connection arrived.
    pub(super) fn times(&self) -> Vec<Duration> {
        self.arrivals().iter().map(|arrival| arrival.at).collect()
    }

    /// Returns all failed attempts and losses, in order.
    pub(super) fn closed(&self) -> Vec<Closed> {
        self.0.lock().unwrap().closed.clone()
    }

    /// Returns their causes and waits.
    pub(super) fn waits(&self) -> Vec<(&'static str, Option<Duration>)> {
        self.closed().iter().map(|closed| (closed.cause.name(), closed.retry_in)).collect()
    }
}
