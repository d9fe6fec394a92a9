//! Fleets in virtual time: the guard and the protocol of each process, the model of the store, and a server.

use core::time::Duration;
use std::sync::Arc;

use stagger::guard::{Answer, Ask, End, Guard, Permit, QuietPeriod};
use stagger::{Instant, Outcome, ServerHint};

use super::quiet::{Fault, Processes, StoredPause};
use crate::guards::quiet::QuietTarget;
use crate::guards::quiet::{Quorum, SharedQuietPeriod, SharedQuietPeriodBuilder};
use crate::registry::{FleetHandle, Registry};
use stagger_lease::claim::Timing;

const PROCESSES: usize = 8;
/// Each process begins a call in so many milliseconds: 100 calls per second in all.
const EVERY: u64 = 80;
const ATTEMPTS: u32 = 4;
const LATENCY: u64 = 5;

/// A fleet whose clock is that of tokio, in milliseconds.
struct Fleet {
    members: Vec<Member>,
    stored: StoredPause,
    processes: Processes,
    fault: Fault,
    has_store: bool,
    now: u64,
    /// When each request arrived, from which process, and whether it was refused.
    log: Vec<(u64, usize, bool)>,
    failed: usize,
}

struct Member {
    registry: Arc<Registry>,
    guard: SharedQuietPeriod,
    target: Arc<QuietTarget>,
    reports_at: u64,
    is_dead: bool,
    makes_calls: bool,
    waiting: Vec<Waiting>,
    in_flight: Vec<(u64, Permit, Outcome, u32)>,
}

struct Waiting {
    due: u64,
    permit: Permit,
    attempts: u32,
}

impl Fleet {
    fn new(quorum: Quorum, fault: Fault) -> Self {
        let member = |index| {
            let alive = Arc::new(FleetHandle(Arc::new(Registry::new(PROCESSES as u64))));
            let builder = SharedQuietPeriodBuilder::new(&alive, "ns", "t").hints(quorum);
            let guard = builder.local(QuietPeriod::new()).build().unwrap();
            let [target] = &alive.0.used::<QuietTarget>()[..] else { panic!("one guard") };
            Member {
                registry: Arc::clone(&alive.0),
                guard,
                target: Arc::clone(target),
                reports_at: 131 * index,
                is_dead: false,
                makes_calls: true,
                waiting: Vec::new(),
                in_flight: Vec::new(),
            }
        };
        Self {
            members: (0..PROCESSES as u64).map(member).collect(),
            stored: StoredPause::default(),
            processes: Processes::default(),
            fault,
            has_store: true,
            now: 0,
            log: Vec::new(),
            failed: 0,
        }
    }

    /// Runs until then. `answer` is what the server answers to a request of this process at this time.
    async fn run_until(&mut self, until: u64, mut answer: impl FnMut(u64, usize) -> Outcome) {
        while self.now < until {
            for index in 0..PROCESSES {
                self.act(index, &mut answer);
            }
            tokio::time::advance(Duration::from_millis(1)).await;
            self.now += 1;
        }
    }

    fn act(&mut self, index: usize, answer: &mut impl FnMut(u64, usize) -> Outcome) {
        let at = self.now;
        let member = &mut self.members[index];
        if member.is_dead {
            return;
        }
        // Every process has a clock of its own.
        let now = Instant::from_nanos((at + 1_000_000 * (index as u64 + 1)) * 1_000_000);
        for (_, permit, outcome, attempts) in member.in_flight.extract_if(.., |call| call.0 <= at) {
            member.guard.settle(permit, End::Made(&outcome), &now);
            match outcome {
                Outcome::Failed { .. } if attempts == ATTEMPTS => self.failed += 1,
                Outcome::Failed { hint, .. } => {
                    let Some(ServerHint::AtLeast(after)) = hint else { continue };
                    let due = at + after.as_millis() as u64;
                    member.waiting.push(Waiting { due, permit: Permit::NONE, attempts });
                }
                _ => {}
            }
        }
        if member.makes_calls && at % EVERY == index as u64 * 10 {
            member.waiting.push(Waiting { due: at, permit: Permit::NONE, attempts: 0 });
        }
        for call in core::mem::take(&mut member.waiting) {
            if call.due > at {
                member.waiting.push(call);
                continue;
            }
            match member.guard.ask(Ask::FIRST, call.permit, &now) {
                Answer::Go(permit) => {
                    let outcome = answer(at, index);
                    self.log.push((at, index, outcome != Outcome::Success));
                    member.in_flight.push((at + LATENCY, permit, outcome, call.attempts + 1));
                }
                Answer::Wait { after, permit } => {
                    let due = at + after.as_micros().div_ceil(1_000).max(1) as u64;
                    member.waiting.push(Waiting { due, permit, attempts: call.attempts });
                }
                Answer::No { .. } => self.failed += 1,
            }
        }
        if self.has_store && (at >= member.reports_at || member.target.pause.has_news()) {
            let here = member.registry.now();
            let (claim, timing) = (member.target.claim(here), Timing::DEFAULT);
            // The store has a clock of its own, too.
            let store = here as i64 + 77_000_000;
            let count = self.processes.count(index as u64, false, &timing, store);
            let reply = self.stored.report(index as u64, &claim, (count, false), &timing, store, self.fault);
            let _ = member.target.pause.on_reply(reply, member.target.longest, timing.period, here);
            member.reports_at = at + 900 + (at * 7 + index as u64 * 31) % 200;
        }
    }

    /// Returns how many requests arrived in a span of time.
    fn arrived(&self, from: u64, until: u64) -> usize {
        self.log.iter().filter(|(at, ..)| (from..until).contains(at)).count()
    }

    fn refused(&self, from: u64) -> usize {
        self.log.iter().filter(|(at, _, is_refused)| *at >= from && *is_refused).count()
    }

    /// Returns when the first request after `from` arrived.
    fn first(&self, from: u64) -> u64 {
        self.log.iter().map(|(at, ..)| *at).find(|at| *at >= from).unwrap()
    }
}

/// A server that takes 120 requests per second, with a burst of 12, and refuses all for a time, with the rest of it as
/// a hint.
struct Limited {
    tokens: f64,
    at: u64,
    refuses: core::ops::Range<u64>,
}

impl Limited {
    const fn refusing(refuses: core::ops::Range<u64>) -> Self {
        Self { tokens: 12.0, at: 0, refuses }
    }

    fn answer(&mut self, at: u64) -> Outcome {
        self.tokens = (self.tokens + (at - self.at) as f64 * 0.12).min(12.0);
        self.at = at;
        if self.refuses.contains(&at) {
            let left = Duration::from_millis(self.refuses.end - at);
            return Outcome::throttled(Some(ServerHint::AtLeast(left)));
        }
        if self.tokens < 1.0 {
            return Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_millis(100))));
        }
        self.tokens -= 1.0;
        Outcome::Success
    }
}

/// Runs the case: the server refuses all from 20 s to 30 s, and tells the first process alone, because the others make
/// no calls for a second.
async fn q1(fault: Fault) -> Fleet {
    let (mut fleet, mut server) = (Fleet::new(Quorum::One, fault), Limited::refusing(20_000..30_000));
    fleet.run_until(19_990, |at, _| server.answer(at)).await;
    fleet.members[1..].iter_mut().for_each(|member| member.makes_calls = false);
    fleet.run_until(21_120, |at, _| server.answer(at)).await;
    fleet.members.iter_mut().for_each(|member| member.makes_calls = true);
    fleet.run_until(60_000, |at, _| server.answer(at)).await;
    fleet
}

#[tokio::test(start_paused = true)]
async fn q1_what_one_process_is_told_holds_all_and_one_probe_ends_it() {
    let fleet = q1(Fault::None).await;
    let told = fleet.log.iter().find(|(_, _, is_refused)| *is_refused).unwrap().0;
    assert_eq!(fleet.arrived(told + LATENCY + 1, 30_000), 0, "in the pause");
    let probe = fleet.first(30_000);
    assert!(probe < 31_000, "{probe}");
    assert_eq!(fleet.arrived(30_000, probe + LATENCY), 1, "until the probe is answered");
    let most = (30_000..60_000).step_by(100).map(|at| fleet.arrived(at, at + 100)).max().unwrap();
    let (refused, failed) = (fleet.refused(30_000), fleet.failed);
    // Each process learns from its own refusals how fast it may return: eight are refused more often than one would be.
    assert!(most <= 18 && refused <= 120 && failed == 0, "{most} in 100 ms, {refused} refused, {failed} failed");
    // Every process is back within the second and a half that the others wait for the answer.
    for index in 0..PROCESSES {
        let back = fleet.log.iter().find(|(at, from, _)| *at >= 30_000 && *from == index).unwrap().0;
        assert!(back <= probe + 2_000, "process {index} at {back}");
    }
    assert!(fleet.members.iter().all(|member| !member.target.pause.is_known()));
}

#[tokio::test(start_paused = true)]
async fn a_probe_of_every_process_is_found() {
    let fleet = q1(Fault::EveryoneProbes).await;
    let probe = fleet.first(30_000);
    assert!(fleet.arrived(30_000, probe + LATENCY) > 1);
}

#[tokio::test(start_paused = true)]
async fn q2_the_longest_pause_wins_up_to_the_maximum() {
    let mut fleet = Fleet::new(Quorum::One, Fault::None);
    let hints = [5_u64, 10, 3];
    let mut told = 0;
    fleet.run_until(5_000, |_, _| Outcome::Success).await;
    let last = {
        let told = &mut told;
        fleet
            .run_until(7_000, move |_, _| {
                *told += 1;
                let hint = hints.get(*told - 1).map(|secs| ServerHint::AtLeast(Duration::from_secs(*secs)));
                hint.map_or(Outcome::Success, |hint| Outcome::throttled(Some(hint)))
            })
            .await;
        fleet.log.iter().filter(|(_, _, is_refused)| *is_refused).map(|(at, ..)| *at).collect::<Vec<_>>()
    };
    fleet.run_until(25_000, |_, _| Outcome::Success).await;
    // The second was told to wait for ten seconds.
    let ends = last[1] + LATENCY + 10_000;
    let (before, after) = (fleet.arrived(7_000, ends), fleet.first(7_000));
    assert_eq!((before, last.len()), (0, 3), "{last:?}");
    assert!((ends..ends + 1_000).contains(&after), "{after}, not {ends}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_probe_begins_the_pause_again_for_all() {
    let mut fleet = Fleet::new(Quorum::One, Fault::None);
    fleet.run_until(5_000, |_, _| Outcome::Success).await;
    let mut refuse = |at: u64, _| {
        let hint = ServerHint::AtLeast(Duration::from_secs(3));
        if at < 20_000 { Outcome::throttled(Some(hint)) } else { Outcome::Success }
    };
    fleet.run_until(7_500, &mut refuse).await;
    let before = fleet.log.len();
    fleet.run_until(20_000, &mut refuse).await;
    // A pause lasts three seconds, or four if the process that sends the probe had gone on waiting for it.
    let probes = fleet.log.len() - before;
    assert!((3..=5).contains(&probes), "{probes} requests in twelve seconds");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_never_answered_is_replaced_after_thirty_seconds() {
    let mut fleet = Fleet::new(Quorum::One, Fault::None);
    fleet.run_until(5_000, |_, _| Outcome::Success).await;
    let hint = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(3))));
    fleet.run_until(5_500, |_, _| hint).await;
    // The process that sends the probe dies with it.
    let told = fleet.log.len();
    while fleet.log.len() == told {
        fleet.run_until(fleet.now + 1, |_, _| Outcome::Success).await;
    }
    let (probe, dead, _) = fleet.log[told];
    fleet.members[dead].is_dead = true;
    fleet.run_until(probe + 40_000, |_, _| Outcome::Success).await;
    let next = fleet.first(probe + 1);
    assert!((29_000..32_500).contains(&(next - probe)), "{} ms", next - probe);
    assert_eq!(fleet.arrived(probe + 1, next + LATENCY), 1, "one again");
}

#[tokio::test(start_paused = true)]
async fn one_bad_view_holds_one_process_and_those_of_two_hold_all() {
    for (quorum, fault, bad, is_held) in [
        (Quorum::Several, Fault::None, 1, false),
        (Quorum::Several, Fault::None, 2, true),
        (Quorum::Several, Fault::NoQuorum, 1, true),
        (Quorum::One, Fault::None, 1, true),
    ] {
        let mut fleet = Fleet::new(quorum, fault);
        let hint = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(10))));
        fleet.run_until(5_000, |_, _| Outcome::Success).await;
        fleet.run_until(7_000, |_, index| if index < bad { hint } else { Outcome::Success }).await;
        let before = fleet.log.len();
        fleet.run_until(14_000, |_, _| Outcome::Success).await;
        let others = fleet.log[before..].iter().filter(|(_, index, _)| *index >= bad).count();
        let bad_ones = fleet.log.len() - before - others;
        assert_eq!((bad_ones, others == 0), (0, is_held), "{quorum:?} {fault:?}, {bad}: {others} of the others");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_nobody_waits_for_is_forgotten() {
    let mut fleet = Fleet::new(Quorum::One, Fault::None);
    fleet.run_until(5_000, |_, _| Outcome::Success).await;
    let hint = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(3))));
    fleet.run_until(5_100, |_, _| hint).await;
    fleet.members.iter_mut().for_each(|member| {
        member.makes_calls = false;
        for call in member.waiting.drain(..) {
            member.guard.settle(call.permit, End::NeverMade, &Instant::ZERO);
        }
    });
    fleet.run_until(20_000, |_, _| Outcome::Success).await;
    let before = fleet.log.len();
    fleet.members[3].makes_calls = true;
    fleet.run_until(20_200, |_, _| Outcome::Success).await;
    assert!(fleet.log.len() > before, "the first call does not wait");
}

#[tokio::test(start_paused = true)]
async fn without_the_store_each_process_ends_its_pause_alone() {
    let mut fleet = Fleet::new(Quorum::One, Fault::None);
    fleet.run_until(5_000, |_, _| Outcome::Success).await;
    let hint = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(10))));
    fleet.run_until(7_000, |_, index| if index == 0 { hint } else { Outcome::Success }).await;
    fleet.has_store = false;
    for (index, member) in fleet.members.iter().enumerate() {
        member.target.pause.on_loss(100_000 * index as u64, member.registry.now());
    }
    let before = fleet.log.len();
    fleet.run_until(25_000, |_, _| Outcome::Success).await;
    let told = 5_000 + LATENCY;
    assert_eq!(fleet.arrived(7_000, told + 9_990), 0);
    let firsts: Vec<_> =
        (0..PROCESSES).map(|index| fleet.log[before..].iter().find(|(_, from, _)| *from == index).unwrap().0).collect();
    assert!(firsts.iter().all(|at| *at < told + 12_000), "{firsts:?}");
    assert!(firsts.iter().max().unwrap() - firsts.iter().min().unwrap() >= 600, "{firsts:?}");
}
