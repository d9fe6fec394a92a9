//! Tests of `stagger simulate system`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::simulate::{json, said, simulate};
use crate::support::see;

/// Three services, each of which can serve 500 requests per second, and a stall of the last.
pub(crate) const THREE_TIERS: &str = include_str!("../../../../examples/three-tiers.toml");

/// A directory with the file of a system.
pub(crate) struct Fixture {
    pub(crate) directory: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("system.toml"), text).expect("the file is written");
        Self { directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("system.toml")
    }

    /// Returns the command that simulates the system, in its directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = simulate(&["system", "system.toml"]);
        command.args(args).current_dir(self.directory.path());
        command
    }
}

#[test]
fn the_report_has_attempts_wasted_work_queues_and_the_verdict() {
    let text = said(&mut Fixture::new(THREE_TIERS).command(&[]));
    for part in [
        "system.toml: 50 requests/s, 3 services, 3 edges; stall from 20s to 30s; horizon 1m",
        "orders → database",
        "verdict: still down at 2m, since 20s",
        "the run went on from 1m to 2m, to decide",
        " attempts per request from orders to database",
        "1,500",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let calm = THREE_TIERS.replace("max-attempts=3", "max-attempts=1");
    let text = said(&mut Fixture::new(&calm).command(&["--seeds=3"]));
    assert!(text.contains("recovered with 3 of 3 seeds") && !text.contains("what keeps it down"), "{text}");
    assert!(text.contains("those served took"), "{text}");
}

#[test]
fn the_report_fits_into_narrow_and_wide_terminals() {
    let fixture = Fixture::new(THREE_TIERS);
    for columns in ["40", "80", "120"] {
        let text = said(fixture.command(&[]).env("COLUMNS", columns));
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= columns.parse().unwrap(), "{longest} of {columns}\n{text}");
    }
    let ascii = said(fixture.command(&[]).env("LC_ALL", "C").env("LANG", "C"));
    assert!(ascii.is_ascii() && ascii.contains("orders -> database"), "{ascii}");
}

#[test]
fn the_document_has_the_figures_of_every_seed() {
    let document = json(&said(&mut Fixture::new(THREE_TIERS).command(&["--json", "--seeds=2", "--seed=7"])));
    assert_eq!((&document["schema"], &document["runs"][1]["seed"]), (&"stagger.system/1".into(), &8.into()));
    let run = &document["runs"][0];
    assert_eq!((&run["verdict"], &run["recovery_s"]), (&"still-down".into(), &Value::Null));
    assert!(run["edges"][2]["attempts_per_request"].as_f64().unwrap() > 26.0);
    assert!((document["system"]["edges"][2]["worst_attempts_per_request"].as_f64().unwrap() - 27.0).abs() < 1e-9);
    assert!(run["services"][2]["wasted_ratio"].as_f64().unwrap() > 0.9);
    assert_eq!(run["horizon_s"], 240.0, "a horizon of a minute is too short to decide");
    assert_eq!(run["requests"].as_array().unwrap().len(), 240);
    assert_eq!(run["goodput"].as_array().unwrap().len(), 240);
    assert!(run["latency_p50_s"].is_null() && run["latency_p99_s"].is_null(), "nothing is served: {run}");
    assert!(run["served_in_the_end_ratio"].as_f64().unwrap() < 0.5, "{run}");
}

/// Lets the calling thread, and programs that it starts, use only one of its processors.
#[cfg(target_os = "linux")]
pub(crate) fn use_one_processor() {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    let this = Pid::from_raw(0);
    let all = sched_getaffinity(this).expect("the processors are known");
    let first = (0..CpuSet::count()).find(|&processor| all.is_set(processor).unwrap_or(false)).expect("a processor");
    let mut one = CpuSet::new();
    one.set(first).expect("the processor exists");
    sched_setaffinity(this, &one).expect("it is used alone");
}

#[test]
fn one_seed_gives_the_same_bytes_in_every_format_on_all_processors_and_on_one() {
    let fixture = Fixture::new(&THREE_TIERS.replace("60s", "100s"));
    let outputs = ["--seeds=3", "--json=a.json", "--csv=a.csv", "--md=a.md", "--output=a.html", "--svg=svg"];
    let files =
        ["a.json", "a.csv", "a.md", "a.html", "svg/graph.svg", "svg/served.svg", "svg/attempts.svg", "svg/queues.svg"];
    let run = || {
        said(&mut fixture.command(&outputs));
        files.map(|file| fs::read_to_string(fixture.directory.path().join(file)).unwrap())
    };
    let first = run();
    #[cfg(target_os = "linux")]
    use_one_processor();
    assert_eq!(first, run());
    let [_, figures, markdown, page, graph, ..] = first;
    assert!(figures.starts_with("seed,verdict,metastable,") && figures.contains("\n1,still-down,true,"), "{figures}");
    assert!(markdown.contains("| orders → database |"), "{markdown}");
    let parsed = roxmltree::Document::parse(&graph).unwrap();
    let label = parsed.descendants().filter_map(|node| node.text()).find(|text| text.starts_with("×2"));
    assert!(label.is_some(), "{graph}");
    assert!(page.contains("×26."), "the graph is in the page");
}

/// One server of 200 requests per second with three attempts, which a stall of 10 s tips from a third of that.
const SERVER: &str = r#"
horizon = "50s"
[users]
rate = "50/s"
[tier.server]
service = "5ms"
backlog = 600
[[edge]]
from = "users"
to = "server"
policy = "zero max-attempts=3"
[[trigger]]
kind = "share"
share = 0
at = "5s"
for = "10s"
"#;

#[test]
fn a_search_finds_the_border_and_how_sure_it_is() {
    let fixture = Fixture::new(SERVER);
    let find = ["--find", "rate=40/s..100/s", "--seeds=4", "--json"];
    let document = json(&said(&mut fixture.command(&find)));
    let border = &document["search"]["borders"][0];
    let [estimate, most, least] =
        ["estimate", "at_most_a_tenth", "at_least_nine_tenths"].map(|key| border[key].as_f64().unwrap());
    assert!((60.0..75.0).contains(&estimate) && border["is_worse_above"] == true, "{border}");
    assert!(most <= estimate && estimate <= least, "{border}");
    let [low, high] = [0, 1].map(|end| border["estimate_interval"][end].as_f64().unwrap());
    assert!(low < estimate && estimate < high && high - low < 0.051 * estimate, "{border}");
    assert!(border["at_most_a_tenth_interval"][0].as_f64().unwrap() <= most, "{border}");
    assert_eq!(document, json(&said(&mut fixture.command(&find))), "the same seed gives the same search");
    let other = json(&said(fixture.command(&find).arg("--seed=100")));
    let other = other["search"]["borders"][0]["estimate"].as_f64().unwrap();
    assert!((other / estimate - 1.0).abs() < 0.06, "{other} and {estimate}");
}

#[test]
fn any_number_of_the_file_can_be_searched() {
    let fixture = Fixture::new(&SERVER.replace("rate = \"50/s\"", "rate = \"80/s\""));
    let said = |find| said(&mut fixture.command(&["--seeds=2", "--find", find]));
    let attempts = said("attempts=1..5");
    assert!(attempts.contains("attempts: the system stays down from 3 on"), "{attempts}");
    let length = said("trigger.1.for=500ms..6s");
    assert!(length.contains("trigger.1.for: the system stays down above "), "{length}");
    let timeout = said("edge.users-server.timeout=3.5s..9s");
    assert!(timeout.contains("the system does not stay down at any value"), "{timeout}");
}

#[test]
fn a_map_shows_what_the_system_survives() {
    let fixture = Fixture::new(SERVER);
    let args = ["--frontier", "size=0..0.9,length=500ms..10s", "--seeds=1", "--seed=3"];
    let rate = SERVER.replace("rate = \"50/s\"", "rate = \"120/s\"");
    fs::write(fixture.path(), rate.replace("50s", "30s")).unwrap();
    let document = json(&said(fixture.command(&args).args(["--json", "--svg=svg", "-o=map.html"])));
    let down = document["frontier"]["down"].as_array().unwrap();
    let cell = |row: usize, column: usize| down[row][column].as_f64().unwrap();
    assert_eq!((down.len(), down[0].as_array().unwrap().len()), (20, 20));
    // A short and mild trigger is survived, and a long stall is not.
    assert_eq!([cell(0, 19), cell(19, 0)].map(|share| share > 0.5), [false, true]);
    let svg = fs::read_to_string(fixture.directory.path().join("svg/frontier.svg")).unwrap();
    assert!(roxmltree::Document::parse(&svg).is_ok() && svg.contains("size"));
    let page = fs::read_to_string(fixture.directory.path().join("map.html")).unwrap();
    assert!(page.contains("<h2>Frontier</h2>"));
    let text = said(fixture.command(&args).env("COLUMNS", "40"));
    assert!(text.contains("What the system survives: size across,"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
}

#[test]
fn a_search_that_makes_no_sense_is_rejected() {
    let fixture = Fixture::new(SERVER);
    for (args, want) in [
        (["--find", "raet"], "--find: the file has no number `raet`; did you mean `rate`?"),
        (["--find", "rate=5"], "--find: `5` is not a range; write two values, as in rate=1/s..9/s"),
        (["--find", "rate=9/s..5/s"], "--find: 9/s is not below 5/s; swap them"),
        (["--find", "rate=a..b"], "--find: invalid value `a`"),
        (["--find", "workers=0..3"], "--find: system.toml, line 5, column 7: server: the number of workers is not"),
        (["--frontier", "rate"], "--frontier: `rate` is one number; write two, as in size,length"),
    ] {
        see(&mut fixture.command(&args)).exits(2).says(want);
    }
}

#[test]
fn assertions_name_services_and_edges() {
    let fixture = Fixture::new(THREE_TIERS);
    said(
        &mut fixture
            .command(&["--assert", "metastable=yes,database.peak=1500,orders/database.attempts_per_request>20"]),
    );
    see(&mut fixture.command(&["--assert", "recovery<=10s,gateway.wasted_ratio<5%"]))
        .exits(1)
        .says("assertion failed: recovery<=10s: recovery_s is never with seed 1")
        .says("gateway.wasted_ratio is 9");
    see(&mut fixture.command(&["--assert", "database.peek<3"])).exits(2).says("did you mean `database.peak`?");
}

/// With all defaults and without a retry, one request per second: a window is 100 s, and five minutes are too short.
#[test]
fn a_slow_load_is_not_down_because_the_horizon_is_short() {
    let text = "users.rate = 1\ntier.server = {}\nedge = [{ from = \"users\", to = \"server\", policy = \"stop\" }]\n\
                [[trigger]]\nkind = \"stall\"\n";
    for horizon in ["", "horizon = \"5m\"\n"] {
        let document = json(&said(&mut Fixture::new(&format!("{horizon}{text}")).command(&["--seeds=8", "--json"])));
        for run in document["runs"].as_array().unwrap() {
            let verdict = run["verdict"].as_str().unwrap();
            assert!(verdict == "never-fell" || verdict == "recovered", "{verdict}");
        }
    }
}

/// The load at which three tiers stay down, with the horizon of a minute that the example has.
#[test]
fn the_border_of_the_example_is_found_although_its_horizon_is_short() {
    let document = json(&said(&mut Fixture::new(THREE_TIERS).command(&["--find=rate", "--seeds=6", "--json"])));
    let border = &document["search"]["borders"][0]["estimate_interval"];
    let [low, high] = [0, 1].map(|end| border[end].as_f64().unwrap());
    assert!(low <= 27.9 && (27.9..32.0).contains(&high), "{}", document["search"]);
}

#[test]
fn errors_have_a_position_and_a_remedy() {
    let wrong = Fixture::new(&THREE_TIERS.replace("rate", "raet"));
    see(&mut wrong.command(&[]))
        .exits(2)
        .says("system.toml, line 3, column 1: unknown key `raet`; did you mean `rate`?");
    see(&mut wrong.command(&["--clients=5"])).exits(2).says("unexpected argument '--clients' found");
    see(&mut simulate(&["system"])).exits(2).says("<FILE>");
    see(&mut simulate(&["system", "gone.toml"])).exits(125).says("cannot read gone.toml: ");
    see(&mut simulate(&["outage", "x.toml"])).exits(2).says("use: stagger simulate system x.toml");
    assert!(wrong.path().exists());
}
