use std::io;
use std::sync::Arc;

use tower::retry::Policy;
use tower::retry::backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff};
use tower::retry::budget::{Budget, TpsBudget};
use tower::{Service, ServiceExt};

#[derive(Clone)]
struct BackoffAndBudget {
    backoff: ExponentialBackoff,
    budget: Arc<TpsBudget>,
    retries: u32,
}

impl Policy<(), Vec<u8>, io::Error> for BackoffAndBudget {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, _: &mut (), result: &mut io::Result<Vec<u8>>) -> Option<Self::Future> {
        if result.is_ok() {
            self.budget.deposit();
            return None;
        }
        self.retries = self.retries.checked_sub(1)?;
        self.budget.withdraw().then(|| self.backoff.next_backoff())
    }

    fn clone_request(&mut self, _: &()) -> Option<()> {
        Some(())
    }
}

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let policy = BackoffAndBudget {
        backoff: ExponentialBackoffMaker::default().make_backoff(),
        budget: Arc::default(),
        retries: 3,
    };
    let mut service = tower::retry::Retry::new(policy, tower::service_fn(|()| async { read() }));
    let read = runtime.block_on(async { service.ready().await?.call(()).await })?;
    println!("{}", read.len());
    Ok(())
}

fn read() -> io::Result<Vec<u8>> {
    std::fs::read("/etc/hostname")
}
