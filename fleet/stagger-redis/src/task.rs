//! The background task of a fleet, which makes the reports of a process to the store.
//!
//! ```text
//!          nothing to report on                       due, or early, or the last one
//!   idle ◄──────────────────────── waiting ─────────────────────────────────────────► reporting
//!     │  a guard is added             ▲ ▲                                                 │
//!     └───────────────────────────────┘ └──── reply, or failure: waits by the policy ─────┘
//! ```

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use redis::Script;
use stagger::Seed;
use stagger_lease::admission::shares::ShareClaim;
use stagger_lease::claim::{Limits, Timing};
use stagger_lease::process::{Change, Process, first_spread, reconnect_delay};
use stagger_lease::window::claim::WindowLimits;
use tokio::time::sleep_until;

use crate::connection::Connection;
use crate::controls::ObeyedControls;
use crate::guards::admission::AdmissionTarget;
use crate::guards::breaker::{Advice, BreakerTarget, Changed, apply};
use crate::guards::pause::{PauseClaim, PauseReply};
use crate::guards::quiet::QuietTarget;
use crate::keys::{controls_key, processes_key};
use crate::leases::{Claimed, Leases, Moment};
use crate::observe;
use crate::observe::{FleetEvent, Listener};
use crate::registry::{Registry, Target};
use crate::script::{self, Exchange, Replies, Reply};

/// What the task is created with.
pub(crate) struct TaskSettings {
    pub(crate) timing: Timing,
    pub(crate) processes: u64,
    pub(crate) listener: Option<Listener>,
}

/// The background task of a fleet: it reports to the store when the protocol says so.
pub(crate) struct Task {
    connection: Connection,
    script: Script,
    state: TaskState,
    ended: Ended,
}

/// Everything but the connection, so that time is noted while the task waits for the store.
struct TaskState {
    registry: Arc<Registry>,
    process: Process,
    tokens: Leases<Limits>,
    windows: Leases<WindowLimits>,
    pauses: Vec<Arc<QuietTarget>>,
    breakers: Vec<Arc<BreakerTarget>>,
    admissions: Vec<Arc<AdmissionTarget>>,
    listener: Option<Listener>,
    namespace: Box<str>,
    /// The key of the processes of the namespace.
    processes: String,
    /// The key of the operator controls of the namespace.
    controls: String,
    /// The id of the process, and the source of its jitter.
    seed: Seed,
    draws: u64,
    /// Failures in a row.
    failed: usize,
    reason: String,
    lost_at: u64,
}

/// What one report claims of each guard.
struct Claims {
    tokens: Vec<Claimed<Limits>>,
    windows: Vec<Claimed<WindowLimits>>,
    pauses: Vec<(Arc<QuietTarget>, PauseClaim)>,
    /// Whether the breaker is open.
    breakers: Vec<(Arc<BreakerTarget>, bool)>,
    admissions: Vec<(Arc<AdmissionTarget>, ShareClaim)>,
    controls: Option<Arc<ObeyedControls>>,
}

/// Tells that the task has ended, also if its runtime has.
struct Ended(Arc<Registry>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Task {
    pub(crate) fn new(
        registry: Arc<Registry>,
        connection: Connection,
        settings: TaskSettings,
        namespace: &str,
    ) -> Self {
        let TaskSettings { timing, processes, listener } = settings;
        let ended = Ended(Arc::clone(&registry));
        let state = TaskState {
            registry,
            process: Process::new(timing, processes, 0),
            tokens: Leases::default(),
            windows: Leases::default(),
            pauses: Vec::new(),
            breakers: Vec::new(),
            admissions: Vec::new(),
            listener,
            namespace: namespace.into(),
            processes: processes_key(namespace),
            controls: controls_key(namespace),
            seed: stagger::seed(),
            draws: 0,
            failed: 0,
            reason: "there was no reply yet".to_owned(),
            lost_at: 0,
        };
        Self { connection, script: Script::new(script::SOURCE), state, ended }
    }

    /// Runs until nobody uses the fleet any more.
    pub(crate) async fn run(self) {
        let Self { mut connection, script, mut state, ended: _ended } = self;
        // A deployment starts all processes at once.
        let first = state.draw(first_spread(state.process.timing()));
        state.process.on_failure(first, state.now());
        loop {
            let is_closed = state.registry.is_closed();
            let is_early = state.take_targets() || is_closed;
            if is_closed && (state.is_idle() || !connection.is_open()) {
                return;
            }
            if state.is_idle() {
                state.registry.wake.notified().await;
                state.process.resume(state.now());
                continue;
            }
            state.tick();
            if is_closed || state.process.is_due(is_early, state.now()) {
                state.report(&mut connection, &script).await;
                if is_closed {
                    return;
                }
            } else {
                let next = state.process.next(is_early, state.now());
                tokio::select! {
                    () = state.registry.wake.notified() => {}
                    () = state.sleep_until(next) => {}
                }
            }
        }
    }
}

impl TaskState {
    /// Returns whether there is nothing to report on.
    fn is_idle(&self) -> bool {
        self.tokens.is_empty()
            && self.windows.is_empty()
            && self.pauses.is_empty()
            && self.breakers.is_empty()
            && self.admissions.is_empty()
            && self.registry.controls().is_none()
    }

    /// Takes over new guards, and returns whether to report early: a budget is short, a guard is new or no longer used,
    /// or there is news of a quiet period.
    fn take_targets(&mut self) -> bool {
        let now = self.now();
        let mut is_early = self.tokens.take(&self.registry, now) | self.windows.take(&self.registry, now);
        let admissions = &mut self.admissions;
        self.registry.for_each(|admission: &Arc<AdmissionTarget>, is_used| {
            is_early |= !is_used;
            if !admissions.iter().any(|known| Arc::ptr_eq(known, admission)) {
                admissions.push(Arc::clone(admission));
                is_early = true;
            }
        });
        is_early |= take_views(&self.registry, &mut self.breakers, BreakerTarget::note);
        is_early | take_views(&self.registry, &mut self.pauses, |quiet| quiet.pause.has_news())
    }

    /// Notes the time, and refills the local shares if the process uses them.
    fn tick(&mut self) {
        let now = self.now();
        let is_lost = self.process.tick(now) == Some(Change::Local);
        if is_lost {
            self.lost_at = now;
            self.registry.counts.is_leased.store(false, Ordering::Relaxed);
            for breaker in &self.breakers {
                if let Some(changed) = breaker.opinion.on_loss() {
                    apply(&breaker.local, changed);
                }
            }
            for quiet in &self.pauses {
                quiet.pause.on_loss(self.seed.draw(now) % self.process.timing().period, now);
            }
        }
        if let Some(controls) = self.registry.controls()
            && let Some(event) = controls.tick(now)
        {
            self.tell(&event);
        }
        let moment = Moment { timing: self.process.timing(), processes: self.process.processes(), now };
        self.windows.count(moment);
        if self.process.is_local() {
            self.tokens.use_local_shares(moment);
            self.windows.use_local_shares(moment);
            for admission in &self.admissions {
                admission.queue.use_local_share(self.process.processes(), self.registry.now_nanos());
            }
        }
        if is_lost {
            self.tell(&FleetEvent::StoreLost { reason: self.reason.clone() });
            // Who sees the loss finds the local shares in use, and the event told.
            self.registry.counts.losses.fetch_add(1, Ordering::Release);
            observe::record(&self.namespace, &self.registry);
        }
    }

    /// Connects if necessary, and makes one report.
    async fn report(&mut self, connection: &mut Connection, script: &Script) {
        if !connection.is_open()
            && let Err(reason) = self.with_ticks(connection.open()).await
        {
            return self.on_failure(reason);
        }
        let is_closed = self.registry.is_closed();
        let sent = self.now();
        let jitter = i16::try_from(self.draw(2_001)).unwrap_or(1_000) - 1_000;
        let report = self.process.report(jitter, sent);
        let timing = *self.process.timing();
        let claims = self.claims(is_closed, sent);
        self.registry.counts.reports.fetch_add(1, Ordering::Relaxed);
        // While it waits for the reply, the task notes the time, which changes its state: the exchange borrows nothing
        // of it.
        let (processes_key, controls_key) = (self.processes.clone(), self.controls.clone());
        let controls = claims.controls.as_ref();
        let exchange = Exchange {
            id: self.seed.get(),
            report: &report,
            timing: &timing,
            is_leaving: is_closed,
            tokens: &claims.tokens.iter().map(|claimed| (&claimed.target.keys, claimed.claim)).collect::<Vec<_>>(),
            windows: &claims.windows.iter().map(|claimed| (&claimed.target.keys, claimed.claim)).collect::<Vec<_>>(),
            pauses: &claims.pauses.iter().map(|(quiet, claim)| (&quiet.keys, *claim)).collect::<Vec<_>>(),
            processes: &processes_key,
            breakers: &claims.breakers.iter().map(|(breaker, is_open)| (&*breaker.key, *is_open)).collect::<Vec<_>>(),
            admissions: &claims.admissions.iter().map(|(guard, claim)| (&guard.keys, *claim)).collect::<Vec<_>>(),
            controls: controls.map(|controls| (&*controls_key, controls.known().version)),
        };
        let call = script::invocation(script, &exchange);
        let reply: Result<(Vec<i64>, Vec<Vec<u8>>), _> = self.with_ticks(connection.call(&call)).await;
        match reply {
            Err(reason) => self.on_failure(reason),
            Ok((values, texts)) => match script::reply(&values, &exchange, texts) {
                None => {
                    connection.close();
                    self.on_failure("the reply is not one of the script".to_owned());
                }
                Some(Reply::Again) => self.process.on_again(self.now()),
                // Another report has overtaken this one.
                Some(Reply::Done(replies)) if replies.is_old() => return,
                Some(Reply::Done(replies)) => self.on_replies(&claims, *replies, report.number, sent),
            },
        }
        observe::record(&self.namespace, &self.registry);
    }

    /// Returns what to claim of each guard.
    fn claims(&mut self, is_closed: bool, now: u64) -> Claims {
        let moment = Moment { timing: self.process.timing(), processes: self.process.processes(), now };
        Claims {
            tokens: self.tokens.claims(&self.registry, is_closed, moment),
            windows: self.windows.claims(&self.registry, is_closed, moment),
            pauses: self.pauses.iter().map(|quiet| (Arc::clone(quiet), quiet.claim(now))).collect(),
            breakers: self.breakers.iter().map(|breaker| (Arc::clone(breaker), breaker.opinion.claim())).collect(),
            admissions: self.share_claims(is_closed),
            controls: self.registry.controls(),
        }
    }

    /// Takes over what the store says about each guard.
    fn on_replies(&mut self, claims: &Claims, replies: Replies, number: u64, sent: u64) {
        let seen = replies.sizes().into_iter().flatten().fold(replies.processes, u64::max);
        self.registry.note_store_time(replies.now, self.now());
        let was = self.process.on_reply(replies.now, seen, sent, self.now());
        for ((quiet, _), reply) in claims.pauses.iter().zip(replies.pauses) {
            self.on_pause(quiet, reply);
        }
        for ((breaker, _), advice) in claims.breakers.iter().zip(replies.advice) {
            self.on_advice(breaker, advice);
        }
        for ((admission, claim), lease) in claims.admissions.iter().zip(&replies.shares) {
            if let (Some(_), Some(lease)) = (claim.line, lease) {
                admission.queue.on_lease(lease, self.registry.now_nanos());
            }
        }
        self.forget_admissions(&claims.admissions);
        if let (Some(controls), Some(reply)) = (&claims.controls, replies.controls)
            && let Some(event) = controls.on_reply(&reply, self.now())
        {
            self.tell(&event);
        }
        self.tokens.on_leases(&self.registry, &claims.tokens, replies.leases);
        self.windows.on_leases(&self.registry, &claims.windows, replies.windows);
        self.failed = 0;
        let counts = &self.registry.counts;
        counts.answered.store(number, Ordering::Relaxed);
        counts.is_leased.store(true, Ordering::Relaxed);
        counts.processes.store(seen, Ordering::Relaxed);
        if was == Some(Change::Leased) {
            let after = Duration::from_micros(self.now().saturating_sub(self.lost_at));
            self.tell(&FleetEvent::StoreRestored { after });
        }
    }

    /// Returns what to claim of each admission. One that nobody uses any more is left.
    fn share_claims(&self, is_closed: bool) -> Vec<(Arc<AdmissionTarget>, ShareClaim)> {
        let mut used = Vec::new();
        if !is_closed {
            self.registry.for_each(|admission: &Arc<AdmissionTarget>, is_used| {
                if is_used {
                    used.push(Arc::clone(admission));
                }
            });
        }
        let claims = self.admissions.iter().map(|admission| {
            let mut claim = admission.queue.claim(self.registry.now_nanos());
            if !used.iter().any(|used| Arc::ptr_eq(used, admission)) {
                claim.line = None;
            }
            (Arc::clone(admission), claim)
        });
        claims.collect()
    }

    /// Forgets the admissions that were left.
    fn forget_admissions(&mut self, shares: &[(Arc<AdmissionTarget>, ShareClaim)]) {
        for (admission, claim) in shares {
            if claim.line.is_none() {
                self.registry.forget(admission);
                self.admissions.retain(|known| !Arc::ptr_eq(known, admission));
            }
        }
    }

    fn on_pause(&self, quiet: &QuietTarget, reply: PauseReply) {
        if quiet.pause.on_reply(reply, quiet.longest, self.process.timing().period, self.now()) {
            let remaining = Duration::from_micros(reply.left);
            self.tell(&FleetEvent::Paused { target: quiet.name.to_string(), remaining });
        }
    }

    fn on_advice(&self, breaker: &BreakerTarget, advice: Advice) {
        let Some(changed) = breaker.opinion.on_reply(advice) else { return };
        apply(&breaker.local, changed);
        if changed == Changed::Advised {
            self.tell(&FleetEvent::BreakerAdvised { target: breaker.name.to_string(), open: advice.open });
        }
    }

    fn on_failure(&mut self, reason: String) {
        self.registry.counts.failures.fetch_add(1, Ordering::Relaxed);
        self.reason = reason;
        let delay = reconnect_delay(self.failed, self.seed.for_call(self.draws));
        self.draws += 1;
        self.failed += 1;
        self.process.on_failure(delay, self.now());
        observe::record(&self.namespace, &self.registry);
    }

    fn tell(&self, event: &FleetEvent) {
        observe::tell(&self.namespace, event);
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// Waits for the store, and meanwhile for the end of the leases.
    async fn with_ticks<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = core::pin::pin!(future);
        loop {
            let next = self.process.next_tick(self.now());
            tokio::select! {
                biased;
                result = &mut future => return result,
                () = self.sleep_until(next) => self.tick(),
            }
        }
    }

    async fn sleep_until(&self, micros: u64) {
        sleep_until(self.registry.instant(micros)).await;
    }

    /// Returns the microseconds since the fleet was built.
    fn now(&self) -> u64 {
        self.registry.now()
    }

    /// Draws a number below `n`.
    fn draw(&mut self, n: u64) -> u64 {
        self.draws += 1;
        self.seed.draw(self.draws) % n
    }
}

/// Takes over the guards of one kind that share a view, and returns whether to report early: one is new, or has news.
/// At the end of the process it still leaves those that it had.
fn take_views<T: Target>(registry: &Registry, known: &mut Vec<Arc<T>>, has_news: impl Fn(&T) -> bool) -> bool {
    let former = core::mem::take(known);
    *known = if registry.is_closed() { former.clone() } else { registry.used() };
    let is_new = |guard: &Arc<T>| !former.iter().any(|former| Arc::ptr_eq(former, guard));
    known.iter().any(|guard| has_news(guard) || is_new(guard))
}
