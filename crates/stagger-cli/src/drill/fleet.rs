use core::net::Ipv4Addr;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use stagger_core::Seed;
use stagger_sim::reconnect::ReconnectRecorder;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::client::{Manner, client};
use super::live::Live;
use super::log::Log;

/// All clients of a run.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) live: Arc<Live>,
    logs: Vec<Arc<Log>>,
    gate: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

/// Clients that connect one after the other before all others, so that it is seen how long that takes alone.
pub(super) const SCOUTS: usize = 50;

/// Clients that connect at a time after them: the first connection is no storm.
const AT_A_TIME: usize = 64;

impl Fleet {
    /// So many clients begin to connect, the scouts first.
    pub(super) fn new(
        runtime: &Runtime,
        manner: Manner,
        clients: u32,
        sources: &[Option<Ipv4Addr>],
        seed: Seed,
    ) -> Self {
        let (live, gate, manner) = (Arc::new(Live::default()), Arc::new(Semaphore::new(1)), Arc::new(manner));
        let logs: Vec<Arc<Log>> = (0..clients).map(|_| Arc::default()).collect();
        let mut tasks = JoinSet::new();
        let sources = sources.iter().copied().cycle();
        for ((id, log), source) in (0..).zip(&logs).zip(sources) {
            let shared = (Arc::clone(&manner), Arc::clone(log), Arc::clone(&live), Arc::clone(&gate));
            let (manner, log, live, gate) = shared;
            tasks.spawn_on(
                client(manner, ReconnectRecorder::client_seed(seed, id), source, log, live, gate),
                runtime.handle(),
            );
        }
        Self { live, logs, gate, tasks }
    }

    /// The scouts are through: many at a time.
    pub(super) fn open_the_gate(&self) {
        self.gate.add_permits(AT_A_TIME);
    }

    /// The tenth and the ninetieth hundredth of the time that an attempt took while there was nothing else.
    pub(super) fn round_trip(&self) -> (Duration, Duration) {
        let mut times: Vec<Duration> = self.logs.iter().take(SCOUTS).filter_map(|log| log.first_attempt()).collect();
        times.sort_unstable();
        let at = |tenth: usize| times.get(times.len() * tenth / 10).copied().unwrap_or_default();
        (at(1), at(9))
    }

    /// When the first and the last connection was lost, of those that were lost since.
    pub(super) fn lost(&self, since: Instant) -> Option<(Instant, Instant)> {
        let lost = || self.logs.iter().filter_map(|log| log.lost(since));
        Some((lost().min()?, lost().max()?))
    }

    /// When the first client was back.
    pub(super) fn first_back(&self, since: Instant) -> Option<Instant> {
        self.logs.iter().filter_map(|log| log.back(since)).min()
    }

    pub(super) fn logs(&self) -> &[Arc<Log>] {
        &self.logs
    }

    /// All clients are gone when this returns.
    pub(super) fn end(mut self, runtime: &Runtime) {
        runtime.block_on(self.tasks.shutdown());
    }
}
