//! Suggestions for mistyped names.

/// Returns the name that is most like `word`, if at most one letter in three differs.
#[must_use]
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (distance(word.as_bytes(), name.as_bytes()), name));
    near.filter(|(distance, _)| *distance <= word.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns how many letters have to be changed, added or removed (Levenshtein).
fn distance(a: &[u8], b: &[u8]) -> usize {
    // Names have at most 31 letters; of a longer one only the first 31 count.
    let mut row = [0; 32];
    let b = &b[..b.len().min(row.len() - 1)];
    for (at, cell) in row.iter_mut().enumerate() {
        *cell = at;
    }
    for (i, x) in a.iter().enumerate() {
        let mut corner = core::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != y);
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
    }

    #[test]
    fn the_distance_of_two_words_counts_edits() {
        for (a, b, want) in [
            ("base", "base", 0),
            ("bse", "base", 1),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("abc", "", 3),
            ("max-atempts", "max-attempts", 1),
            ("flaw", "lawn", 2),
        ] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), want, "{a}, {b}");
        }
        // Longer than the row.
        assert_eq!(distance(b"", "x".repeat(100).as_bytes()), 31);
        assert_eq!(distance("x".repeat(100).as_bytes(), b"x"), 99);
    }
}
