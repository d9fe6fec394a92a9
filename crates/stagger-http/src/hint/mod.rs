//! Server hints: when a response asks for the next attempt.
//!
//! | header | format | becomes |
//! |---|---|---|
//! | [`x-should-retry`](crate::header::SHOULD_RETRY) | `false` | [`ServerHint::DoNotRetry`](stagger::ServerHint::DoNotRetry) |
//! | [`Stagger-Reservation`](crate::header::RESERVATION) | a reservation ([`Reservation`](stagger::admission::Reservation)), in milliseconds | [`ServerHint::Reserved`](stagger::ServerHint::Reserved), honored to the timer tick |
//! | `retry-after-ms`, `x-ms-retry-after-ms` | milliseconds, with or without a fraction | [`ServerHint::AtLeast`](stagger::ServerHint::AtLeast) |
//! | `x-amz-retry-after` | whole milliseconds, as the services of AWS send it; with the hint mode of the AWS SDKs, [`HintMode::Clamp`](stagger::HintMode::Clamp), it adds at most 5 s to the delay | `ServerHint::AtLeast` |
//! | `Retry-After` | whole seconds, or one of the three date formats of RFC 9110 | `ServerHint::AtLeast` |
//! | `RateLimit` | the IETF draft, in both of its formats; only limits with nothing remaining | `ServerHint::AtLeast` |
//! | `RateLimit-Reset`, `X-RateLimit-Reset` | seconds, or (from 10⁹ on) a Unix time; only if nothing remains | `ServerHint::AtLeast` |
//!
//! The first row whose header is present and valid wins; malformed headers are ignored. If a header is repeated, the longest
//! delay wins: arriving late is safe, arriving early is not. A delay that exceeds the clock's range saturates, and so exceeds
//! any `max_hint`.
//!
//! `x-should-retry: true` is no hint when to return. The tower layer and the reqwest middleware then retry a status that is
//! otherwise permanent, if the request is safe to retry.

mod date;
mod rate_limit;
mod reservation;
mod retry_after;
mod server_hint;
mod should_retry;

pub use date::parse_http_date;
pub use rate_limit::rate_limit;
pub use reservation::reservation;
pub use retry_after::{RetryAfter, retry_after};
pub use server_hint::server_hint;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub(crate) use server_hint::server_hint_after;
pub use should_retry::should_retry;
