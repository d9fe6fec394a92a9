//! Suggestions for mistyped names.

/// Returns the name that is most like `word`, if at most one letter in three differs.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (distance(word, name), name));
    let most = word.chars().count().div_ceil(3);
    near.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns how many letters have to be changed, added or removed (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = core::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_unless_all_are_far() {
        for (word, want) in [("tokns", Some("tokens")), ("windw", Some("window")), ("weather", None), ("", None)] {
            assert_eq!(nearest(word, ["tokens", "window"]), want, "{word}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
