//! gRPC headers and statuses: their conformance rows, through the layer, on tokio's paused clock.

mod calls;
mod wire;

use core::time::Duration;

const OK: u32 = 0;
const CANCELLED: u32 = 1;
const UNKNOWN: u32 = 2;
const INVALID_ARGUMENT: u32 = 3;
const RESOURCE_EXHAUSTED: u32 = 8;
const ABORTED: u32 = 10;
const UNAVAILABLE: u32 = 14;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
