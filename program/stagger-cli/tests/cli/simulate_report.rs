//! Tests of the reports of `stagger simulate`: all formats have the same values, and a browser displays the page.

use std::fs;
use std::process::{Command, Stdio};

use roxmltree::{Document, ParsingOptions};
use serde_json::Value;

use crate::simulate::{json, said, simulate, storm};
use crate::support::Files;

/// Runs each strategy once, so that the values of a table are those of a run.
fn single(args: &[&str]) -> Command {
    let mut command = storm(&["--seeds=1"]);
    command.args(args);
    command
}

fn figures(document: &Value, strategy: usize) -> &serde_json::Map<String, Value> {
    document["strategies"][strategy]["runs"][0].as_object().expect("a run")
}

/// Splits a line of Markdown into cells.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('*')).collect()
}

/// Formats an integer as tables show it.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[test]
fn json_csv_markdown_svg_and_html_have_the_same_values() {
    let files = Files::new();
    let directory = files.path("svg");
    let document = json(&said(&mut single(&["--json"])));
    said(single(&["--svg"]).arg(&directory));

    let csv = said(&mut single(&["--csv"]));
    let mut lines = csv.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    for (strategy, line) in lines.enumerate() {
        // None of these names and policies has a comma.
        let line: Vec<&str> = line.split(',').collect();
        let figures = figures(&document, strategy);
        for (head, cell) in heads.iter().zip(&line).skip(3) {
            let want = Some(&figures[*head]).filter(|value| !value.is_null()).map(Value::to_string);
            assert_eq!(*cell, want.unwrap_or_default(), "{head}");
        }
    }

    let html = said(&mut single(&["-o", "-"]));
    let page = as_xml(&html);
    let options = ParsingOptions { allow_dtd: true, ..Default::default() };
    if let Err(error) = Document::parse_with_options(&page, options) {
        panic!("{error}: {:?}", page.lines().nth(error.pos().row as usize - 1));
    }
    for (strategy, key, exact) in exact_cells(&html) {
        let want = &figures(&document, strategy)[&key];
        let want = want.as_f64().map_or(String::new(), |value| value.to_string());
        assert_eq!(exact, want, "{key} of strategy {strategy}");
    }

    let markdown = said(&mut single(&["--md"]));
    let table: Vec<Vec<&str>> = markdown.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    let arrivals = fs::read_to_string(directory.join("arrivals.svg")).unwrap();
    for strategy in 0..2 {
        let peak = grouped(figures(&document, strategy)["peak_100ms"].as_u64().unwrap());
        let column = table[0].iter().position(|head| *head == "peak in 100ms").unwrap();
        assert_eq!(table[strategy + 2][column], peak);
        let name = document["strategies"][strategy]["name"].as_str().unwrap();
        let sentence = format!("Attempts of {name} over time, with a peak of {peak} in 100 ms.");
        assert!(arrivals.contains(&sentence), "{sentence}");
    }
}

#[test]
fn the_csv_has_every_metric_of_every_scenario() {
    for scenario in ["reconnect", "fluid", "outage", "occ"] {
        let document = json(&said(&mut simulate(&[scenario, "--json"])));
        let scalars = figures(&document, 0).iter().filter(|(_, value)| !value.is_array());
        let mut want: Vec<&str> = scalars.map(|(key, _)| key.as_str()).collect();
        let csv = said(&mut simulate(&[scenario, "--csv"]));
        let mut heads: Vec<&str> = csv.lines().next().unwrap().split(',').skip(3).collect();
        want.sort_unstable();
        heads.sort_unstable();
        assert_eq!(heads, want, "{scenario}");
    }
}

/// Returns the cells of the table of a section, without its header.
fn table(page: &Document<'_>, title: &str) -> Vec<Vec<String>> {
    let heading = |node: &roxmltree::Node<'_, '_>| node.has_tag_name("h2") && node.text() == Some(title);
    let section =
        page.descendants().find(heading).and_then(|heading| heading.parent()).expect("a section with this title");
    let rows = section.descendants().filter(|node| node.has_tag_name("tr")).skip(1);
    let cell = |node: roxmltree::Node<'_, '_>| node.text().unwrap_or_default().to_owned();
    rows.map(|row| row.children().filter(|node| node.has_tag_name("td")).map(cell).collect()).collect()
}

/// Parses a number with a unit.
fn number(cell: &str) -> f64 {
    let digits: String = cell.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().unwrap_or(f64::NAN)
}

#[test]
fn the_data_tables_of_the_charts_agree_with_the_metrics() {
    let document = json(&said(&mut single(&["--json"])));
    let page = as_xml(&said(&mut single(&["-o", "-"])));
    let page = Document::parse(&page).unwrap();
    let arrivals = table(&page, "Attempts over time");
    let connections = table(&page, "Connections over time");
    let recovery = table(&page, "Recovery");
    let attempts = table(&page, "Attempts per client");
    let costs = table(&page, "Trade-off between server load and recovery");
    let singles = table(&page, "Attempts of individual clients");
    for strategy in 0..2 {
        let figure = |name: &str| figures(&document, strategy)[name].as_f64().unwrap();
        let column = |rows: &[Vec<String>], first: usize| -> Vec<f64> {
            rows.iter().map(|row| number(&row[first + strategy])).collect()
        };
        // The last 0.1 % is not shown, and each of the 24 numbers is rounded.
        let sum: f64 = column(&arrivals, 2).iter().sum();
        assert!((sum - figure("attempts")).abs() <= 12.0 + figure("attempts") / 1_000.0, "{sum}");
        let levels = column(&connections, 1);
        assert!(levels.is_sorted() && levels[23] >= 1_990.0, "{levels:?}");
        // The server was down for two seconds. Times are the ends of bins.
        let times = column(&recovery, 1);
        assert!((times[7] - (figure("t100_s") - 2.0)).abs() <= 0.11, "{times:?}");
        assert!((times[2] - (figure("t50_s") - 2.0)).abs() <= 0.11, "{times:?}");
        let shares: f64 = column(&attempts, 1).iter().sum();
        assert!((shares - 100.0).abs() < 0.1, "{shares}");
        assert!((number(&costs[strategy][2]) - figure("peak_1s")).abs() < 1e-9, "{costs:?}");
        assert!((number(&costs[strategy][1]) - figure("recovered_p99_s")).abs() < 0.06, "{costs:?}");
        let sample = figures(&document, strategy)["sample_s"][0][0].as_f64().unwrap();
        let shown = singles[0][1 + strategy].split(' ').next().unwrap();
        let shown = number(shown) / if shown.ends_with("ms") { 1_000.0 } else { 1.0 };
        assert!((shown - sample).abs() < 0.006, "{shown} {sample}");
    }
}

#[test]
fn the_page_is_self_contained_and_names_are_escaped() {
    let hostile = "</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\"': curl";
    let html = said(&mut simulate(&["--clients=50", "--compare", hostile, "-o", "-"]));
    assert!(!html.contains("<script>alert") && !html.contains("<img"), "{html}");
    for outside in ["http:", "https:", "@import", "<iframe", "src=\"", "url(h"] {
        // The script has the name of the SVG namespace, which is not fetched.
        let html = html.replace("\"http://www.w3.org/2000/svg\"", "");
        assert!(!html.contains(outside), "{outside}");
    }
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(html.contains("<thead><tr><th scope=\"col\">metric</th><th scope=\"col\">&lt;/title&gt;"), "{html}");
}

#[test]
fn a_browser_shows_the_report_without_an_error_or_a_request() {
    needs!("chromium");
    let files = Files::new();
    let report = files.path("report.html");
    let hostile = "</script><script>console.error('hostile')</script><img src=http://127.0.0.1:9/x>: curl";
    said(single(&["--compare", hostile, "-o"]).arg(&report));
    let html = fs::read_to_string(&report).unwrap();
    let (dom, console, requests) = opened(&files, &report);
    assert_eq!(console, Vec::<String>::new(), "messages on the console");
    assert_eq!(requests, Vec::<String>::new(), "network requests");
    assert!(dom.contains("Drag over a chart to zoom in"), "the script has not run");
    assert_eq!(exact_cells(&dom), exact_cells(&html));
    assert!(exact_cells(&dom).len() > 60);
}

#[test]
fn charts_can_be_zoomed() {
    needs!("chromium");
    let files = Files::new();
    let html = said(&mut single(&["-o", "-"]));
    // The page allows no other script, so this one is in a copy without a content security policy.
    const DRAG: &str = r#"<script>
        SVGElement.prototype.setPointerCapture = () => {};
        const svg = document.querySelector("section svg:has(.panel):not(.narrow)"), box = svg.getBoundingClientRect();
        const move = (type, share) => svg.dispatchEvent(new PointerEvent(type,
            { clientX: box.left + box.width * share, clientY: box.top + 99, button: 0, pointerId: 1 }));
        move("pointerdown", 0.3); move("pointermove", 0.4); move("pointerup", 0.5);
        const zoomed = svg.querySelector(".ticks").textContent;
        svg.dispatchEvent(new Event("dblclick"));
        document.title = "zoomed [" + zoomed + "] and back [" + svg.querySelector(".ticks").textContent + "]";
        </script></body>"#;
    let copy = html.replace("http-equiv", "data-was").replace("</body>", DRAG);
    let page = files.write("copy.html", copy);
    let (dom, console, _) = opened(&files, &page);
    assert_eq!(console, Vec::<String>::new());
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split('<').next()).unwrap();
    let squeezed = title.split_whitespace().collect::<String>();
    // About a third of the axis is shown, with round ticks.
    assert!(squeezed.starts_with("zoomed[") && squeezed.contains("s]andback[0s"), "{title}");
    assert!(!squeezed.starts_with("zoomed[0s"), "{title}");
}

#[test]
fn the_browser_check_detects_errors_and_requests() {
    needs!("chromium");
    let files = Files::new();
    let page = "<body><img src=\"http://127.0.0.1:9/x\"><script>console.error('broken')</script></body>";
    let page = files.write("broken.html", page);
    let (_, console, requests) = opened(&files, &page);
    assert!(console.iter().any(|line| line.contains("broken")), "{console:?}");
    assert!(requests.iter().any(|url| url.contains("127.0.0.1:9/x")), "{requests:?}");
}

/// Opens a page in a browser; returns the DOM, the console messages and the URLs of network requests.
pub(crate) fn opened(files: &Files, page: &std::path::Path) -> (String, Vec<String>, Vec<String>) {
    let log = files.path("net.json");
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let profile = files.path("profile");
    let run = |browser: &str| {
        Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-extensions",
            ])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
            .args(["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--log-net-log={}", log.display()))
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .output()
    };
    let output = browsers.iter().find_map(|browser| run(browser).ok());
    let output = output.unwrap_or_else(|| panic!("this test requires one of {browsers:?}"));
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let console = text(&output.stderr).lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    let net: Value = serde_json::from_slice(&fs::read(&log).expect("a network log")).expect("a log in JSON");
    let events = net["events"].as_array().expect("events in the log");
    // Requests of the browser itself, such as updates, have no origin; those of a page from a file have the origin
    // null.
    let of_the_page = events.iter().filter(|event| event["params"]["initiator"] == "null");
    let urls = of_the_page.filter_map(|event| event["params"]["url"].as_str());
    let requests = urls.filter(|url| url.starts_with("http")).map(str::to_owned).collect();
    (text(&output.stdout), console, requests)
}

/// Returns the strategy, key and exact value of each cell of the table of metrics.
fn exact_cells(html: &str) -> Vec<(usize, String, String)> {
    let quoted = |text: &str| text.split('"').next().unwrap_or_default().to_owned();
    let mut out = Vec::new();
    for row in html.split("<tr data-key=\"").skip(1) {
        let row = row.split("</tr>").next().unwrap_or_default();
        for (strategy, cell) in row.split("data-value=\"").skip(1).enumerate() {
            out.push((strategy, quoted(row), quoted(cell)));
        }
    }
    out
}

/// Converts a page to XML: removes the doctype and closes the void elements.
fn as_xml(html: &str) -> String {
    let mut out = String::new();
    for line in html.lines().skip(1) {
        let is_open = line.starts_with("<meta") || line.starts_with("<link");
        out.push_str(&if is_open { line.replace('>', "/>") } else { line.to_owned() });
        out.push('\n');
    }
    // Remove the script, which is not XML.
    let (before, rest) = out.split_once("<script>").expect("a script");
    format!("{before}{}", rest.split_once("</script>").expect("the end of the script").1)
}
