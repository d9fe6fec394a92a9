//! Reads the tables of a page.

/// Returns the rows of the table with this header: the condition and the reaction.
pub(super) fn table(page: &str, head: &str) -> Vec<(String, String)> {
    let (_, rows) = page.split_once(&format!("| {head} | then |\n|---|---|\n")).expect("a table");
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.trim_matches('|').split_once('|').expect("two cells"));
    cells.map(|(named, then)| (named.trim().to_owned(), then.trim().to_owned())).collect()
}

/// Returns the numbers in a text.
pub(super) fn numbers(text: &str) -> Vec<u16> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}
