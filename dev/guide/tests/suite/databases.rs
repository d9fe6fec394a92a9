//! The tables of codes on the page about databases, row by row, and that none is missing.

use stagger::{FailureKind, Outcome, classify};

const PAGE: &str = include_str!("../../../../docs/guide/databases.md");

/// Returns the codes below this heading, each with the outcome that the page says.
fn table(heading: &str) -> Vec<(&'static str, Outcome)> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let codes = rows.flat_map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let outcome = match cells[3] {
            "transient" => Outcome::TRANSIENT,
            "throttled" => Outcome::throttled(None),
            "permanent" => Outcome::Permanent,
            "unsafe to retry" => Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None },
            other => panic!("{other} is no outcome: {row}"),
        };
        cells[1].split('`').skip(1).step_by(2).map(move |code| (code, outcome))
    });
    let codes: Vec<_> = codes.collect();
    assert!(codes.len() > 8, "{heading}: {codes:?}");
    codes
}

/// Asserts that the rule and the table agree on each code, and that of `all` codes only those of the table are not
/// permanent.
fn check<C>(
    heading: &str,
    all: impl IntoIterator<Item = C>,
    parse: impl Fn(&str) -> Option<C>,
    rule: impl Fn(&C) -> Outcome,
) where
    C: PartialEq + core::fmt::Debug,
{
    let mut listed = Vec::new();
    for (text, want) in table(heading) {
        if let Some(code) = parse(text) {
            assert_eq!(rule(&code), want, "{heading}: {code:?}");
            listed.push(code);
        }
    }
    let unlisted = |code: &C| rule(code) != Outcome::Permanent && !listed.contains(code);
    let missing: Vec<_> = all.into_iter().filter(unlisted).collect();
    assert!(missing.is_empty(), "not on the page, {heading}: {missing:?}");
}

#[test]
fn the_page_has_every_sqlstate_that_is_not_permanent() {
    // All codes of the classes that have one, and the first code of every other class.
    let characters = || ('0'..='9').chain('A'..='Z');
    let classes = ["08", "25", "26", "40", "53", "55", "57"];
    let of_class = |class: &'static str| {
        characters()
            .flat_map(move |a| characters().flat_map(move |b| characters().map(move |c| format!("{class}{a}{b}{c}"))))
    };
    let firsts = characters().flat_map(move |a| characters().map(move |b| format!("{a}{b}000")));
    // A class of the page stands for its codes.
    let is_of_listed_class = |code: &String| code.starts_with("08") || code.starts_with("53");
    let all = classes.into_iter().flat_map(of_class).chain(firsts).filter(|code| !is_of_listed_class(code));
    let parse = |text: &str| Some(if text.len() == 2 { format!("{text}006") } else { text.to_owned() });
    check("PostgreSQL", all, parse, |code| classify::sqlstate(code));
}

#[test]
fn the_page_has_every_number_of_mysql_that_is_not_permanent() {
    check("MySQL", 0..=u16::MAX, |text| text.parse().ok(), |&number| classify::mysql(number));
}

#[test]
fn the_page_has_every_result_code_of_sqlite_that_is_not_permanent() {
    // Every primary code; an extended one has the outcome of its low byte.
    check("SQLite", 0..=0xff, |text| text.parse().ok(), |&code| classify::sqlite(code));
}

#[test]
fn the_page_has_every_code_of_mongodb_that_is_not_permanent() {
    let by_code = |&code: &i32| classify::mongodb([""; 0], Some(code));
    check("MongoDB", 0..20_000, |text| text.parse().ok(), by_code);
    let is_label = |text: &str| text.parse::<i32>().is_err().then(|| text.to_owned());
    check("MongoDB", [], is_label, |label| classify::mongodb([label], None));
}

#[test]
fn the_page_says_what_redis_replies_mean() {
    check("Redis", [], |text| Some(format!("-{text} and more")), |reply| classify::redis(reply));
}
