use http::{HeaderMap, HeaderName, HeaderValue};

/// W3C Baggage, §3.
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// Number of layers above the receiver, the sender included, that are making a retry.
const DEPTH: &str = "stagger.depth";

/// Longest header that is written, in bytes: what a receiver has to accept.
const MAX_LENGTH: usize = 8_192;

/// Largest depth that is written: more layers are an error or an attack.
const MAX_DEPTH: u32 = 99;

/// Counts this layer in the member `stagger.depth` of the header `baggage`, which the application has propagated from
/// its own caller. A header that cannot be read, or would be too long, is left as it is.
pub(super) fn count_retry(headers: &mut HeaderMap) {
    let Some(members) = members(headers) else { return };
    let depth = members.iter().find_map(|member| depth_of(member)).unwrap_or_default();
    let own = format!("{DEPTH}={}", depth.saturating_add(1).min(MAX_DEPTH));
    let others = members.iter().filter(|member| depth_of(member).is_none()).map(String::as_str);
    // All lines become one, which is the same list (RFC 9110 §5.3). The depth replaces the caller's, which it
    // includes.
    let text = others.chain([&*own]).collect::<Vec<_>>().join(",");
    if text.len() <= MAX_LENGTH {
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(BAGGAGE, value);
        }
    }
}

/// Returns the number of layers above this server that are making a retry, from the member `stagger.depth` of the W3C
/// header `baggage` of a request: what `depth_in_baggage()` of its clients has written. 0 if the request is of a first
/// attempt, or has no such member; at most 99.
///
/// A server in overload can reject requests of the highest depth first: of these, most work has been spent, and most
/// callers have given up. Any client can write the header, so remove it at the edge, and do not grant anything by it.
///
/// ```
/// use stagger_http::retry_depth;
///
/// let mut headers = http::HeaderMap::new();
/// assert_eq!(retry_depth(&headers), 0);
/// headers.insert("baggage", http::HeaderValue::from_static("user=7, stagger.depth=2"));
/// assert_eq!(retry_depth(&headers), 2);
/// ```
#[must_use]
pub fn retry_depth(headers: &HeaderMap) -> u32 {
    let lines = headers.get_all(BAGGAGE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(depth_of).unwrap_or_default().min(MAX_DEPTH)
}

/// Returns the members of all lines of the header, without the space around them; `None` if one is not text.
fn members(headers: &HeaderMap) -> Option<Vec<String>> {
    let lines: Option<Vec<&str>> = headers.get_all(BAGGAGE).iter().map(|line| line.to_str().ok()).collect();
    let members = lines?.into_iter().flat_map(|line| line.split(',')).map(str::trim);
    Some(members.filter(|member| !member.is_empty()).map(str::to_owned).collect())
}

/// Returns the depth if this is its member; 0 if its value is no number.
fn depth_of(member: &str) -> Option<u32> {
    let (key, value) = member.split_once('=')?;
    if key.trim() != DEPTH {
        return None;
    }
    let value = value.split(';').next().unwrap_or_default();
    Some(value.trim().parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(BAGGAGE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        count_retry(&mut headers);
        headers.get_all(BAGGAGE).iter().map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned()).collect()
    }

    #[test]
    fn a_layer_is_added_to_those_above_and_other_members_stay() {
        for (lines, wanted) in [
            (&[][..], "stagger.depth=1"),
            (&["user=7;p=1, stagger.depth = 2 ;x"], "user=7;p=1,stagger.depth=3"),
            (&["a=1", "stagger.depth=1,b=2"], "a=1,b=2,stagger.depth=2"),
            (&["stagger.depth=4294967295"], "stagger.depth=99"),
            (&["stagger.depth=-1,,"], "stagger.depth=1"),
        ] {
            assert_eq!(counted(lines), [wanted], "{lines:?}");
        }
    }

    #[test]
    fn a_server_reads_what_its_clients_have_written() {
        for (lines, depth) in [
            (&[][..], 0),
            (&["user=7;p=1, stagger.depth = 2 ;x"], 2),
            (&["a=1", "b=2,stagger.depth=1"], 1),
            (&["stagger.depth=4294967295"], 99),
            (&["stagger.depth=-1"], 0),
            (&["a=\u{df}", "stagger.depth=4"], 4),
            (&["stagger.depths=4"], 0),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(BAGGAGE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
            }
            assert_eq!(retry_depth(&headers), depth, "{lines:?}");
            count_retry(&mut headers);
            let is_text = headers.get_all(BAGGAGE).iter().all(|line| line.to_str().is_ok());
            if is_text && depth < MAX_DEPTH {
                assert_eq!(retry_depth(&headers), depth + 1, "{lines:?}");
            }
        }
    }

    #[test]
    fn a_header_that_is_too_long_or_no_text_is_left_as_it_is() {
        let long = format!("a={}", "b".repeat(MAX_LENGTH - 10));
        assert_eq!(counted(&[&long]), [long]);
        assert_eq!(counted(&["a=ß"]), ["a=ß"]);
    }
}
