use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::account::Account;
use crate::claim::{Claim, Lease as Grant, Limits, Report, Timing};
use crate::ledger::Ledger;
use crate::process::{Change, Process, first_spread, reconnect_delay};
use stagger_core::guard::{End, Guard, Now, Permit};
use stagger_core::{FailureKind, Seed};

use super::tokens::LeasedTokens;

/// The lease of a process, as its calls see it.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) ledger: Ledger,
    pub(super) limits: Limits,
    pub(super) expected: Option<u32>,
    /// Whether the process runs short of tokens.
    wants_report: AtomicBool,
}

impl Lease {
    pub(super) fn new(tokens: LeasedTokens) -> Self {
        let LeasedTokens { limits, expected } = tokens;
        Self { ledger: Ledger::new(), limits, expected, wants_report: AtomicBool::new(false) }
    }

    /// Returns whether the process began to run short of tokens, and forgets it.
    pub(super) fn take_wish(&self) -> bool {
        self.wants_report.swap(false, Ordering::Relaxed)
    }
}

impl Guard for Lease {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        self.limits.reserve(&self.ledger, || self.wants_report.store(true, Ordering::Relaxed))
    }

    fn settle(&self, Permit(permit): Permit, end: End<'_>, _: &dyn Now) {
        match end {
            End::Made(outcome) => self.limits.record(&self.ledger, outcome),
            End::NeverMade => self.ledger.release(permit),
        }
    }

    fn available(&self) -> Option<u64> {
        self.limits.available(&self.ledger)
    }

    fn bounds_retries(&self) -> bool {
        true
    }
}

/// A process of the fleet: what the background task of `stagger-redis` keeps.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) lease: Arc<Lease>,
    pub(super) process: Process,
    account: Account,
    pub(super) is_open: bool,
    /// What is under way between the process and the store.
    pub(super) exchange: Exchange,
    /// When the timer is due; events of another time are those of a timer that was set anew.
    pub(super) timer: u64,
    pub(super) reports: u64,
    seed: Seed,
    draws: u64,
    failed: usize,
    has_leases: bool,
    seen_spent: u64,
    seen_earned: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Exchange {
    None,
    Connecting,
    Sent { report: Report, claim: Claim, sent: u64 },
    Replied { reply: Answer, sent: u64 },
}

/// The reply to a report on one target.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Again,
    Old,
    Granted { store: u64, grant: Grant },
}

impl Member {
    pub(super) fn new(lease: Arc<Lease>, processes: u32, seed: Seed) -> Self {
        let expected = u64::from(lease.expected.unwrap_or(processes));
        let mut member = Self {
            process: Process::new(Timing::DEFAULT, expected, 0),
            account: Account::new(lease.limits, 0),
            lease,
            is_open: false,
            exchange: Exchange::None,
            timer: 0,
            reports: 0,
            seed,
            draws: 0,
            failed: 0,
            has_leases: false,
            seen_spent: 0,
            seen_earned: 0,
        };
        let first = member.draw(first_spread(&Timing::DEFAULT));
        member.process.on_failure(first, 0);
        member
    }

    /// Notes the time, and refills the local share if the process uses it. Returns whether it has begun to.
    pub(super) fn tick(&mut self, now: u64) -> bool {
        let has_begun = self.process.tick(now) == Some(Change::Local);
        if self.process.is_local() {
            self.account.use_local_share(&self.lease.ledger, self.process.processes(), self.process.timing(), now);
            // What time adds to a local share counts as earned, and is in the audit already.
            self.seen_earned = self.lease.ledger.earned();
        }
        has_begun
    }

    pub(super) fn is_due(&self, now: u64) -> bool {
        matches!(self.exchange, Exchange::None) && self.process.is_due(self.lease.ledger.is_short(), now)
    }

    /// Returns when the timer is due next.
    pub(super) fn next(&self, now: u64) -> u64 {
        let next = match self.exchange {
            Exchange::None => self.process.next(self.lease.ledger.is_short(), now),
            _ => self.process.next_tick(now),
        };
        next.max(now + 1)
    }

    /// Begins a report.
    pub(super) fn send(&mut self, now: u64) {
        let jitter = i16::try_from(self.draw(2_001)).unwrap_or(1_000) - 1_000;
        let ledger = &self.lease.ledger;
        ledger.settle_short();
        let report = self.process.report(jitter, now);
        let claim = self.account.claim(ledger, self.process.processes(), &Timing::DEFAULT, now);
        self.exchange = Exchange::Sent { report, claim, sent: now };
    }

    /// Takes over a reply. Returns whether the process has leases again.
    pub(super) fn hear(&mut self, reply: Answer, sent: u64, now: u64) -> bool {
        match reply {
            Answer::Again => self.process.on_again(now),
            Answer::Old => {}
            Answer::Granted { store, grant } => {
                let change = self.process.on_reply(store, grant.processes, sent, now);
                self.account.on_lease(&self.lease.ledger, grant);
                self.has_leases = true;
                self.failed = 0;
                return change == Some(Change::Leased);
            }
        }
        false
    }

    /// Notes that there was no reply, or no connection.
    pub(super) fn fail(&mut self, now: u64) {
        self.is_open = false;
        let delay = reconnect_delay(self.failed, self.seed.for_call(self.draws));
        self.draws += 1;
        self.failed += 1;
        self.process.on_failure(delay, now);
    }

    /// Returns what was spent and earned since the last call.
    pub(super) fn take_counts(&mut self) -> (i64, u64) {
        let (spent, earned) = (self.lease.ledger.spent(), self.lease.ledger.earned());
        let counts = (spent.wrapping_sub(self.seen_spent) as i64, earned.wrapping_sub(self.seen_earned));
        (self.seen_spent, self.seen_earned) = (spent, earned);
        counts
    }

    /// Returns whether there has never been a reply.
    pub(super) const fn is_new(&self) -> bool {
        !self.has_leases
    }

    /// Returns the part of these tokens that is the process's without the store.
    pub(super) fn share(&self, tokens: u64) -> u64 {
        tokens / self.process.processes()
    }

    fn draw(&mut self, n: u64) -> u64 {
        self.draws += 1;
        self.seed.draw(self.draws) % n
    }
}
