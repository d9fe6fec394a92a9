//! The store's side of advice about a breaker in Rust, and fleets in virtual time. A test compares it with the script.

use std::collections::BTreeMap;

use stagger::breaker::{BreakerState, CircuitBreaker};
use stagger::guard::{Answer, Ask, End, Guard as _, Permit};
use stagger::{Instant, Outcome, Seed};
use stagger_lease::claim::{Report, SECOND, Timing};

use super::parity::{Draws, answer, assert_expires, done, exchange, script, store};
use super::quiet::{Processes, VOTED, quorum};
use crate::guards::breaker::apply;
use crate::guards::breaker::{Advice, Opinion};
use crate::keys::breaker_key;
use crate::script::{Exchange, Replies};

/// The store's side of one breaker: the processes that have theirs open, by the time of their last report.
#[derive(Debug, Default)]
struct StoredAdvice(BTreeMap<u64, i64>);

impl StoredAdvice {
    fn report(&mut self, id: u64, is_open: bool, (processes, is_leaving): (u64, bool), now: i64) -> Advice {
        self.0.retain(|_, at| *at > now - VOTED && *at <= now);
        if is_open && !is_leaving {
            self.0.insert(id, now);
        } else {
            self.0.remove(&id);
        }
        let open = self.0.len() as u64;
        Advice { open, is_enough: open >= quorum(processes) }
    }
}

#[test]
fn the_script_advises_as_its_model_does() {
    let (_server, mut connection) = store();
    let script = script();
    let (mut advised, mut alone, mut none) = (0, 0, 0);
    for history in 0..12 {
        let mut draws = Draws(Seed::new(4_000 + history), 0);
        let namespace = format!("advice-{history}");
        let (key, open_key) = (format!("{{{history}}}:processes"), breaker_key(&namespace, "t"));
        let open_key = open_key.replace(&format!("{{stagger:{namespace}}}"), &format!("{{{history}}}"));
        let (mut stored, mut processes) = (StoredAdvice::default(), Processes::default());
        let fleet = if draws.one_in(2) { 40 } else { 5 };
        let mut now = 1_700_000_000 * SECOND;
        for step in 0..120 {
            now += if draws.one_in(40) { draws.below(20 * SECOND) } else { draws.below(SECOND / 2) };
            if draws.one_in(40) {
                now -= draws.below(20 * SECOND);
            }
            let (id, is_leaving, is_open) = (draws.below(fleet), draws.one_in(30), draws.one_in(4));
            let timing = Timing::DEFAULT;
            let count = processes.count(id, is_leaving, &timing, now as i64);
            let want = stored.report(id, is_open, (count, is_leaving), now as i64);
            let report = Report { number: step + 1, expected: None, resync: false };
            let report_on =
                Exchange { is_leaving, processes: &key, breakers: &[(&open_key, is_open)], ..exchange(id, &report) };
            let got = answer(&script, &report_on, now, &mut connection);
            let want_all = done(now, Replies { processes: count, advice: vec![want], ..Replies::default() });
            assert_eq!(got, Some(want_all), "history {history}, step {step}: {id} {is_open}");
            advised += u32::from(want.is_enough);
            alone += u32::from(want.open == 1);
            none += u32::from(want.open == 0);
        }
        assert_expires(&key, &mut connection);
    }
    let reached = [advised, alone, none];
    assert!(reached.iter().all(|times| *times > 50), "{reached:?}");
}

/// One process: its breaker, and how often it calls.
struct Member {
    breaker: CircuitBreaker,
    opinion: Opinion,
    /// Milliseconds between calls.
    every: u64,
    reports_at: u64,
    failed: u64,
    rejected: u64,
    calls: u64,
    first_open: Option<u64>,
    was_advised: bool,
}

/// A fleet whose clock is in milliseconds. Every process reports once a second.
struct Fleet {
    members: Vec<Member>,
    stored: Option<StoredAdvice>,
    processes: Processes,
    now: u64,
    draws: Draws,
}

impl Fleet {
    fn new(every: &[u64], is_shared: bool) -> Self {
        let member = |(index, &every): (usize, &u64)| Member {
            breaker: CircuitBreaker::new(Seed::new(index as u64)),
            opinion: Opinion::default(),
            every,
            reports_at: 47 * index as u64 % 1_000,
            failed: 0,
            rejected: 0,
            calls: 0,
            first_open: None,
            was_advised: false,
        };
        let members = every.iter().enumerate().map(member).collect();
        let stored = is_shared.then(StoredAdvice::default);
        Self { members, stored, processes: Processes::default(), now: 0, draws: Draws(Seed::new(5), 0) }
    }

    /// Runs for so many seconds. `fails` says how many of a thousand calls of a process fail.
    fn run(&mut self, seconds: u64, fails: impl Fn(usize) -> u64) {
        let until = self.now + seconds * 1_000;
        while self.now < until {
            let now = Instant::from_nanos(self.now * 1_000_000);
            for index in 0..self.members.len() {
                let fails = self.draws.below(1_000) < fails(index);
                let member = &mut self.members[index];
                if (self.now + 13 * index as u64).is_multiple_of(member.every) {
                    member.calls += 1;
                    match member.breaker.ask(Ask::FIRST, Permit::NONE, &now) {
                        Answer::No { .. } | Answer::Wait { .. } => member.rejected += 1,
                        Answer::Go(permit) => {
                            member.failed += u64::from(fails);
                            let outcome = if fails { Outcome::TRANSIENT } else { Outcome::Success };
                            member.breaker.settle(permit, End::Made(&outcome), &now);
                        }
                    }
                    if member.breaker.state() == BreakerState::Open {
                        member.first_open.get_or_insert(self.now);
                    }
                }
                if self.now >= member.reports_at
                    && let Some(stored) = &mut self.stored
                {
                    member.reports_at = self.now + 1_000;
                    let _ = member.opinion.note(member.breaker.state(), member.breaker.snapshot(&now).cause);
                    let micros = self.now as i64 * 1_000;
                    let count = self.processes.count(index as u64, false, &Timing::DEFAULT, micros);
                    let advice = stored.report(index as u64, member.opinion.claim(), (count, false), micros);
                    if let Some(changed) = member.opinion.on_reply(advice) {
                        apply(&member.breaker, changed);
                    }
                    member.was_advised |= member.opinion.is_advised();
                }
            }
            self.now += 1;
        }
    }

    fn sum(&self, from: usize, of: impl Fn(&Member) -> u64) -> u64 {
        self.members[from..].iter().map(of).sum()
    }
}

/// Two processes with 50 calls per second, and eighteen with a call every two seconds.
fn two_busy_ones() -> Vec<u64> {
    (0..20).map(|index| if index < 2 { 20 } else { 2_000 }).collect()
}

#[test]
fn processes_with_few_calls_learn_from_busy_ones_that_a_server_is_down() {
    let [alone, advised] = [false, true].map(|is_shared| {
        let mut fleet = Fleet::new(&two_busy_ones(), is_shared);
        fleet.run(20, |_| 0);
        fleet.run(11, |_| 1_000);
        let opened: Vec<_> = fleet.members.iter().filter_map(|member| member.first_open).collect();
        assert_eq!(opened.len(), 20);
        (opened.iter().max().unwrap() - 20_000, fleet.sum(2, |member| member.failed))
    });
    // Three failures of five, and the probes of those that opened earlier.
    assert!(advised.0 * 10 <= alone.0 * 7, "the last is open after {} and {} ms", alone.0, advised.0);
    assert!(advised.1 * 10 <= alone.1 * 7, "failed calls: {} and {}", alone.1, advised.1);
}

#[test]
fn advice_ends_after_the_server_has_recovered() {
    let mut fleet = Fleet::new(&two_busy_ones(), true);
    fleet.run(10, |_| 1_000);
    assert!(fleet.members.iter().any(|member| member.opinion.is_advised()));
    fleet.run(120, |_| 0);
    assert!(fleet.members.iter().all(|member| !member.opinion.is_advised()));
    assert!(fleet.members.iter().all(|member| member.breaker.state() == BreakerState::Closed));
    assert!(fleet.members.iter().all(|member| member.breaker.evidence() == stagger::breaker::Evidence::Full));
}

#[test]
fn one_process_with_a_bad_path_advises_nobody() {
    let mut fleet = Fleet::new(&[20; 8], true);
    fleet.run(120, |index| if index == 0 { 1_000 } else { 20 });
    assert!(fleet.members[0].first_open.is_some());
    assert!(fleet.members.iter().all(|member| !member.was_advised));
    assert_eq!(fleet.sum(1, |member| member.rejected), 0);
}

#[test]
fn a_quorum_with_bad_paths_hardly_harms_processes_whose_calls_succeed() {
    // A tenth of twenty, and one in a hundred calls of the others fails.
    let mut fleet = Fleet::new(&[20; 20], true);
    fleet.run(120, |index| if index < 2 { 1_000 } else { 10 });
    assert!(fleet.members[2..].iter().all(|member| member.was_advised));
    let (rejected, calls) = (fleet.sum(2, |member| member.rejected), fleet.sum(2, |member| member.calls));
    assert!(rejected * 1_000 <= calls, "{rejected} of {calls}");
    // If advice let a breaker open on its first failure, it would reject healthy calls.
    let mut eager = Fleet::new(&[20; 20], true);
    for member in &mut eager.members[2..] {
        member.breaker = CircuitBreaker::builder(Seed::new(1)).consecutive(2).build().unwrap();
    }
    eager.run(120, |index| if index < 2 { 1_000 } else { 10 });
    let rejected = eager.sum(2, |member| member.rejected);
    assert!(rejected * 4 >= calls, "{rejected} of {calls}");
}
