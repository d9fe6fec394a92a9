use stagger_lint::FileFinding;

use crate::check::result::{CheckResult, Subject};
use stagger_terminal::plot::svg::Element;

/// Returns the findings as JUnit XML: a suite for each file or policy, with a failed test for each finding, or one that passed.
pub(crate) fn suites(checked: &CheckResult) -> String {
    let subjects = checked.subjects();
    let failures: usize = subjects.iter().map(|subject| subject.findings.len()).sum();
    let tests: usize = subjects.iter().map(|subject| subject.findings.len().max(1)).sum();
    let root = Element::new("testsuites").set("name", "stagger check");
    let root = root.set("tests", tests.to_string()).set("failures", failures.to_string()).set("errors", "0");
    let suites: Vec<_> = subjects.iter().map(suite).collect();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", root.children(&suites))
}

fn suite(subject: &Subject<'_>) -> Element {
    let count = subject.findings.len();
    let suite = Element::new("testsuite").set("name", &subject.name).set("tests", count.max(1).to_string());
    let suite = suite.set("failures", count.to_string()).set("errors", "0");
    if count == 0 {
        return suite.child(&Element::new("testcase").set("name", "no findings").set("classname", &subject.name));
    }
    let cases: Vec<_> = subject
        .findings
        .iter()
        .map(|found| {
            let rule = found.finding.rule();
            let place = found.placed.and_then(FileFinding::place);
            let at = place.map_or(String::new(), |place| format!(" at {place}"));
            let case =
                Element::new("testcase").set("name", format!("{}{at}", rule.code())).set("classname", &subject.name);
            let case = place.map_or(case.clone(), |place| case.set("line", place.line.to_string()));
            let failure = Element::new("failure").set("type", rule.severity().name()).set("message", rule.title());
            case.child(&failure.text(&found.text()))
        })
        .collect();
    suite.children(&cases)
}
