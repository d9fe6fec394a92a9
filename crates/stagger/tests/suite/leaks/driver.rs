use core::future::poll_fn;
use core::pin::pin;
use std::sync::Arc;

use stagger::batch::Batch;
use stagger::hedge::{Hedge, hedge_with_timer};
use stagger::queue::RetryQueue;
use stagger::reconnect::Reconnect;
use stagger::testing::VirtualClock;
use stagger::time::Sleep;
use stagger::{PollRetry, blocking, retry_with_timer};

use super::Fixture;
use super::fixture::POLICY;
use crate::suite::support::ms;

const HEDGE: Hedge = Hedge::after(ms(1)).with_max_copies(2);

/// Adds all guards of a list of one to four to a call, whose type each step may change.
macro_rules! with_guards {
    ($call:expr, $guards:expr) => {{
        let mut rest = $guards.iter().skip(1);
        let mut call = $call.guard(&*$guards[0]);
        while let Some(guard) = rest.next() {
            call = call.guard(&**guard);
        }
        call
    }};
}

/// The entry point that runs the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    Retry,
    Report,
    CancelledBy,
    RetrierRun,
    RetrierRunWith,
    RetrierCall,
    PollRetry,
    Hedging,
    HedgingReport,
    HedgingRetrier,
    RetryQueue,
    Batch,
    Reconnect,
    Blocking,
    BlockingReport,
    RetrierBlocking,
}

impl Driver {
    pub(super) const ASYNC: [Self; 13] = [
        Self::Retry,
        Self::Report,
        Self::CancelledBy,
        Self::RetrierRun,
        Self::RetrierRunWith,
        Self::RetrierCall,
        Self::PollRetry,
        Self::Hedging,
        Self::HedgingReport,
        Self::HedgingRetrier,
        Self::RetryQueue,
        Self::Batch,
        Self::Reconnect,
    ];
    pub(super) const BLOCKING: [Self; 3] = [Self::Blocking, Self::BlockingReport, Self::RetrierBlocking];

    /// Returns the number of calls per run.
    pub(super) const fn calls(self) -> u64 {
        if matches!(self, Self::RetryQueue) { 2 } else { 1 }
    }

    /// Returns whether the driver notifies a listener.
    pub(super) const fn has_listener(self) -> bool {
        !matches!(self, Self::Hedging | Self::HedgingReport)
    }

    /// Runs the calls to completion.
    pub(super) async fn drive<T: Sleep + Clone>(self, fixture: Arc<Fixture>, timer: T) {
        let fixture = &fixture;
        let guards = fixture.guards();
        let attempt = || fixture.attempt(&timer);
        match self {
            Self::Retry => {
                let call = retry_with_timer(&POLICY, timer.clone(), attempt).classify(|error| fixture.classify(error));
                with_guards!(call.on_event(|_| fixture.listen()), guards).await.unwrap_err();
            }
            Self::Report => {
                let call = retry_with_timer(&POLICY, timer.clone(), attempt).classify(|error| fixture.classify(error));
                let report = with_guards!(call.on_event(|_| fixture.listen()), guards).with_report().await;
                report.result.unwrap_err();
            }
            Self::CancelledBy => {
                let call = retry_with_timer(&POLICY, timer.clone(), attempt).classify(|error| fixture.classify(error));
                let call = with_guards!(call.on_event(|_| fixture.listen()), guards);
                call.cancelled_by(core::future::pending::<()>()).await.unwrap_err();
            }
            Self::RetrierRun => {
                fixture.retrier().run_on(timer.clone(), attempt).await.unwrap_err();
            }
            Self::RetrierRunWith => {
                let operation = async |_: &mut (), _| attempt().await;
                fixture.retrier().run_with_on(timer.clone(), &mut (), operation).await.unwrap_err();
            }
            Self::RetrierCall => {
                let retrier = fixture.retrier();
                let mut call = retrier.call_on(timer.clone());
                while call.attempt(async { attempt().await }).await.is_none() {}
            }
            Self::PollRetry => {
                let mut call = PollRetry::new(&fixture.retrier(), timer.clone());
                while poll_fn(|cx| call.poll_begin(cx)).await.is_ok() {
                    let mut attempt = pin!(call.attempt(attempt));
                    let error = poll_fn(|cx| call.attempt(|| attempt.as_mut().poll(cx))).await.unwrap_err();
                    if call.failed(call.outcome(&error), Some(&error)).is_some() {
                        break;
                    }
                }
            }
            Self::Hedging => {
                let call = hedge_with_timer(&HEDGE, timer.clone(), attempt).classify(|error| fixture.classify(error));
                call.guard(fixture.budget()).await.unwrap_err();
            }
            Self::HedgingReport => {
                let call = hedge_with_timer(&HEDGE, timer.clone(), attempt).classify(|error| fixture.classify(error));
                call.guard(fixture.budget()).with_report().await.result.unwrap_err();
            }
            Self::HedgingRetrier => {
                let retrier = fixture.retrier();
                hedge_with_timer(&HEDGE, timer.clone(), attempt).retrier(&retrier).await.unwrap_err();
            }
            Self::RetryQueue => {
                let mut queue = RetryQueue::with_timer(timer.clone(), fixture.retrier());
                for item in 0..self.calls() {
                    queue.push(item, ms(1)).unwrap();
                }
                while let Some(due) = queue.next().await {
                    let job = due.expect("the breaker admits probes");
                    let error = job.scoped(attempt()).await.unwrap_err();
                    let _ = queue.push_failed(job, &error);
                }
            }
            Self::Batch => {
                let items = [("a", ()), ("b", ())];
                let mut batch = Batch::with_timer(timer.clone(), fixture.retrier(), items);
                while batch.next_attempt().await {
                    let error = attempt().await.unwrap_err();
                    let outcome = fixture.classify(&error);
                    batch.all_failed(outcome, |()| error);
                }
                assert_eq!(batch.finish().failed().count(), 2);
            }
            Self::Reconnect => {
                Reconnect::with_timer(timer.clone(), fixture.retrier(), attempt).next().await.unwrap_err();
            }
            Self::Blocking => {
                let call =
                    blocking::retry(&POLICY, || fixture.blocking_attempt()).classify(|error| fixture.classify(error));
                let call = call.on_event(|_| fixture.listen()).timer(VirtualClock::new());
                with_guards!(call, guards).run().unwrap_err();
            }
            Self::BlockingReport => {
                let call =
                    blocking::retry(&POLICY, || fixture.blocking_attempt()).classify(|error| fixture.classify(error));
                let call = call.on_event(|_| fixture.listen()).timer(VirtualClock::new());
                with_guards!(call, guards).with_report().run().result.unwrap_err();
            }
            Self::RetrierBlocking => {
                let retrier = fixture.retrier();
                let call = retrier.blocking_call(|_| fixture.blocking_attempt()).timer(VirtualClock::new());
                call.run().unwrap_err();
            }
        }
    }
}
