//! Guards for a fleet: a retry budget, a quiet period, admission and operator controls for all processes of a service,
//! shared through Redis or Valkey.
//!
//! A hundred processes with a budget of 500 tokens each are a burst of 10,000 retries. [`SharedTokens`] is one budget
//! for all of them:
//!
//! ```no_run
//! // It needs a runtime, and a store to be of use.
//! use core::time::Duration;
//!
//! use stagger::{Policy, Retrier, policy};
//! use stagger_redis::Fleet;
//!
//! const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(3));
//!
//! # async fn fleet() -> Result<(), stagger_redis::SettingsError> {
//! // Eight processes usually run.
//! let fleet = Fleet::builder("redis://127.0.0.1:6379", 8).namespace("shop").build()?;
//! let payments = fleet.tokens("payments").capacity(500).refill(50, Duration::from_secs(1)).build()?;
//! let retrier = Retrier::new(POLICY).named("payments").budget(payments);
//! # let _ = retrier;
//! # Ok(())
//! # }
//! ```
//!
//! [`SharedWindow`] bounds the retries of all by a share of the calls of all.
//!
//! [`SharedQuietPeriod`] is one pause for all of them: if the server tells one process to wait, all wait.
//!
//! ```no_run
//! // It needs a runtime, and a store to be of use.
//! use stagger::{Policy, Retrier};
//! use stagger_redis::Fleet;
//!
//! # async fn fleet() -> Result<(), stagger_redis::SettingsError> {
//! let fleet = Fleet::builder("redis://127.0.0.1:6379", 8).namespace("shop").build()?;
//! let quiet = fleet.quiet_period("payments").build()?;
//! let retrier = Retrier::new(Policy::DEFAULT).named("payments").quiet_period(quiet);
//! # let _ = retrier;
//! # Ok(())
//! # }
//! ```
//!
//! [`SharedBreaker`] is a circuit breaker that opens earlier if those of other processes are open.
//!
//! [`SharedAdmission`] is one virtual queue for the clients of all servers behind a balancer.
//!
//! [`Fleet::controls`] lets [`RetryControls`](stagger::control::RetryControls) obey what an operator sets once for all,
//! with `stagger control` or a [`ControlStore`].
//!
//! # How it works
//!
//! A process holds a *lease*: tokens that it may spend alone for three seconds. [Acquiring a permit](SharedTokens)
//! touches local atomics and never waits. One background task per [`Fleet`] reports to the store each second what the
//! process has spent and earned, and whether it was told to wait, for all guards in one call, and receives its next
//! leases and what the others were told. A process that runs short, or was told to wait, reports earlier; there are
//! never more than `T + 3` reports in T seconds, and one at the end of the process. A connection must be made in 500
//! ms, and a reply must come in 250 ms. After a failure the task reconnects by a policy of stagger, with full jitter up
//! to one second.
//!
//! Counters are cumulative, so a lost reply or a failover to a replica that lacks the last second is repaired by the
//! next report. Only durations travel: the clocks of the processes do not matter, and the store's clock may jump.
//!
//! # Without the store
//!
//! No call and no constructor fails because the store is away. If there is no reply for three seconds (one second at
//! the start), a process uses its *local share*: capacity and refill, divided by the number of processes. That number
//! is the larger of the expected one and the largest that the store has seen. When the store is back, nothing is
//! granted for 1.25 seconds, in which every process reports. The loss and the return are told once, as a [`FleetEvent`]
//! and with the features below.
//!
//! What the fleet may spend beyond one bucket, with C the capacity, R the refill per second, E the divisor, N the
//! number of processes, and T the seconds without the store:
//!
//! | failure | tokens at most |
//! |---|---|
//! | the store hangs, is killed, or cannot be reached by any process | 0; with N above E: (N/E − 1) · (C + R·T) |
//! | k processes cannot reach it, and the others can | their leases, and k/E · R·T; C/E for one that never had a lease |
//! | a process is killed | what it had spent since its last report, at most its lease |
//! | a process is stopped and continues | its lease, which it may spend on waking and which has returned to the others |
//! | the store loses its data | 0, and R for each second that a report is late; C if a process that never had a lease is the first to report, or if none had one yet |
//! | a failover loses the last second | the leases that were granted in it |
//! | the store's clock jumps | R for a jump below one second, which is not noticed; 0 for a longer one |
//! | two versions with different limits run side by side | the larger capacity; the limits of the last report are in force |
//!
//! After an overshoot the fleet has a debt, which is at most one capacity: it is paid by refill and rewards before
//! there are leases again.
//!
//! A [`SharedWindow`] grants nothing for 1.25 seconds after a loss of data, in which all processes report their calls
//! and retries of the last ttl. Beyond its bound there may be, with M the minimum per second:
//!
//! | failure | retries at most |
//! |---|---|
//! | the store hangs, is killed, or cannot be reached by any process | what some processes had used of the others' share within the ttl |
//! | k processes cannot reach it, and the others can | the ratio of their calls within the ttl, and k/E · M · ttl |
//! | a process is killed, or is stopped and continues | its lease |
//! | the store loses its data, or a failover its last second | the retries of processes that ended within the ttl |
//! | the store's clock jumps | for a jump below a second, the ratio of the calls of that time; for a longer one, as if the data were lost |
//!
//! If the runtime that the fleet was built in ends, nothing is refilled any more, and the processes spend what they
//! hold.
//!
//! # In the store
//!
//! Tested with Redis 7.0 and 6.2; the commands are in Redis since version 5, and in Valkey. All keys begin with
//! `{stagger:<namespace>}:`, so those of a namespace are in one slot of a cluster, and all but the controls expire one
//! hour after the last report. In names, `%`, `{`, `}`, `:`, spaces and control characters are escaped as `%` and two
//! digits.
//!
//! | key | type | for |
//! |---|---|---|
//! | `<target>:tokens` | hash, about 74 bytes per process | a token bucket, and what each process holds and has spent |
//! | `<target>:leases`, `:demand`, `:gone` | sorted sets | when leases end, which processes want more, which have left |
//! | `<target>:window-<ms>` | hash, 100 to 300 bytes per process | a window of so many milliseconds: calls and retries by slot, and what each process has reported |
//! | `<target>:window-<ms>-leases`, `-demand`, `-gone` | sorted sets | as for a token bucket |
//! | `<target>:quiet` | hash, only during a pause | when the pause of a quiet period ends, and which process sends the probe |
//! | `<target>:votes`, `:asked` | sorted sets | which processes wait without having been told to, and until when |
//! | `<target>:open` | sorted set | the processes whose breaker is open |
//! | `<target>:admission`, `:servers` | hash, sorted set | which server has which share of the rate of an admission, and when it ends |
//! | `processes` | sorted set | the processes that report, if there is a quiet period or a breaker |
//! | `controls` | hash | the text of the operator controls, its note, version and end; expires after 30 days without a report |
//! | `controls-changes` | list | the last 100 changes, the newest first: the note, and the text after a line break; expires likewise |
//!
//! One script makes a report, and another sets controls. They are called by their digests, so two releases with
//! different scripts run side by side. An account needs `EVALSHA`, `SCRIPT LOAD`, `TIME`, `DEL`, `PEXPIRE`, `HMGET`,
//! `HGET`, `HSET`, `HDEL`, `ZADD`, `ZREM`, `ZCARD`, `ZSCORE`, `ZRANGEBYSCORE` and `ZREMRANGEBYSCORE` on these keys, for
//! a token bucket or a window. A quiet period needs `EVALSHA`, `SCRIPT LOAD`, `TIME`, `DEL`, `PEXPIRE`, `HMGET`,
//! `HSET`, `ZADD`, `ZREM`, `ZCARD`, `ZRANGEBYSCORE`, `ZREVRANGE` and `ZREMRANGEBYSCORE`. A breaker needs `EVALSHA`,
//! `SCRIPT LOAD`, `TIME`, `PEXPIRE`, `ZADD`, `ZREM`, `ZCARD` and `ZREMRANGEBYSCORE`. An admission needs `EVALSHA`,
//! `SCRIPT LOAD`, `TIME`, `DEL`, `PEXPIRE`, `HMGET`, `HGET`, `HSET`, `HDEL`, `ZADD`, `ZREM`, `ZCARD` and
//! `ZRANGEBYSCORE`. Obeying operator controls needs `EVALSHA`, `SCRIPT LOAD`, `TIME`, `HMGET` and `PEXPIRE`, and
//! setting them `EVALSHA`, `SCRIPT LOAD`, `TIME`, `HGET`, `HMGET`, `HSET`, `LPUSH`, `LTRIM` and `PEXPIRE`. The store
//! must not evict them: `noeviction`, or a `volatile-` policy with room.
//!
//! A server is trusted to be Redis: a reply that is not one of the script is an error, and grants more than the
//! capacity are cut, but the length of a reply is bounded by the client library's time limit alone.
//!
//! # Features
//!
//! | feature | for |
//! |---|---|
//! | `rustls` | addresses with `rediss:`, with the system's root certificates, or those that `SSL_CERT_FILE` names |
//! | `sentinel` | [`Fleet::sentinel`](Fleet#method.sentinel) |
//! | `cluster` | [`Fleet::cluster`](Fleet#method.cluster) |
//! | `metrics` | the metrics below |
//! | `tracing` | a warning when the store is lost, and a line at `INFO` when it is back, with the tracing target `stagger` |
//!
//! # Metrics
#![doc = include_str!("metrics.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod controls;
mod error;
mod fleet;
mod guards;
mod leases;
// It compares the script with its model, and drives guards without a task: private functions.
#[cfg(test)]
#[path = "../tests/model/mod.rs"]
mod model;
mod observe;
mod registry;
mod store;
mod task;
pub use controls::{ControlStore, ControlStoreError, StoredControls};
pub use error::{SettingsError, SettingsProblem};
pub use fleet::{ControlsSnapshot, Fleet, FleetBuilder, FleetSnapshot};
pub use guards::admission::{SharedAdmission, SharedAdmissionBuilder, SharedAdmissionSnapshot};
pub use guards::breaker::{SharedBreaker, SharedBreakerBuilder, SharedBreakerSnapshot};
pub use guards::quiet::{Quorum, SharedQuietPeriod, SharedQuietPeriodBuilder};
pub use guards::tokens::{SharedTokens, SharedTokensBuilder, SharedTokensSnapshot};
pub use guards::window::{SharedWindow, SharedWindowBuilder, SharedWindowSnapshot};
pub use observe::FleetEvent;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use observe::describe_metrics;
