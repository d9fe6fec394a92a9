use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

use crate::header::parse_digits;

/// Resets from this value on are Unix times (from 2001 on), not numbers of seconds (31 years).
const FIRST_UNIX_TIME: u64 = 1_000_000_000;

/// Returns the time until the rate limit of a response resets, if the limit is exhausted.
///
/// - `RateLimit: "default";r=0;t=30` (IETF draft 8 and later): the longest `t` among the limits with `r=0`.
/// - `RateLimit: limit=100, remaining=0, reset=30` (draft 7).
/// - `RateLimit-Remaining: 0` and `RateLimit-Reset: 30` (earlier drafts), also with the prefix `X-`. A reset of 10⁹ or more
///   is a Unix time, as GitHub sends it. A missing `Remaining` counts as 0.
///
/// Malformed headers are ignored, as the draft requires. `now` is the wall-clock time at which the response was received.
#[must_use]
pub fn rate_limit(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    from_draft(headers)
        .or_else(|| from_pair(headers, "ratelimit-remaining", "ratelimit-reset", now))
        .or_else(|| from_pair(headers, "x-ratelimit-remaining", "x-ratelimit-reset", now))
}

fn from_draft(headers: &HeaderMap) -> Option<Duration> {
    let lines: Option<Vec<_>> = headers.get_all("ratelimit").into_iter().map(|line| line.to_str().ok()).collect();
    // A structured list may be split over several header lines.
    let text = lines?.join(", ");
    let spent = match Parser::new(&text).parse::<List>() {
        Ok(limits) if limits.iter().all(is_named) => limits.iter().filter_map(until_reset).max(),
        _ => Parser::new(&text).parse::<Dictionary>().ok().and_then(|limit| {
            let number = |name| number(bare(limit.get(name)?)?);
            (number("remaining")? == 0).then(|| number("reset")).flatten()
        }),
    };
    spent.map(Duration::from_secs)
}

fn is_named(entry: &ListEntry) -> bool {
    matches!(bare(entry), Some(BareItem::String(_)))
}

fn until_reset(entry: &ListEntry) -> Option<u64> {
    let ListEntry::Item(Item { params, .. }) = entry else { return None };
    let number = |name| number(params.get(name)?);
    if number("r")? == 0 { number("t") } else { None }
}

fn bare(entry: &ListEntry) -> Option<&BareItem> {
    if let ListEntry::Item(item) = entry { Some(&item.bare_item) } else { None }
}

fn number(item: &BareItem) -> Option<u64> {
    if let BareItem::Integer(number) = item { u64::try_from(i64::from(*number)).ok() } else { None }
}

fn from_pair(headers: &HeaderMap, remaining: &str, reset: &str, now: SystemTime) -> Option<Duration> {
    let longest = |name: &str| {
        let values = headers.get_all(name).into_iter();
        values.filter_map(|value| parse_digits(value.to_str().ok()?.trim_matches([' ', '\t']))).max()
    };
    if headers.contains_key(remaining) && longest(remaining) != Some(0) {
        return None;
    }
    let reset = longest(reset)?;
    if reset < FIRST_UNIX_TIME {
        return Some(Duration::from_secs(reset));
    }
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Some(Duration::from_secs(reset).saturating_sub(since))
}
