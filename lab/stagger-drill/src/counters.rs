use std::fs;

/// TCP counters of the kernel for this network namespace, since boot: listen overflows, listen drops, SYN retransmits and
/// retransmitted segments. `None` if the kernel does not provide the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpCounters(pub(super) [Option<u64>; 4]);

/// CPU time of all processors together, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTicks {
    busy: u64,
    all: u64,
    processors: u64,
}

/// CPU time of a process, in clock ticks, at the same time as that of all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessTicks {
    busy: u64,
    machine: CpuTicks,
}

impl ProcessTicks {
    /// Reads the current values of a process; `None` on systems other than Linux.
    pub(super) fn read(process: u32, machine: Option<CpuTicks>) -> Option<Self> {
        let busy = Self::of(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
        Some(Self { busy, machine: machine? })
    }

    /// Returns the user and system time of a line of `/proc/PID/stat`, whose second field may contain spaces.
    fn of(stat: &str) -> Option<u64> {
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    }

    /// Returns the number of processors that the process kept busy in the busiest `window` of samples, or over all samples if
    /// there are fewer.
    pub(super) fn busiest(samples: &[Self], window: usize) -> Option<f64> {
        let last = window.min(samples.len().checked_sub(1)?);
        let busy = |samples: &[Self]| {
            let (first, last) = (samples[0], samples[last]);
            let ticks = last.machine.all.saturating_sub(first.machine.all).max(1) as f64;
            last.busy.saturating_sub(first.busy) as f64 / ticks * last.machine.processors as f64
        };
        samples.windows(last + 1).map(busy).filter(|_| last > 0).reduce(f64::max)
    }
}

impl TcpCounters {
    /// Reads the current values. Every counter is `None` on systems other than Linux.
    pub(super) fn read() -> Self {
        let file = |name: &str| fs::read_to_string(name).unwrap_or_default();
        Self::of(&file("/proc/net/netstat"), &file("/proc/net/snmp"))
    }

    fn of(netstat: &str, snmp: &str) -> Self {
        let listen = |name| named(netstat, "TcpExt:", name);
        Self([
            listen("ListenOverflows"),
            listen("ListenDrops"),
            listen("TCPSynRetrans"),
            named(snmp, "Tcp:", "RetransSegs"),
        ])
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self(core::array::from_fn(|i| Some(self.0[i]?.saturating_sub(before.0[i]?))))
    }
}

/// Returns a counter by name. The files have a line of names followed by a line of numbers, both with the same prefix.
fn named(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split_ascii_whitespace().position(|known| known == name)?;
    numbers.split_ascii_whitespace().nth(at)?.parse().ok()
}

impl CpuTicks {
    /// Reads the current values; `None` on systems other than Linux.
    pub(super) fn read() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn of(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user, nice, system, idle, iowait, irq, softirq, steal; guest time is included in user time.
        let ticks: Vec<u64> = line.split_ascii_whitespace().take(8).map_while(|tick| tick.parse().ok()).collect();
        let all: u64 = ticks.iter().sum();
        let is_processor =
            |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let processors = stat.lines().filter(is_processor).count() as u64;
        Some(Self { busy: all - ticks.get(3)? - ticks.get(4)?, all, processors })
    }

    /// Returns the share of busy time in the busiest `window` of samples, or over all samples if there are fewer.
    pub(super) fn busiest(samples: &[Self], window: usize) -> Option<f64> {
        let last = window.min(samples.len().checked_sub(1)?);
        let shares = samples.windows(last + 1).map(|samples| samples[last].busy_since(&samples[0]));
        shares.filter(|_| last > 0).reduce(f64::max)
    }

    /// Returns the share of the time since `before` in which the processors were busy.
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
    fn counters_are_found_by_group_and_name() {
        let counters = TcpCounters::of(NETSTAT, SNMP);
        assert_eq!(counters, TcpCounters([Some(3), Some(4), Some(70_000), Some(12)]));
        assert_eq!(TcpCounters::of("", "Tcp: RetransSegs\n"), TcpCounters::default());
        let later = TcpCounters([Some(3), Some(9), Some(70_000), None]);
        assert_eq!(later.since(&counters), TcpCounters([Some(0), Some(5), Some(0), None]));
        assert_eq!(later.since(&TcpCounters::default()), TcpCounters::default());
    }

    #[test]
    fn the_busiest_window_counts() {
        let samples = [(0, 0), (1, 10), (9, 20), (10, 30)].map(|(busy, all)| CpuTicks { busy, all, processors: 2 });
        assert_eq!(CpuTicks::busiest(&samples, 1), Some(0.8));
        assert_eq!(CpuTicks::busiest(&samples[..2], 10), Some(0.1));
        assert_eq!([&samples[..1], &[]].map(|few| CpuTicks::busiest(few, 10)), [None, None]);
    }

    #[test]
    fn the_processors_that_a_process_keeps_busy_are_counted_in_its_busiest_window() {
        let stat = "17 (a b) c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0 3 0 99 0 0";
        assert_eq!(ProcessTicks::of(stat), Some(42));
        assert_eq!(ProcessTicks::of("17 (a b"), None);
        let samples = [(0, 0), (1, 20), (11, 40), (12, 60)]
            .map(|(busy, all)| ProcessTicks { busy, machine: CpuTicks { busy: 0, all, processors: 2 } });
        // Ten ticks of twenty, on two processors.
        assert_eq!(ProcessTicks::busiest(&samples, 1), Some(1.0));
        assert_eq!(ProcessTicks::busiest(&samples, 9), Some(0.4));
        assert_eq!(ProcessTicks::busiest(&samples[..1], 9), None);
    }

    #[test]
    fn iowait_does_not_count_as_busy() {
        let before = CpuTicks::of("cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 1 2 3\n").unwrap();
        let after = CpuTicks::of("cpu  40 0 10 150 10 5 5 0 7 7\ncpu0 1 2 3\n").unwrap();
        assert!((after.busy_since(&before) - 0.4).abs() < 1e-9, "{after:?}");
        assert_eq!(CpuTicks::of("intr 1"), None);
    }
}
