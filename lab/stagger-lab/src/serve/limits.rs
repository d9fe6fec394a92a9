//! What a request may cost. The page is for one person; these bounds hold for whatever else reaches the port.

use core::time::Duration;

/// Maximum number of bytes of the first line and the headers of a request.
pub(super) const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Maximum number of bytes of a request's body.
pub(super) const MAX_BODY_BYTES: usize = 16 * 1024;

/// Time within which the headers of a request must arrive, also on a connection that is kept alive.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Time within which the body of a request must arrive.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of open connections. Further ones wait in the queue of the kernel.
pub(super) const MAX_CONNECTIONS: usize = 64;

/// Maximum number of simulations that run at a time, and of forecasts. Each simulation uses all cores.
pub(super) const MAX_RUNNING: usize = 2;

/// Maximum number of simulations that run, wait, or whose results are being sent, and of forecasts.
pub(super) const MAX_JOBS: usize = 16;

/// Maximum duration of a simulation.
pub(super) const MAX_RUN_TIME: Duration = Duration::from_secs(20);

/// Time within which the results of a simulation must have been received.
pub(super) const MAX_SEND_TIME: Duration = Duration::from_secs(60);

/// Maximum number of clients of a race; the program simulates 67 million.
pub(super) const MAX_CLIENTS: u64 = 1_000_000;

/// Maximum number of clients that are shown one by one.
pub(super) const MAX_DOTS: u64 = 10_000;

/// Maximum number of attempts that are shown of all clients of a policy, on average over seeds.
pub(super) const MAX_SHOWN_ATTEMPTS: u64 = 300_000;

/// Maximum number of bins of a curve. Longer ones are added up.
pub(super) const MAX_BINS: usize = 6_000;
