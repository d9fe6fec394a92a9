//! Idle connections.

use core::mem::forget;

use tokio::io::DuplexStream;
use tokio::task::yield_now;

use super::echo::EchoConnection;
use super::kinds::{Bare, High, InATask, Low, Served};
use super::{BARE, HIGH, IN_A_TASK, LOW, SERVED};
use crate::case::{Case, Role, Table};
use crate::tokio_runtime;

const IDLE: u64 = 2_000;

/// Returns the rows of the table.
pub(super) fn cases() -> Vec<Case> {
    let row = |role, name, run| Case::work(Table::SocketIdle, role, name, run).keeping(IDLE);
    vec![
        row(Role::Bare, BARE, open::<Bare<DuplexStream>>),
        row(Role::Floor, IN_A_TASK, open::<InATask<DuplexStream>>),
        row(Role::Stagger, LOW, open::<Low<DuplexStream>>),
        row(Role::Stagger, HIGH, open::<High<DuplexStream>>),
        row(Role::Stagger, SERVED, open::<Served<DuplexStream>>),
    ]
}

/// Opens `times` connections and drops them. For 0, opens the connections whose memory is measured, and keeps them.
fn open<T: EchoConnection>(times: u64) {
    let runtime = tokio_runtime::connected();
    if times == 0 {
        runtime.block_on(async {
            for _ in 0..IDLE {
                tokio::spawn(T::open().await.idle());
            }
            // All tasks have reached their wait.
            for _ in 0..16 {
                yield_now().await;
            }
        });
        forget(runtime);
    } else {
        runtime.block_on(async {
            for _ in 0..times {
                drop(T::open().await);
            }
        });
    }
}
