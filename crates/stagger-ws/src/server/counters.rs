use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;

use super::rejection::UpgradeRejected;

/// The connections of a server, now and since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketsSnapshot {
    /// Open connections.
    pub active: usize,
    /// Connections admitted in total.
    pub accepted: u64,
    /// Rejected upgrades, by reason.
    pub rejected: RejectionCounts,
    /// How many of the rejected upgrades were rejected by a close frame; they are in [`rejected`](Self::rejected), too.
    pub rejected_by_close: u64,
    /// Ended connections, by the code of the first close frame of either side, as in the [contract](super#metrics).
    /// Contains only codes that have occurred.
    pub closed: BTreeMap<&'static str, u64>,
    /// Connections closed by a drain that ended within the close timeout.
    pub drained_in_time: u64,
    /// Connections closed by a drain that were dropped, since the client did not reply to the close in time.
    pub drained_timed_out: u64,
    /// Connections closed because the peer was found dead.
    pub reaped: u64,
    /// Completed upgrades.
    pub upgrades: u64,
    /// Total duration of the completed upgrades.
    pub upgrade_time: Duration,
}

/// The number of rejected upgrades, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectionCounts {
    /// The admission's rate was exceeded.
    pub rate_limited: u64,
    /// The connection limit was reached.
    pub at_capacity: u64,
    /// The server was draining.
    pub draining: u64,
    /// The request was not an upgrade, or did not complete in time. Counted only by
    /// [`Sockets::accept`](super::Sockets::accept); axum handles such requests itself.
    pub handshake_failed: u64,
    /// The connection had to make room for a newer one before its request was complete. Counted only by
    /// [`Sockets::serve`](super::Sockets::serve).
    pub evicted: u64,
    /// The peer had too many handshakes in progress. Counted only by [`Sockets::serve`](super::Sockets::serve).
    pub peer_limit: u64,
}

/// Every code with its own label, and three labels for all others.
const LABELS: [&str; 17] = [
    "1000", "1001", "1002", "1003", "1005", "1006", "1007", "1008", "1009", "1010", "1011", "1012", "1013", "1014",
    "3xxx", "4xxx", "other",
];

/// Returns the index of the label of a close code.
fn index(code: Option<u16>) -> usize {
    let label = match code {
        // No close frame at all: RFC 6455, section 7.1.5.
        None => "1006",
        Some(3000..4000) => "3xxx",
        Some(4000..5000) => "4xxx",
        Some(code) => &code.to_string(),
    };
    LABELS.iter().position(|known| *known == label).unwrap_or(LABELS.len() - 1)
}

/// A number of occurrences.
#[derive(Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) accepted: Count,
    rate_limited: Count,
    at_capacity: Count,
    draining: Count,
    pub(super) handshake_failed: Count,
    pub(super) evicted: Count,
    pub(super) peer_limit: Count,
    pub(super) rejected_by_close: Count,
    closed: [Count; LABELS.len()],
    pub(super) drained_in_time: Count,
    pub(super) drained_timed_out: Count,
    pub(super) reaped: Count,
    upgrades: Count,
    upgrade_nanos: AtomicU64,
}

impl Counters {
    pub(super) fn rejected(&self, rejected: &UpgradeRejected) {
        match rejected {
            UpgradeRejected::RateLimited(_) => &self.rate_limited,
            UpgradeRejected::AtCapacity(_) => &self.at_capacity,
            UpgradeRejected::Draining(_) => &self.draining,
        }
        .increment();
    }

    /// Counts an ended connection by its close code.
    pub(super) fn closed(&self, code: Option<u16>) {
        self.closed[index(code)].increment();
    }

    pub(super) fn upgraded(&self, took: Duration) {
        self.upgrades.increment();
        self.upgrade_nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self, active: usize) -> SocketsSnapshot {
        let closed = LABELS.iter().zip(&self.closed).map(|(&label, count)| (label, count.get()));
        SocketsSnapshot {
            active,
            accepted: self.accepted.get(),
            rejected: RejectionCounts {
                rate_limited: self.rate_limited.get(),
                at_capacity: self.at_capacity.get(),
                draining: self.draining.get(),
                handshake_failed: self.handshake_failed.get(),
                evicted: self.evicted.get(),
                peer_limit: self.peer_limit.get(),
            },
            rejected_by_close: self.rejected_by_close.get(),
            closed: closed.filter(|&(_, number)| number > 0).collect(),
            drained_in_time: self.drained_in_time.get(),
            drained_timed_out: self.drained_timed_out.get(),
            reaped: self.reaped.get(),
            upgrades: self.upgrades.get(),
            upgrade_time: Duration::from_nanos(self.upgrade_nanos.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(feature = "metrics")]
impl SocketsSnapshot {
    pub(super) fn record(&self, target: &str) {
        use metrics::{counter, gauge};

        let target = || target.to_owned();
        gauge!("stagger_ws_connections_active", "target" => target()).set(self.active as f64);
        counter!("stagger_ws_accepted_total", "target" => target()).absolute(self.accepted);
        let RejectionCounts { rate_limited, at_capacity, draining, handshake_failed, evicted, peer_limit } =
            self.rejected;
        for (reason, number) in [
            ("rate_limited", rate_limited),
            ("at_capacity", at_capacity),
            ("draining", draining),
            ("handshake_failed", handshake_failed),
            ("evicted", evicted),
            ("peer_limit", peer_limit),
        ] {
            counter!("stagger_ws_rejected_total", "target" => target(), "reason" => reason).absolute(number);
        }
        for (&code, &number) in &self.closed {
            counter!("stagger_ws_closed_total", "target" => target(), "code" => code).absolute(number);
        }
        for (result, number) in [("in_time", self.drained_in_time), ("timed_out", self.drained_timed_out)] {
            counter!("stagger_ws_drained_total", "target" => target(), "result" => result).absolute(number);
        }
        counter!("stagger_ws_reaped_total", "target" => target()).absolute(self.reaped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_label_of_the_contract() {
        for (code, label) in [
            (Some(1000), "1000"),
            (None, "1006"),
            (Some(1006), "1006"),
            (Some(1012), "1012"),
            (Some(3999), "3xxx"),
            (Some(4000), "4xxx"),
            (Some(4999), "4xxx"),
            (Some(5000), "other"),
            (Some(1004), "other"),
            (Some(0), "other"),
            (Some(u16::MAX), "other"),
        ] {
            assert_eq!(LABELS[index(code)], label, "{code:?}");
        }
        let labels = std::collections::BTreeSet::from(LABELS);
        assert_eq!(labels.len(), LABELS.len());
        let contract = include_str!("contract.md");
        assert!(labels.iter().all(|label| contract.contains(&format!("`{label}`"))));
    }
}
