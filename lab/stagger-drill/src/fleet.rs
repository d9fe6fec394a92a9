use core::net::Ipv4Addr;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use stagger_core::Seed;
use stagger_sim::reconnect::ReconnectRecorder;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::client::{ClientConfig, client};
use super::log::{Event, EventLog};
use super::status::FleetStatus;

#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) status: Arc<FleetStatus>,
    pub(super) logs: Vec<Arc<EventLog>>,
    connect_permits: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

/// Number of clients that connect first, one at a time, to measure the latency without load.
pub(super) const PROBES: usize = 50;

/// Number of the remaining clients that connect at the same time, so that the initial connections are not a storm.
const PARALLEL_CONNECTS: usize = 64;

impl Fleet {
    /// Starts to connect `clients` clients, the probes first.
    pub(super) fn new(
        runtime: &Runtime,
        config: ClientConfig,
        clients: u32,
        sources: &[Option<Ipv4Addr>],
        seed: Seed,
    ) -> Self {
        let (status, connect_permits, config) =
            (Arc::new(FleetStatus::default()), Arc::new(Semaphore::new(1)), Arc::new(config));
        let logs: Vec<Arc<EventLog>> = (0..clients).map(|_| Arc::default()).collect();
        let mut tasks = JoinSet::new();
        let sources = sources.iter().copied().cycle();
        for ((id, log), source) in (0..).zip(&logs).zip(sources) {
            let (config, log, status, permits) = (config.clone(), log.clone(), status.clone(), connect_permits.clone());
            let client = client(config, ReconnectRecorder::client_seed(seed, id), source, log, status, permits);
            tasks.spawn_on(client, runtime.handle());
        }
        Self { status, logs, connect_permits, tasks }
    }

    /// Lets many clients connect at the same time, once the probes are connected.
    pub(super) fn allow_parallel_connects(&self) {
        self.connect_permits.add_permits(PARALLEL_CONNECTS);
    }

    /// Returns the 10th and the 90th percentile of the duration of the probes' attempts.
    pub(super) fn round_trip(&self) -> (Duration, Duration) {
        let mut times: Vec<Duration> = self.logs.iter().take(PROBES).filter_map(|log| log.first_attempt()).collect();
        times.sort_unstable();
        let at = |tenth: usize| times.get(times.len() * tenth / 10).copied().unwrap_or_default();
        (at(1), at(9))
    }

    /// Returns when the first and the last connection were lost, of those lost since `since`.
    pub(super) fn lost(&self, since: Instant) -> Option<(Instant, Instant)> {
        let lost = || self.logs.iter().filter_map(|log| log.first(Event::Lost, since));
        Some((lost().min()?, lost().max()?))
    }

    /// Returns when the first client reconnected after `since`.
    pub(super) fn first_reconnect(&self, since: Instant) -> Option<Instant> {
        self.logs.iter().filter_map(|log| log.first(Event::Connected, since)).min()
    }

    /// Stops all clients and waits until they have ended.
    pub(super) fn end(mut self, runtime: &Runtime) {
        runtime.block_on(self.tasks.shutdown());
    }
}
