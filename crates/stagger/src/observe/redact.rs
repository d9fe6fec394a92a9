//! Removes from the text of an error what must not be in a log.

use std::borrow::Cow;

/// What replaces a secret.
const HIDDEN: &str = "***";

/// Returns `text` without the user information, the queries and the fragments of the URLs in it. Tokens are often in
/// queries, and the texts of many errors contain the URL of the request.
///
/// A word without a scheme, such as `/feed?token=…`, counts as a URL if its query has a value.
pub(crate) fn hide_url_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains(['?', '#', '@']) && !FIELDS.iter().any(|field| text.contains(field)) {
        return Cow::Borrowed(text);
    }
    let mut hidden = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>')) {
        hide_in_word(word, &mut hidden);
    }
    for field in FIELDS {
        hide_field(field, &mut hidden);
    }
    Cow::Owned(hidden)
}

/// The fields of the `Debug` output of `url::Url` that may contain a secret.
const FIELDS: [&str; 3] = [r#"query: Some(""#, r#"password: Some(""#, r#"fragment: Some(""#];

/// Writes a word, which may end with the character that ended it.
fn hide_in_word(word: &str, hidden: &mut String) {
    let mut rest = word;
    let mut is_url = false;
    // A word may contain several URLs, but none after a query has begun.
    while let Some(scheme) = rest.find("://").filter(|&scheme| !rest[..scheme].contains(['?', '#'])) {
        let (before, after) = rest.split_at(scheme + "://".len());
        hidden.push_str(before);
        let authority = after.find(['/', '?', '#', ',']).unwrap_or(after.len());
        rest = match after[..authority].rfind('@') {
            Some(at) => {
                hidden.push_str(HIDDEN);
                &after[at..]
            }
            None => after,
        };
        is_url = true;
    }
    let secret = rest.find(['?', '#']).filter(|&at| is_url || rest[at..].starts_with('?') && rest[at..].contains('='));
    let Some(at) = secret else { return hidden.push_str(rest) };
    // The mark itself stays, so that a reader sees that something was there.
    let (shown, secret) = rest.split_at(at + 1);
    hidden.push_str(shown);
    hidden.push_str(HIDDEN);
    // What closes a quotation around the URL is not part of it.
    let closing = secret.trim_end_matches(|c: char| c.is_whitespace() || "\"'`<>()[]{}\\,.;:".contains(c));
    hidden.push_str(&secret[closing.len()..]);
}

/// Replaces the values of a field, up to their closing quotes.
fn hide_field(field: &str, hidden: &mut String) {
    let mut from = 0;
    while let Some(found) = hidden[from..].find(field) {
        let start = from + found + field.len();
        let end = hidden[start..].find('"').map_or(hidden.len(), |length| start + length);
        hidden.replace_range(start..end, HIDDEN);
        from = start + HIDDEN.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_fragments_and_credentials_of_urls_are_hidden() {
        for (text, want) in [
            ("connection refused", "connection refused"),
            ("for url (http://a.test/p)", "for url (http://a.test/p)"),
            ("for url (http://a.test/p?token=x)", "for url (http://a.test/p?***)"),
            ("for url (http://a.test/p?token=x(y)z): refused", "for url (http://a.test/p?***): refused"),
            (r#"url: "https://a.test/p?t=x", source"#, r#"url: "https://a.test/p?***", source"#),
            ("wss://me:hunter2@a.test:81/p#x", "wss://***@a.test:81/p#***"),
            ("postgres://me:p@ss@db/x", "postgres://***@db/x"),
            ("http://a.test?x", "http://a.test?***"),
            ("one http://u@a?x two https://v@b/?y=z", "one http://***@a?*** two https://***@b/?***"),
            ("http://a/p,http://u:v@b/p?q", "http://a/p,http://***@b/p?***"),
            ("http://a/?to=http://u:v@b/?q", "http://a/?***"),
            ("GET /feed?token=x HTTP/1.1", "GET /feed?*** HTTP/1.1"),
            ("why? a=b, me@home, #1", "why? a=b, me@home, #1"),
            (
                r#"Url { query: Some("a=b"), password: Some("c"), fragment: None }"#,
                r#"Url { query: Some("***"), password: Some("***"), fragment: None }"#,
            ),
            (r#"fragment: Some("x")"#, r#"fragment: Some("***")"#),
            ("", ""),
        ] {
            assert_eq!(hide_url_secrets(text), want);
        }
    }
}
