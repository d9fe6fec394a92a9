//! The server process of an outage, `stagger drill-outage-server`: workers behind a bounded queue, over HTTP.

use core::convert::Infallible;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{print, to_json};
use stagger_ws::server::listen;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

/// Server of a drill of an outage. Reads the start of the load from its standard input, and ends when that is closed
#[derive(Args, Clone, Copy, Debug)]
pub struct OutageServeArgs {
    /// Number of workers
    #[arg(long)]
    pub(super) workers: u32,

    /// Service time
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) service: Duration,

    /// Number of attempts that may be at the server; further ones are refused
    #[arg(long)]
    pub(super) backlog: u32,

    /// Start of the fault, from the start of the load
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) start: Duration,

    /// End of the fault
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) end: Duration,

    /// Factor of the service time during the fault; without it, the server stalls
    #[arg(long)]
    pub(super) slow: Option<f64>,
}

/// The name of the hidden subcommand.
const SUBCOMMAND: &str = "drill-outage-server";

/// The path of the probes, which measure the latency: answered at once.
pub(super) const PROBE: &str = "/probe";

/// Connections that the kernel queues until the server accepts them.
const LISTEN_BACKLOG: u32 = 1_024;

/// Avoids a busy loop while `accept` keeps failing, for example for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

impl OutageServeArgs {
    /// Returns the command line that starts this server.
    pub(super) fn to_words(self) -> Vec<String> {
        let time = |flag: &str, length| {
            format!("--{flag}={}", humantime::format_duration(length).to_string().replace(' ', ""))
        };
        let mut words = vec![
            SUBCOMMAND.to_owned(),
            format!("--workers={}", self.workers),
            format!("--backlog={}", self.backlog),
            time("service", self.service),
            time("start", self.start),
            time("end", self.end),
        ];
        if let Some(slow) = self.slow {
            words.push(format!("--slow={slow}"));
        }
        words
    }

    /// Returns the fault of a run whose load begins at `begin`.
    fn fault(&self, begin: Instant) -> Fault {
        Fault { start: begin + self.start, end: begin + self.end, slow: self.slow }
    }
}

/// Serves until standard input is closed, then prints the counts.
pub fn serve(args: &OutageServeArgs) -> Result<ExitCode, CliError> {
    let cannot = |source| CliError::io("cannot start the server of the drill", source);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let entered = runtime.enter();
    let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), LISTEN_BACKLOG).map_err(cannot)?;
    let workers = Workers::start(args.workers, args.service, args.backlog);
    drop(entered);
    let address = listener.local_addr().map_err(cannot)?;
    let (ended, end) = oneshot::channel::<()>();
    let control = {
        std::thread::spawn({
            let (args, workers) = (*args, Arc::clone(&workers));
            move || follow(args, &workers, ended)
        })
    };
    print(format!("{address}\n").as_bytes())?;
    runtime.block_on(async {
        tokio::select! {
            () = accept(listener, &workers) => {}
            _ = end => {}
        }
    });
    let text = to_json(&workers.counts())?;
    // Closes the connections.
    runtime.shutdown_background();
    print(text.as_bytes())?;
    let _ = control.join();
    Ok(ExitCode::SUCCESS)
}

/// Reads the start of the load, in microseconds of Unix time, and waits until standard input is closed.
fn follow(args: OutageServeArgs, workers: &Workers, ended: oneshot::Sender<()>) {
    let mut input = io::stdin().lock();
    let mut line = String::new();
    if input.read_line(&mut line).is_ok()
        && let Ok(since) = line.trim().parse::<u64>()
    {
        let wall = (UNIX_EPOCH + Duration::from_micros(since)).duration_since(SystemTime::now()).unwrap_or_default();
        workers.begin(args.fault(Instant::now() + wall));
        let _ = io::copy(&mut input, &mut io::sink());
    }
    let _ = ended.send(());
}

async fn accept(listener: TcpListener, workers: &Arc<Workers>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, Arc::clone(workers)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn connection(stream: TcpStream, workers: Arc<Workers>) {
    // The connection works without it.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Arc::clone(&workers)));
    // Fails if the client closes the connection, as it does after a timeout.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, workers: Arc<Workers>) -> Result<Response<String>, Infallible> {
    let mut response = Response::new(String::new());
    if request.uri().path() == PROBE {
        return Ok(response);
    }
    let is_served = match workers.offer() {
        Some(answer) => answer.await.is_ok(),
        None => false,
    };
    if !is_served {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}

/// The fault of the server, as the simulator has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) start: Instant,
    pub(super) end: Instant,
    /// The factor of the service time of what is begun during the fault; `None` for a stall.
    pub(super) slow: Option<f64>,
}

impl Fault {
    /// Returns when work ends that is begun at `begin` and takes `service` without a fault. A stall interrupts what was
    /// begun before it.
    fn end_of(&self, begin: Instant, service: Duration) -> Instant {
        let is_inside = begin >= self.start && begin < self.end;
        match self.slow {
            Some(factor) if is_inside => begin + service.mul_f64(factor),
            None if is_inside => self.end + service,
            None if begin < self.start && begin + service > self.start => begin + service + (self.end - self.start),
            _ => begin + service,
        }
    }
}

/// What the server counts, from the start of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct WorkCounts {
    /// Attempts that a worker finished.
    pub(super) completed: u64,
    /// How many of these had a caller that still waited.
    pub(super) answered: u64,
    /// Attempts that found the backlog full.
    pub(super) refused: u64,
    /// Largest number of attempts at the server, waiting or in service.
    pub(super) peak: u32,
    /// Maximum delay of a timer of the server.
    pub(super) max_timer_delay_s: f64,
}

/// Workers with one queue, first in, first out.
#[derive(Debug)]
pub(super) struct Workers {
    service: Duration,
    backlog: u32,
    /// Set when the load begins; until then there is neither a fault nor a count.
    fault: OnceLock<Fault>,
    /// A permit for each attempt in the queue.
    waiting: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    at_server: u32,
    counts: WorkCounts,
}

#[derive(Debug)]
struct Job {
    arrived: Instant,
    done: oneshot::Sender<()>,
}

impl Workers {
    /// Starts `workers` tasks on the current runtime.
    pub(super) fn start(workers: u32, service: Duration, backlog: u32) -> Arc<Self> {
        let fault = OnceLock::new();
        let all = Arc::new(Self { service, backlog, fault, waiting: Semaphore::new(0), state: Mutex::default() });
        for _ in 0..workers {
            tokio::spawn(Arc::clone(&all).work());
        }
        all
    }

    /// Sets the fault and begins to count.
    pub(super) fn begin(&self, fault: Fault) {
        let _ = self.fault.set(fault);
        self.with(|state| state.counts = WorkCounts::default());
    }

    /// Takes an attempt in; returns what ends when a worker is done with it, or `None` if the backlog is full.
    pub(super) fn offer(&self) -> Option<oneshot::Receiver<()>> {
        let (done, answer) = oneshot::channel();
        self.with(|state| {
            if state.at_server >= self.backlog {
                state.counts.refused += 1;
                return None;
            }
            state.at_server += 1;
            state.counts.peak = state.counts.peak.max(state.at_server);
            state.queue.push_back(Job { arrived: Instant::now(), done });
            Some(())
        })?;
        self.waiting.add_permits(1);
        Some(answer)
    }

    pub(super) fn counts(&self) -> WorkCounts {
        self.with(|state| state.counts.clone())
    }

    /// Works off the queue. A worker that is busy begins its next work when its last one should have ended, and not
    /// when its timer fired, so late timers do not lower the capacity.
    async fn work(self: Arc<Self>) {
        let mut free_at = Instant::now();
        while let Ok(permit) = self.waiting.acquire().await {
            permit.forget();
            let Some(job) = self.with(|state| state.queue.pop_front()) else { continue };
            let begin = free_at.max(job.arrived);
            let end = match self.fault.get() {
                Some(fault) => fault.end_of(begin, self.service),
                None => begin + self.service,
            };
            tokio::time::sleep_until(end.into()).await;
            let late = end.elapsed().as_secs_f64();
            let is_answered = job.done.send(()).is_ok();
            self.with(|state| {
                state.at_server -= 1;
                state.counts.completed += 1;
                state.counts.answered += u64::from(is_answered);
                state.counts.max_timer_delay_s = state.counts.max_timer_delay_s.max(late);
            });
            free_at = end;
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_stall_interrupts_work_and_a_slow_server_takes_longer_for_what_it_begins() {
        let zero = Instant::now();
        let fault = |slow| Fault { start: zero + 100 * MS, end: zero + 200 * MS, slow };
        for (slow, begin, want) in [
            (None, 50, 70),
            (None, 90, 210),
            (None, 100, 220),
            (None, 199, 220),
            (None, 200, 220),
            (Some(3.0), 90, 110),
            (Some(3.0), 100, 160),
            (Some(3.0), 199, 259),
            (Some(3.0), 200, 220),
        ] {
            let end = fault(slow).end_of(zero + begin * MS, 20 * MS);
            assert_eq!(end, zero + want * MS, "{slow:?} from {begin}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_beyond_the_backlog_are_refused_and_the_rest_is_worked_off_by_all_workers() {
        let workers = Workers::start(2, 20 * MS, 3);
        let answers: Vec<_> = (0..4).map(|_| workers.offer()).collect();
        assert_eq!(answers.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false]);
        for answer in answers.into_iter().flatten() {
            answer.await.expect("the workers run");
        }
        let counts = workers.counts();
        assert_eq!((counts.completed, counts.answered, counts.refused, counts.peak), (3, 3, 1, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_finished_although_its_caller_has_gone() {
        let workers = Workers::start(1, 20 * MS, 3);
        drop(workers.offer());
        workers.offer().expect("room").await.expect("the worker runs");
        let counts = workers.counts();
        assert_eq!((counts.completed, counts.answered), (2, 1));
    }
}
