//! The state of a server that crashes again under the clients that return.

use super::scenario::{CrashLoop, ReconnectScenario};

/// Number of bins of 100 ms in a second.
const BINS: usize = 10;
/// In microseconds.
const BIN: u64 = 100_000;

/// The crashes of a server during a run, and the clients as the last crash left them. Times are in microseconds.
///
/// A run with crashes consists of several runs of the engine. A crash ends the first: every pending event is put aside
/// when its turn comes, and is the first event of its client in the next run. So no event of a client that is connected
/// is needed before the crash, whose time is not known in advance.
///
/// ```text
/// run of the engine ──► a crash ──► the other events are put aside ──► restart ──► run of the engine ──► … ──► figures
///   Arrives ─ on its way at the crash ────────────────────────────────────────────► arrives at its time
///   Open ──── handshake pending at the crash ─────────────────────────────────────► the attempt has failed
///         └── connected ──────────────────────────────────────────────────────────► loses its connection
/// ```
#[derive(Debug)]
pub(super) struct Crashes<C> {
    settings: CrashLoop,
    down_for: u64,
    pub(super) count: u32,
    /// When the server is up again.
    pub(super) up_at: u64,
    /// When the server crashed last.
    pub(super) crashed_at: Option<u64>,
    /// Whether it has crashed in this run of the engine, which puts all further events aside.
    pub(super) is_ending: bool,
    pub(super) clients: Vec<ClientBetweenRuns<C>>,
    /// Attempts of the last second, by bins, and the number of the last bin.
    window: [u32; BINS],
    bin: u64,
}

/// A client between two runs of the engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientBetweenRuns<C> {
    pub(super) client: C,
    pub(super) next: PendingEvent,
    /// Number of attempts in earlier episodes.
    pub(super) earlier_attempts: u32,
    /// The wait before the last attempt.
    pub(super) last_wait: u64,
}

/// What happens to a client next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingEvent {
    /// Nothing: it gave up, or would continue after the horizon.
    Nothing,
    /// An attempt is on its way to the server.
    Arrives(u64),
    /// Its attempt was accepted: the handshake was complete at `done`, and the client hears of it at `heard`.
    Open { done: u64, heard: u64 },
}

impl PendingEvent {
    /// Returns the arrival of an attempt at this time, if there is one.
    pub(super) const fn arrival(at: Option<u64>) -> Self {
        match at {
            Some(at) => Self::Arrives(at),
            None => Self::Nothing,
        }
    }
}

impl<C: Copy> Crashes<C> {
    /// Returns the state at the start of a scenario; `None` if its server does not crash.
    pub(super) fn new(scenario: &ReconnectScenario, client: C) -> Option<Self> {
        let settings = scenario.crash_loop?;
        let fresh = ClientBetweenRuns { client, next: PendingEvent::Nothing, earlier_attempts: 0, last_wait: 0 };
        Some(Self {
            settings,
            down_for: scenario.up_at,
            count: 0,
            up_at: scenario.up_at,
            crashed_at: None,
            is_ending: false,
            clients: vec![fresh; scenario.clients as usize],
            window: [0; BINS],
            bin: 0,
        })
    }

    /// Counts an attempt that arrives while the server is up. Returns whether the server crashes under it.
    pub(super) fn crashes_under(&mut self, at: u64) -> bool {
        let bin = at / BIN;
        // Whatever is older than a second is forgotten.
        for gone in (self.bin + 1)..=bin.min(self.bin + BINS as u64) {
            self.window[(gone % BINS as u64) as usize] = 0;
        }
        self.bin = self.bin.max(bin);
        self.window[(bin % BINS as u64) as usize] += 1;
        let sum: u64 = self.window.iter().map(|&count| u64::from(count)).sum();
        if self.count >= self.settings.most || sum as f64 <= self.settings.above {
            return false;
        }
        self.count += 1;
        self.window = [0; BINS];
        self.crashed_at = Some(at);
        self.is_ending = true;
        self.up_at = at.saturating_add(self.down_for);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of the attempts under which the server crashes.
    fn crashes(most: u32, above: f64, times_ms: &[u64]) -> Vec<usize> {
        let scenario = ReconnectScenario::builder(1).crash_loop(most, above).build().unwrap();
        let mut crashes = Crashes::new(&scenario, ()).unwrap();
        (1..).zip(times_ms).filter(|(_, ms)| crashes.crashes_under(*ms * 1_000)).map(|(nth, _)| nth).collect()
    }

    #[test]
    fn the_server_crashes_under_the_attempt_that_is_too_many_for_a_second() {
        assert_eq!(crashes(9, 3.0, &[0, 100, 200, 300]), [4]);
        assert_eq!(crashes(9, 3.0, &[0, 400, 800, 1_000, 1_200]), [5], "the first has left the window");
        assert_eq!(crashes(9, 3.0, &[0, 1, 2, 5_000, 5_001, 5_002]), [0; 0]);
    }

    #[test]
    fn the_count_begins_again_after_a_crash_and_crashes_are_limited() {
        assert_eq!(crashes(9, 2.0, &[0; 7]), [3, 6]);
        assert_eq!(crashes(1, 2.0, &[0; 7]), [3]);
        assert!(ReconnectScenario::builder(1).crash_loop(0, 2.0).build().unwrap().crash_loop.is_none());
    }
}
