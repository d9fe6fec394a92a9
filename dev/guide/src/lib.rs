//! The READMEs and the pages of `docs/guide`, one module each, so that their code is compiled and run as doc tests. The
//! tests of this package check what the pages say about delays:
//!
//! ```sh
//! cargo test -p stagger-guide
//! ```

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../crates/stagger/README.md")]
pub mod readme_of_stagger {}

#[cfg(doctest)]
#[doc = include_str!("../../../crates/stagger-cenkalti/README.md")]
pub mod readme_of_cenkalti {}

#[cfg(doctest)]
#[doc = include_str!("../../../crates/stagger-core/README.md")]
pub mod readme_of_core {}

#[cfg(doctest)]
#[doc = include_str!("../../../crates/stagger-db/README.md")]
pub mod readme_of_db {}

#[cfg(doctest)]
#[doc = include_str!("../../../crates/stagger-http/README.md")]
pub mod readme_of_http {}

#[cfg(doctest)]
#[doc = include_str!("../../../fleet/stagger-redis/README.md")]
pub mod readme_of_redis {}

#[cfg(doctest)]
#[doc = include_str!("../../../lab/stagger-lint/README.md")]
pub mod readme_of_lint {}

#[cfg(doctest)]
#[doc = include_str!("../../../crates/stagger-sim/README.md")]
pub mod readme_of_sim {}

#[cfg(doctest)]
#[doc = include_str!("../../../crates/stagger-ws/README.md")]
pub mod readme_of_ws {}

#[doc = include_str!("../../../docs/guide/check.md")]
pub mod check {}

#[doc = include_str!("../../../docs/guide/check-config.md")]
pub mod check_config {}

#[doc = include_str!("../../../docs/guide/choosing.md")]
pub mod choosing {}

#[doc = include_str!("../../../docs/guide/databases.md")]
pub mod databases {}

#[doc = include_str!("../../../docs/guide/drill.md")]
pub mod drill {}

#[doc = include_str!("../../../docs/guide/errors.md")]
pub mod errors {}

#[doc = include_str!("../../../docs/guide/fleet.md")]
pub mod fleet {}

#[doc = include_str!("../../../docs/guide/from-backoff.md")]
pub mod from_backoff {}

#[doc = include_str!("../../../docs/guide/from-backon.md")]
pub mod from_backon {}

#[doc = include_str!("../../../docs/guide/from-cenkalti.md")]
pub mod from_cenkalti {}

#[doc = include_str!("../../../docs/guide/from-failsafe-go.md")]
pub mod from_failsafe_go {}

#[doc = include_str!("../../../docs/guide/from-polly.md")]
pub mod from_polly {}

#[doc = include_str!("../../../docs/guide/from-reqwest-retry.md")]
pub mod from_reqwest_retry {}

#[doc = include_str!("../../../docs/guide/from-resilience4j.md")]
pub mod from_resilience4j {}

#[doc = include_str!("../../../docs/guide/from-tenacity.md")]
pub mod from_tenacity {}

#[doc = include_str!("../../../docs/guide/from-tokio-retry.md")]
pub mod from_tokio_retry {}

#[doc = include_str!("../../../docs/guide/from-tower.md")]
pub mod from_tower {}

#[doc = include_str!("../../../docs/guide/guards.md")]
pub mod guards {}

#[doc = include_str!("../../../docs/guide/hedging.md")]
pub mod hedging {}

#[doc = include_str!("../../../docs/guide/http.md")]
pub mod http {}

#[doc = include_str!("../../../docs/guide/metrics.md")]
pub mod metrics {}

#[doc = include_str!("../../../docs/guide/pools.md")]
pub mod pools {}

#[doc = include_str!("../../../docs/guide/queues.md")]
pub mod queues {}

#[doc = include_str!("../../../docs/guide/recipes.md")]
pub mod recipes {}

#[doc = include_str!("../../../docs/reference/policy.md")]
pub mod reference_policy {}

#[doc = include_str!("../../../docs/guide/run.md")]
pub mod run {}

#[doc = include_str!("../../../docs/guide/simulate.md")]
pub mod simulate {}

#[doc = include_str!("../../../docs/guide/sse.md")]
pub mod sse {}

#[doc = include_str!("../../../docs/guide/start.md")]
pub mod start {}

#[doc = include_str!("../../../docs/guide/systems.md")]
pub mod systems {}

#[doc = include_str!("../../../docs/guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../../../docs/guide/truth.md")]
pub mod truth {}

#[doc = include_str!("../../../docs/guide/websocket.md")]
pub mod websocket {}
