//! What the machine did during a run, and why it rather than the policy may have shaped the result.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::fs;
use std::sync::Arc;

use stagger_sim::storm::Measurements;
use stagger_terminal::plan::brief;
use tokio::time::{Instant, sleep_until};

/// Interval at which a drill samples the machine and its clients.
pub(super) const TICK: Duration = Duration::from_millis(100);
pub(super) const TICKS_PER_SECOND: usize = 10;

/// How late the timers of this process fire. On an overloaded machine, clients reconnect later than their policy says.
#[derive(Debug, Default)]
pub(super) struct TimerLag {
    micros: AtomicU64,
}

/// Time between two timers that are watched.
const INTERVAL: Duration = Duration::from_millis(10);

impl TimerLag {
    /// Sets timers and records their delays, without end.
    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            let due = Instant::now() + INTERVAL;
            sleep_until(due).await;
            let late = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.micros.fetch_max(late, Ordering::Relaxed);
        }
    }

    /// Returns the maximum delay since the previous call.
    pub(super) fn take(&self) -> Duration {
        Duration::from_micros(self.micros.swap(0, Ordering::Relaxed))
    }
}

/// TCP counters of the kernel for this network namespace, since boot: listen overflows, listen drops, SYN retransmits
/// and retransmitted segments. `None` if the kernel does not provide the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpCounters(pub(super) [Option<u64>; 4]);

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

    /// Returns the difference to earlier values.
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

/// CPU time of all processors together, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTicks {
    busy: u64,
    all: u64,
    processors: u64,
}

impl CpuTicks {
    /// Reads the current values; `None` on systems other than Linux.
    pub(super) fn read() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn of(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user, nice, system, idle, iowait, irq, softirq, steal; guest time is included in user time.
        // Waiting for I/O is idle time: another task could have run.
        let ticks: Vec<u64> = line.split_ascii_whitespace().take(8).map_while(|tick| tick.parse().ok()).collect();
        let all: u64 = ticks.iter().sum();
        // A line for each processor, such as `cpu0 …`, follows that of all.
        let numbered = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
        let processors = numbered.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).count() as u64;
        Some(Self { busy: all - ticks.get(3)? - ticks.get(4)?, all, processors })
    }

    /// Returns the share of busy time in the busiest `window` of samples, or over all samples if there are fewer.
    pub(super) fn busiest(samples: &[Self], window: usize) -> Option<f64> {
        let last = window.min(samples.len().checked_sub(1)?);
        if last == 0 {
            return None;
        }
        samples.windows(last + 1).map(|samples| samples[last].busy_since(&samples[0])).reduce(f64::max)
    }

    /// Returns the share of the time since `before` in which the processors were busy.
    fn busy_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.busy.saturating_sub(before.busy) as f64 / all as f64
    }
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

    /// Returns the number of processors that the process kept busy in the busiest `window` of samples, or over all
    /// samples if there are fewer.
    pub(super) fn busiest(samples: &[Self], window: usize) -> Option<f64> {
        let last = window.min(samples.len().checked_sub(1)?);
        let busy = |samples: &[Self]| {
            let (first, last) = (samples[0], samples[last]);
            let ticks = last.machine.all.saturating_sub(first.machine.all).max(1) as f64;
            last.busy.saturating_sub(first.busy) as f64 / ticks * last.machine.processors as f64
        };
        if last == 0 {
            return None;
        }
        samples.windows(last + 1).map(busy).reduce(f64::max)
    }
}

/// Maximum delay of a timer that does not distort the curves: the width of one bin.
pub(super) const LATE_S: f64 = 0.1;

/// Maximum time until all clients notice a lost connection, on a machine that is not overloaded.
const LOST_S: f64 = 0.5;

/// Share of a second beyond which processors count as saturated.
pub(super) const SATURATED: f64 = 0.97;

/// Returns the reasons why the machine, rather than the policy, may have shaped the curve. A timer distorts it if it is
/// later than `late_s` seconds; `remedy` lowers the load.
pub(super) fn warnings(measured: &Measurements, late_s: f64, remedy: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    // `None` is less than any count.
    if let Some(count @ 1..) = measured.listen_overflows.max(measured.listen_drops) {
        warnings.push(format!(
            "the kernel dropped {count} connections from the listen queue and retried them on its own schedule (raise \
             net.core.somaxconn or {remedy})"
        ));
    }
    if let Some(count @ 1..) = measured.syn_retransmits {
        warnings.push(format!("the kernel retransmitted {count} SYN packets, seconds later and without jitter"));
    }
    if measured.disconnect_window_s > LOST_S {
        let took = brief(Duration::from_secs_f64(measured.disconnect_window_s));
        warnings.push(format!("it took {took} until all clients had noticed the loss of their connections ({remedy})"));
    }
    if measured.max_timer_delay_s > late_s {
        let late = brief(Duration::from_secs_f64(measured.max_timer_delay_s));
        warnings.push(format!("client timers fired up to {late} late ({remedy})"));
    }
    warnings
}

/// Returns a reason for doubt if all processors were busy. Other programs may have kept them busy without any effect on
/// the run.
pub(super) fn saturation(peak_cpu_ratio: Option<f64>, remedy: &str) -> Option<String> {
    let share = peak_cpu_ratio?;
    if share <= SATURATED {
        return None;
    }
    let percent = share * 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok();
    // It may have that priority already.
    let priority = match stat.as_deref().and_then(is_real_time) {
        Some(false) => ", or run the drill with priority over them: `chrt -r 10 stagger drill`",
        Some(true) | None => "",
    };
    Some(format!("CPU usage reached {percent:.0}% in one second ({remedy}, end other programs{priority})"))
}

/// Returns whether a process with this `stat` is scheduled before all others of the usual kind (SCHED_FIFO, SCHED_RR).
fn is_real_time(stat: &str) -> Option<bool> {
    // The name, in parentheses, may have any characters. After it, the scheduling policy is the 39th field.
    let (_, fields) = stat.rsplit_once(')')?;
    let policy: u32 = fields.split_whitespace().nth(38)?.parse().ok()?;
    Some(matches!(policy, 1 | 2))
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
    fn the_scheduling_policy_of_a_process_is_found_behind_its_name() {
        let stat = |policy| format!("17 (a b) c) S {} {policy} 0 0 0", "1 ".repeat(37).trim_end());
        assert_eq!(
            ["0", "1", "2", "6"].map(|policy| is_real_time(&stat(policy))),
            [false, true, true, false].map(Some)
        );
        assert_eq!(["", "17 (a) S 1 2", "17"].map(is_real_time), [None; 3]);
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

    #[test]
    fn each_sign_of_an_overloaded_machine_gives_one_warning() {
        let calm = || {
            let mut measured = Measurements::default();
            (measured.listen_drops, measured.syn_retransmits) = (Some(0), Some(0));
            (measured.max_timer_delay_s, measured.peak_cpu_ratio) = (0.09, Some(0.9));
            measured.disconnect_window_s = 0.4;
            measured
        };
        let warnings = |measured: &Measurements| warnings(measured, LATE_S, "lower --clients");
        assert_eq!(warnings(&calm()), [""; 0]);
        assert_eq!([None, Some(0.97)].map(|share| saturation(share, "lower --clients")), [None, None]);
        let doubt = saturation(Some(0.99), "lower --clients");
        assert!(doubt.is_some_and(|doubt| doubt.contains("99% in one second (lower --clients")));
        // Systems other than Linux have no counters.
        assert_eq!(warnings(&Measurements::default()), [""; 0]);
        let signs: [(fn(&mut Measurements), &str); 5] = [
            (|measured| measured.disconnect_window_s = 0.75, "took 750ms"),
            (|measured| measured.listen_overflows = Some(7), "dropped 7"),
            (|measured| measured.listen_drops = Some(8), "dropped 8"),
            (|measured| measured.syn_retransmits = Some(9), "retransmitted 9"),
            (|measured| measured.max_timer_delay_s = 0.15, "up to 150ms late"),
        ];
        for (sign, message) in signs {
            let mut measured = calm();
            sign(&mut measured);
            let warnings = warnings(&measured);
            assert!(warnings.len() == 1 && warnings[0].contains(message), "{message}: {warnings:?}");
        }
    }
}
