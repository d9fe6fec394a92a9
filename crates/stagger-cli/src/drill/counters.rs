use std::fs;

/// What the kernel has counted since it started, of this network namespace. What it does not say is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpCounters {
    pub(super) listen_overflows: Option<u64>,
    pub(super) listen_drops: Option<u64>,
    pub(super) syn_retransmits: Option<u64>,
    pub(super) segments_retransmitted: Option<u64>,
}

/// The time of all processors together, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTicks {
    busy: u64,
    all: u64,
}

impl TcpCounters {
    /// As they stand now; of systems other than Linux nothing.
    pub(super) fn read() -> Self {
        let file = |name: &str| fs::read_to_string(name).unwrap_or_default();
        Self::of(&file("/proc/net/netstat"), &file("/proc/net/snmp"))
    }

    fn of(netstat: &str, snmp: &str) -> Self {
        Self {
            listen_overflows: named(netstat, "TcpExt:", "ListenOverflows"),
            listen_drops: named(netstat, "TcpExt:", "ListenDrops"),
            syn_retransmits: named(netstat, "TcpExt:", "TCPSynRetrans"),
            segments_retransmitted: named(snmp, "Tcp:", "RetransSegs"),
        }
    }

    /// What was counted since then.
    pub(super) fn since(&self, before: &Self) -> Self {
        let more = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            listen_overflows: more(self.listen_overflows, before.listen_overflows),
            listen_drops: more(self.listen_drops, before.listen_drops),
            syn_retransmits: more(self.syn_retransmits, before.syn_retransmits),
            segments_retransmitted: more(self.segments_retransmitted, before.segments_retransmitted),
        }
    }
}

/// The files have a line of names and then a line of numbers, both behind the same word.
fn named(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split_ascii_whitespace().position(|known| known == name)?;
    numbers.split_ascii_whitespace().nth(at)?.parse().ok()
}

impl CpuTicks {
    /// As they stand now; `None` on systems other than Linux.
    pub(super) fn read() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn of(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted among the users.
        let ticks: Vec<u64> = line.split_ascii_whitespace().take(8).map_while(|tick| tick.parse().ok()).collect();
        let all: u64 = ticks.iter().sum();
        Some(Self { busy: all - ticks.get(3)? - ticks.get(4)?, all })
    }

    /// The share of the time since then for which they were busy.
    pub(super) fn busy_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.busy.saturating_sub(before.busy) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPSynRetrans\nTcpExt: 0 3 4 70000\n\
                           IpExt: InNoRoutes ListenDrops\nIpExt: 9 9\n";
    const SNMP: &str = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm RetransSegs\nTcp: 1 12\n";

    #[test]
    fn counters_are_found_by_their_names_and_their_group() {
        let counters = TcpCounters::of(NETSTAT, SNMP);
        assert_eq!((counters.listen_overflows, counters.listen_drops), (Some(3), Some(4)));
        assert_eq!((counters.syn_retransmits, counters.segments_retransmitted), (Some(70_000), Some(12)));
        assert_eq!(TcpCounters::of("", "Tcp: RetransSegs\n"), TcpCounters::default());
        let later = TcpCounters { listen_drops: Some(9), ..counters };
        assert_eq!(later.since(&counters).listen_drops, Some(5));
        assert_eq!(later.since(&TcpCounters::default()).listen_drops, None);
    }

    #[test]
    fn waiting_for_a_disk_is_not_being_busy() {
        let before = CpuTicks::of("cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 1 2 3\n").unwrap();
        let after = CpuTicks::of("cpu  40 0 10 150 10 5 5 0 7 7\ncpu0 1 2 3\n").unwrap();
        assert!((after.busy_since(&before) - 0.4).abs() < 1e-9, "{after:?}");
        assert_eq!(CpuTicks::of("intr 1"), None);
    }
}
