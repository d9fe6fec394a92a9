//! What a server says about when to come back.
//!
//! | header | form | taken for |
//! |---|---|---|
//! | [`Stagger-Slot`](SLOT) | an [`Reservation`](stagger::admission::Reservation), in milliseconds | [`ServerHint::Reserved`](stagger::ServerHint::Reserved), kept to the tick |
//! | `retry-after-ms`, `x-ms-retry-after-ms` | milliseconds, whole or with a fraction | [`ServerHint::AtLeast`](stagger::ServerHint::AtLeast) |
//! | `Retry-After` | whole seconds, or one of the three dates of RFC 9110 | `ServerHint::AtLeast` |
//! | `RateLimit` | the IETF draft, in both of its forms: only what has nothing remaining | `ServerHint::AtLeast` |
//! | `RateLimit-Reset`, `X-RateLimit-Reset` | seconds, or (from 10⁹ on) a Unix time; only if nothing remains | `ServerHint::AtLeast` |
//!
//! The first row that is there and can be read counts; a header that cannot be read is as good as none. Of a header that
//! is there more than once, the longest wait counts: to come too late is safe, too early is not. Whatever is too large for
//! the clock is as long as the clock can tell, and so beyond any `max_hint`.

mod date;
mod hint;
mod rate_limit;
mod retry_after;
mod slot;

pub use date::parse_http_date;
pub use hint::hint;
pub use rate_limit::rate_limit;
pub use retry_after::{RetryAfter, retry_after};
pub use slot::{SLOT, TICKET, slot};
