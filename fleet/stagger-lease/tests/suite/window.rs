//! Processes that share a window, in virtual time: the protocol of each, and the model of the store.

use std::collections::VecDeque;

use stagger_core::Seed;

use stagger_lease::claim::{SECOND, Timing};
use stagger_lease::ledger::Ledger;
use stagger_lease::process::Process;
use stagger_lease::window::account::WindowAccount;
use stagger_lease::window::claim::{WindowLease, WindowLimits};
use stagger_lease::window::pool::Pool;

const LIMITS: WindowLimits = WindowLimits { ttl: 10 * SECOND, ratio: 200_000, min_per_second: 10 };
const TIMING: Timing = Timing::DEFAULT;
/// The step of virtual time.
const STEP: u64 = 5_000;
/// What the protocol calls p: a report and its jitter, and its way.
const P: u64 = TIMING.period * 5 / 4;

struct Member {
    ledger: Ledger,
    account: WindowAccount,
    process: Process,
    /// The reply that is on its way: when it arrives, and when its report was sent.
    reply: Option<(u64, u64, Reply)>,
    /// Calls per second, and whether they fail.
    calls: u64,
    fails: bool,
    made: u64,
    is_stopped: bool,
    is_cut: bool,
}

#[derive(Clone, Copy)]
enum Reply {
    Lost,
    Again,
    Lease(u64, Option<WindowLease>),
}

/// A fleet. Times are microseconds.
struct Fleet {
    members: Vec<Member>,
    pool: Pool,
    now: u64,
    /// What the store's clock is ahead.
    ahead: i64,
    is_up: bool,
    seed: Seed,
    draws: u64,
    /// Of so many reports, and of so many replies, one is lost.
    lost: u64,
    audit: Audit,
}

/// The calls and retries of all processes.
#[derive(Default)]
struct Audit {
    calls: VecDeque<u64>,
    retries: VecDeque<u64>,
    all_calls: u64,
    all_retries: u64,
    /// The most retries above what the bound allows, in any interval of the length of the window.
    above: f64,
    /// The most that a process had in hand.
    held: u64,
}

impl Audit {
    fn call(&mut self, now: u64) {
        self.calls.push_back(now);
        self.all_calls += 1;
    }

    fn retry(&mut self, now: u64) {
        self.retries.push_back(now);
        self.all_retries += 1;
        while self.retries.front().is_some_and(|at| at + LIMITS.ttl <= now) {
            self.retries.pop_front();
        }
        while self.calls.front().is_some_and(|at| at + LIMITS.ttl + 2 * P <= now) {
            self.calls.pop_front();
        }
        let allowed = (self.calls.len() as u64 * LIMITS.ratio + LIMITS.minimum()) as f64 / 1e6;
        self.above = self.above.max(self.retries.len() as f64 - allowed);
    }
}

impl Fleet {
    fn new(members: u64, seed: u64) -> Self {
        let member = || Member {
            ledger: Ledger::new(),
            account: WindowAccount::new(LIMITS, 0),
            process: Process::new(TIMING, members, 0),
            reply: None,
            calls: 200,
            fails: true,
            made: 0,
            is_stopped: false,
            is_cut: false,
        };
        Self {
            members: (0..members).map(|_| member()).collect(),
            pool: Pool::default(),
            now: 0,
            ahead: 1_000 * SECOND as i64,
            is_up: true,
            seed: Seed::new(seed),
            draws: 0,
            lost: u64::MAX,
            audit: Audit::default(),
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.draws += 1;
        self.seed.draw(self.draws) % n
    }

    fn run(&mut self, seconds: u64) {
        let until = self.now + seconds * SECOND;
        while self.now < until {
            for id in 0..self.members.len() {
                if !self.members[id].is_stopped {
                    self.exchange(id);
                    self.call(id);
                }
            }
            self.now += STEP;
        }
    }

    /// Makes the calls of one step. Each that fails is retried up to three times, at once.
    fn call(&mut self, id: usize) {
        let (now, member) = (self.now, &mut self.members[id]);
        member.made += member.calls * STEP;
        while member.made >= SECOND {
            member.made -= SECOND;
            member.ledger.earn(1);
            self.audit.call(now);
            let retries = if member.fails { 3 } else { 0 };
            for _ in 0..retries {
                let is_granted = member.ledger.try_spend(1);
                if member.ledger.is_newly_short(2) {
                    // It wakes the task.
                    member.account.count(&member.ledger, &TIMING, now);
                }
                if !is_granted {
                    break;
                }
                self.audit.retry(now);
            }
        }
    }

    /// Lets a process take a reply, and report if it is due.
    fn exchange(&mut self, id: usize) {
        let now = self.now;
        let (jitter, travel) = (self.below(2_001) as i16 - 1_000, self.below(30_000));
        let [is_sent, is_answered] = [(); 2].map(|()| self.below(self.lost) > 0);
        let member = &mut self.members[id];
        if let Some((at, sent, reply)) = member.reply
            && at <= now
        {
            member.reply = None;
            match reply {
                Reply::Lost => member.process.on_failure(SECOND / 10, now),
                Reply::Again => member.process.on_again(now),
                Reply::Lease(_, None) => {}
                Reply::Lease(store, Some(lease)) => {
                    let _ = member.process.on_reply(store, lease.processes, sent, now);
                    member.account.on_lease(&member.ledger, lease);
                    self.audit.held = self.audit.held.max(member.ledger.held());
                }
            }
        }
        let _ = member.process.tick(now);
        let processes = member.process.processes();
        if member.process.is_local() {
            member.account.use_local_share(&member.ledger, processes, &TIMING, now);
        }
        if member.reply.is_some() || !member.process.is_due(member.ledger.is_short(), now) {
            return;
        }
        member.ledger.settle_short();
        let report = member.process.report(jitter, now);
        let claim = member.account.claim(&member.ledger, processes, &TIMING, now);
        let store = (now + travel / 2).saturating_add_signed(self.ahead);
        let (mut at, mut reply) = (now + SECOND / 4, Reply::Lost);
        if self.is_up && !member.is_cut && is_sent {
            let answer = if report.contradicts(store) {
                Reply::Again
            } else {
                Reply::Lease(store, self.pool.report(id as u64, &report, &claim, &TIMING, store))
            };
            if is_answered {
                (at, reply) = (now + travel, answer);
            }
        }
        member.reply = Some((at, now, reply));
    }

    /// Returns which part of what the calls and the minimum allow was used.
    fn used(&self) -> f64 {
        let allowed = self.audit.all_calls * LIMITS.ratio + LIMITS.min_per_second * self.now;
        self.audit.all_retries as f64 * 1e6 / allowed as f64
    }
}

#[test]
fn w1_the_retries_of_eight_processes_are_bounded_in_every_window_and_four_fifths_are_used() {
    let mut fleet = Fleet::new(8, 1);
    fleet.run(120);
    let used = fleet.used();
    assert!(fleet.audit.above <= 0.0, "{}", fleet.audit.above);
    assert!(used >= 0.8, "{used}");
}

#[test]
fn w1_a_store_that_is_lost_in_the_middle_and_returns_empty_allows_no_retry_more() {
    let mut fleet = Fleet::new(8, 2);
    fleet.run(40);
    fleet.is_up = false;
    fleet.run(20);
    let alone = fleet.used();
    assert!(fleet.members.iter().all(|member| member.process.is_local()));
    fleet.pool = Pool::default();
    fleet.is_up = true;
    fleet.run(60);
    let used = fleet.used();
    assert!(fleet.audit.above <= 0.0, "{}", fleet.audit.above);
    assert!(alone >= 0.8 && used >= 0.8, "{alone}, {used}");
    assert!(fleet.members.iter().all(|member| !member.process.is_local()));
}

#[test]
fn a_single_process_that_fails_uses_what_the_calls_of_all_allow() {
    let mut fleet = Fleet::new(8, 3);
    fleet.members[1..].iter_mut().for_each(|member| member.fails = false);
    fleet.run(60);
    let used = fleet.used();
    // Without a store it has an eighth.
    assert!(fleet.audit.above <= 0.0 && used >= 0.75, "{used}, {}", fleet.audit.above);
}

#[test]
fn a_process_that_is_cut_off_adds_at_most_its_own_share() {
    let mut fleet = Fleet::new(8, 4);
    fleet.run(20);
    fleet.members[0].is_cut = true;
    fleet.run(30);
    fleet.members[0].is_cut = false;
    fleet.run(20);
    // A fifth of its calls in a window, and an eighth of the minimum.
    assert!(fleet.audit.above <= 400.0 + 12.5, "{}", fleet.audit.above);
    assert!(fleet.used() <= 1.0, "{}", fleet.used());
}

/// What happens to a fleet in the test below.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Happens {
    Nothing,
    /// One report or reply in so many is lost.
    Losses(u64),
    /// The store loses its data.
    Emptied,
    /// The store evicts the set of leases alone.
    Evicted,
    /// The store's clock jumps, so many seconds.
    Jumps(i64),
}

/// Returns the worst excess over the bound of 24 fleets under loads that change, and how many of them kept their
/// leases. What a process has in hand whose reports the store does not know is no excess if that may be.
fn worst(happens: Happens) -> (f64, u32) {
    let (mut worst, mut leased) = (0.0_f64, 0);
    for seed in 0..24 {
        let mut fleet = Fleet::new(3, 100 + seed);
        if let Happens::Losses(one_in) = happens {
            fleet.lost = one_in;
        }
        let mut was_local = false;
        for _ in 0..20 {
            for id in 0..3 {
                let (calls, fails) = ([0, 1, 20, 200][fleet.below(4) as usize], fleet.below(2) == 0);
                (fleet.members[id].calls, fleet.members[id].fails) = (calls, fails);
            }
            let seconds = 1 + fleet.below(5);
            fleet.run(seconds);
            was_local |= fleet.members.iter().any(|member| member.process.is_local());
            match happens {
                _ if fleet.below(5) > 0 => {}
                Happens::Emptied => fleet.pool = Pool::default(),
                Happens::Evicted => fleet.pool.evict_leases(),
                Happens::Jumps(seconds) => {
                    let back = if fleet.below(2) == 0 { 1 } else { -1 };
                    fleet.ahead += seconds * back * SECOND as i64;
                }
                Happens::Nothing | Happens::Losses(_) => {}
            }
        }
        if !was_local {
            leased += 1;
            let in_hand = match happens {
                Happens::Nothing | Happens::Emptied | Happens::Jumps(_) => 0,
                Happens::Losses(_) | Happens::Evicted => fleet.audit.held,
            };
            worst = worst.max(fleet.audit.above - in_hand as f64);
        }
    }
    (worst, leased)
}

#[test]
fn the_bound_holds_whatever_the_load_and_whatever_the_store_loses() {
    for happens in [
        Happens::Nothing,
        Happens::Losses(30),
        Happens::Losses(8),
        Happens::Emptied,
        Happens::Evicted,
        Happens::Jumps(20),
        Happens::Jumps(2),
    ] {
        let (worst, leased) = worst(happens);
        assert!(worst <= 0.0 && leased >= 12, "{happens:?}: {worst} above, of {leased} fleets");
    }
}
