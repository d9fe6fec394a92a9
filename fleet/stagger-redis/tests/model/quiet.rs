//! The store's side of a quiet period in Rust, for tests in virtual time. A test compares it with the script.

use std::collections::BTreeMap;

use crate::guards::pause::{Calls, PauseClaim, PauseReply};
use stagger_lease::claim::Timing;

pub(super) const VOTED: i64 = 10_000_000;
const PROBED: i64 = 30_000_000;

/// The processes of a namespace that report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Processes(BTreeMap<u64, i64>);

/// The store's side of one quiet period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct StoredPause {
    state: Option<State>,
    votes: BTreeMap<u64, i64>,
    asked: BTreeMap<u64, i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    ends: i64,
    probe: Option<u64>,
    probe_ends: i64,
}

/// Faults for the scenarios to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// None.
    #[default]
    None,
    /// Every process sends a probe of its own.
    EveryoneProbes,
    /// A process that has the probe keeps it, whatever becomes of it.
    KeepsProbe,
    /// One process that has decided to wait is enough.
    NoQuorum,
}

/// Returns how many processes must say the same before it holds for all.
pub(super) fn quorum(processes: u64) -> u64 {
    processes.div_ceil(10).max(2)
}

impl Processes {
    /// Counts a process, or removes it, and returns how many there are.
    pub(crate) fn count(&mut self, id: u64, is_leaving: bool, timing: &Timing, now: i64) -> u64 {
        let last_end = now + timing.lease as i64 * 5 / 4;
        self.0.retain(|_, end| *end > now && *end <= last_end);
        if is_leaving {
            self.0.remove(&id);
        } else {
            self.0.insert(id, last_end);
        }
        self.0.len() as u64
    }
}

impl StoredPause {
    /// Handles a report on this quiet period.
    pub(crate) fn report(
        &mut self,
        id: u64,
        claim: &PauseClaim,
        (processes, is_leaving): (u64, bool),
        timing: &Timing,
        now: i64,
        fault: Fault,
    ) -> PauseReply {
        let longest = claim.longest as i64;
        let State { mut ends, mut probe, mut probe_ends } =
            self.state.unwrap_or(State { ends: 0, probe: None, probe_ends: 0 });
        ends = ends.min(now + longest);
        probe_ends = probe_ends.min(now + longest + PROBED);
        let (mut told, decided) = (claim.told as i64, claim.decided as i64);
        if probe == Some(id) {
            told = told.max(decided);
        }
        if decided > 0 {
            self.votes.retain(|_, at| *at > now - VOTED && *at <= now);
            self.asked.retain(|id, _| self.votes.contains_key(id));
            self.votes.insert(id, now);
            self.asked.insert(id, now + decided.min(longest));
            let needed = if fault == Fault::NoQuorum { 1 } else { quorum(processes) };
            if self.votes.len() as u64 >= needed {
                told = told.max(self.asked.values().max().map_or(0, |until| until - now));
            }
        }
        told = told.min(longest);
        if told > 0 && now + told > ends {
            (ends, probe) = (now + told, None);
        }
        if ends == 0 {
            return PauseReply { left: 0, wait: 0 };
        }
        let (left, near) = ((ends - now).max(0), timing.period as i64 * 3 / 2);
        let is_idle = claim.calls == Calls::Held && !claim.is_wanted;
        if probe == Some(id) && (is_leaving || is_idle)
            || probe.is_some() && now >= probe_ends && fault != Fault::KeepsProbe
        {
            probe = None;
        }
        if probe.is_none() && claim.is_wanted && left <= near && !is_leaving {
            (probe, probe_ends) = (Some(id), now.max(ends) + PROBED);
        }
        let is_answered = probe == Some(id) && claim.calls == Calls::Starting;
        if left == 0 && (is_answered || probe.is_none() && now >= ends + near) {
            self.state = None;
            return PauseReply { left: 0, wait: 0 };
        }
        self.state = Some(State { ends, probe, probe_ends });
        let is_probe = probe == Some(id) || fault == Fault::EveryoneProbes;
        let wait = if is_probe { left } else { left.max(near) };
        PauseReply { left: left as u64, wait: wait as u64 }
    }
}
