/// Parses `1*DIGIT`, without a sign. Saturates at `u64::MAX`. Returns `None` for anything else.
pub(crate) fn parse_digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}
