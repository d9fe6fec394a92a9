use std::sync::Arc;

use stagger::batch::Batch;
use stagger::queue::RetryQueue;
use stagger::testing::VirtualClock;
use stagger::{blocking, hedge::Hedge, hedge::hedge_with_timer, reconnect::Reconnect, retry_with_timer, time::Sleep};

use super::World;
use super::world::POLICY;
use crate::suite::support::ms;

const HEDGE: Hedge = Hedge::after(ms(1)).with_max_copies(2);

/// Who runs the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    Retry,
    Report,
    CancelledBy,
    RetrierRun,
    RetrierRunWith,
    RetrierCall,
    Hedging,
    HedgingReport,
    RetryQueue,
    Batch,
    Reconnect,
    Blocking,
    BlockingReport,
    RetrierBlocking,
}

impl Driver {
    pub(super) const ASYNC: [Self; 11] = [
        Self::Retry,
        Self::Report,
        Self::CancelledBy,
        Self::RetrierRun,
        Self::RetrierRunWith,
        Self::RetrierCall,
        Self::Hedging,
        Self::HedgingReport,
        Self::RetryQueue,
        Self::Batch,
        Self::Reconnect,
    ];
    pub(super) const BLOCKING: [Self; 3] = [Self::Blocking, Self::BlockingReport, Self::RetrierBlocking];

    /// How many calls it makes.
    pub(super) const fn calls(self) -> u64 {
        if matches!(self, Self::RetryQueue) { 2 } else { 1 }
    }

    /// Whether anybody is told what is decided.
    pub(super) const fn tells(self) -> bool {
        !matches!(self, Self::Hedging | Self::HedgingReport | Self::RetryQueue | Self::Batch | Self::Reconnect)
    }

    /// Makes the calls of this world, from their beginning to their end.
    pub(super) async fn drive<T: Sleep + Clone>(self, world: Arc<World>, timer: T) {
        let world = &world;
        let attempt = || world.attempt(&timer);
        match self {
            Self::Retry => {
                let call = retry_with_timer(&POLICY, timer.clone(), attempt).classify(|error| world.judge(error));
                call.on_event(|_| world.listen()).guards(world.guards()).await.unwrap_err();
            }
            Self::Report => {
                let call = retry_with_timer(&POLICY, timer.clone(), attempt).classify(|error| world.judge(error));
                let report = call.on_event(|_| world.listen()).guards(world.guards()).with_report().await;
                report.result.unwrap_err();
            }
            Self::CancelledBy => {
                let call = retry_with_timer(&POLICY, timer.clone(), attempt).classify(|error| world.judge(error));
                let call = call.on_event(|_| world.listen()).guards(world.guards());
                call.cancelled_by(timer.sleep(ms(3_600_000))).await.unwrap_err();
            }
            Self::RetrierRun => {
                world.retrier().run_on(timer.clone(), attempt).await.unwrap_err();
            }
            Self::RetrierRunWith => {
                let operation = async |_: &mut (), _| attempt().await;
                world.retrier().run_with_on(timer.clone(), &mut (), operation).await.unwrap_err();
            }
            Self::RetrierCall => {
                let retrier = world.retrier();
                let mut call = retrier.call_on(timer.clone());
                while call.attempt(async { attempt().await }).await.is_none() {}
            }
            Self::Hedging => {
                let call = hedge_with_timer(&HEDGE, timer.clone(), attempt).classify(|error| world.judge(error));
                call.budget(world.budget()).await.unwrap_err();
            }
            Self::HedgingReport => {
                let call = hedge_with_timer(&HEDGE, timer.clone(), attempt).classify(|error| world.judge(error));
                call.budget(world.budget()).with_report().await.result.unwrap_err();
            }
            Self::RetryQueue => {
                let (budget, breaker) = world.shared();
                let mut queue = RetryQueue::with_timer(timer.clone(), POLICY).budget(budget).breaker(breaker);
                for item in 0..self.calls() {
                    queue.push(item, ms(1)).unwrap();
                }
                while let Some(due) = queue.next().await {
                    let job = due.expect("the breaker lets probes in");
                    let error = job.scoped(attempt()).await.unwrap_err();
                    let outcome = world.judge(&error);
                    let _ = queue.push_retry(job, outcome);
                }
            }
            Self::Batch => {
                let items = [("a", ()), ("b", ())];
                let mut batch = Batch::with_timer(timer.clone(), &POLICY, items).guards(world.guards());
                while batch.next_attempt().await {
                    let error = attempt().await.unwrap_err();
                    let outcome = world.judge(&error);
                    batch.all_failed(outcome, |()| error);
                }
                assert_eq!(batch.finish().failed.len(), 2);
            }
            Self::Reconnect => {
                let mut links = Reconnect::with_timer(timer.clone(), &POLICY, attempt).guards(world.guards());
                links.next_with_rule(|error| world.judge(error)).await.unwrap_err();
            }
            Self::Blocking => {
                let call = blocking::retry(&POLICY, || world.blocking_attempt()).classify(|error| world.judge(error));
                let call = call.on_event(|_| world.listen()).timer(VirtualClock::new());
                call.guards(world.guards()).run().unwrap_err();
            }
            Self::BlockingReport => {
                let call = blocking::retry(&POLICY, || world.blocking_attempt()).classify(|error| world.judge(error));
                let call = call.on_event(|_| world.listen()).timer(VirtualClock::new());
                call.guards(world.guards()).with_report().run().result.unwrap_err();
            }
            Self::RetrierBlocking => {
                let retrier = world.retrier();
                let call = retrier.blocking_call(|_| world.blocking_attempt()).timer(VirtualClock::new());
                call.run().unwrap_err();
            }
        }
    }
}
