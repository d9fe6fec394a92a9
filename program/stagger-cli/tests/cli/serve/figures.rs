use serde_json::{Value, json};

use super::server::{RACE, Server};
use crate::support::{said, stagger};

/// The race of [`RACE`] on the command line.
fn simulate(seed: u64) -> String {
    let policies = ["--compare", "socket.io", "--compare", "exponential base=1s spread=5s max-attempts=inf"];
    let scenario = ["--clients", "500", "--capacity", "100/s", "--down", "2s", "--json", "--seed"];
    let words = ["simulate", "reconnect"].into_iter().chain(policies).chain(scenario).map(str::to_owned);
    said(&mut stagger(words.chain([seed.to_string()])))
}

fn with_seed(seed: u64) -> String {
    RACE.replace("\"seed\":\"1\"", &format!("\"seed\":\"{seed}\""))
}

#[test]
fn the_document_is_that_of_simulate_for_20_seeds() {
    let server = Server::start();
    for seed in 1..=20 {
        let exported = server.post("/api/export", &format!("{{\"format\":\"json\",\"race\":{}}}", with_seed(seed)));
        assert_eq!(exported.body, simulate(seed), "seed {seed}");
    }
}

#[test]
fn a_race_has_the_figures_of_its_command_line_and_all_of_its_clients() {
    let server = Server::start();
    let events = server.post("/api/race", RACE).events();
    let named = |name: &str| events.iter().filter(|(given, _)| given == name).map(|(_, data)| data).collect::<Vec<_>>();
    assert_eq!(events.last().map(|(name, _)| name.as_str()), Some("done"), "{events:?}");
    let [figures] = named("figures")[..] else { panic!("{events:?}") };
    let words = shlex::split(figures["command"].as_str().unwrap()).unwrap();
    let document: Value = serde_json::from_str(&said(stagger(&words[1..]).arg("--json"))).unwrap();
    for (nth, shown) in figures["policies"].as_array().unwrap().iter().enumerate() {
        let strategy = &document["strategies"][nth];
        let run = &strategy["runs"][0];
        assert_eq!((&shown["name"], &shown["policy"]), (&strategy["name"], &strategy["policy"]));
        for metric in figures["metrics"].as_array().unwrap() {
            let key = metric["key"].as_str().unwrap();
            assert_eq!(shown["figures"][key], run[key], "{key}");
        }
        assert_eq!(shown["curves"]["arrivals"], run["arrivals"]);
        let of_policy = |data: &&&Value| data["policy"] == json!(nth);
        let clients = named("events").into_iter().filter(|data| of_policy(&data));
        let clients: Vec<_> = clients.flat_map(|data| data["clients"].as_array().unwrap()).collect();
        let times =
            |part: usize| clients.iter().map(|client| client[part].as_array().unwrap().len() as u64).sum::<u64>();
        assert_eq!((clients.len(), times(0)), (500, 500), "each loses its connection once");
        assert_eq!((json!(times(1)), json!(times(2))), (run["attempts"].clone(), run["connected"].clone()));
    }
}

#[test]
fn findings_forecast_and_advice_are_those_of_the_other_subcommands() {
    let server = Server::start();
    let question = r#"{"policy":"socket.io","purpose":"reconnecting","clients":"10k","capacity":"500/s"}"#;
    let answer = server.post("/api/policy", question).json();
    let plan: Value = serde_json::from_str(&said(&mut stagger(["plan", "-p", "socket.io", "--json"]))).unwrap();
    assert_eq!(answer["plan"], plan);
    let context = ["--for", "reconnecting", "--clients", "10k", "--capacity", "500/s"];
    let check = crate::support::see(stagger(["check", "socket.io", "--json"]).args(context)).stdout;
    let check: Value = serde_json::from_str(&check).unwrap();
    assert_eq!(answer["check"]["findings"], check["policies"][0]["findings"]);
    assert_eq!(answer["check"]["fixed"], check["policies"][0]["fixed"]);
    let question = r#"{"purpose":"reconnecting","clients":"20","capacity":"100/s","outage":"5s"}"#;
    let events = server.post("/api/advise", question).events();
    let advice = events.iter().find(|(name, _)| name == "advice").map(|(_, data)| data);
    let words = ["--for", "reconnecting", "--clients", "20", "--capacity", "100/s", "--outage", "5s", "--json"];
    let said: Value = serde_json::from_str(&said(stagger(["advise"]).args(words))).unwrap();
    assert_eq!(advice, Some(&said));
}

#[test]
fn every_export_is_a_file_that_its_reader_accepts() {
    let server = Server::start();
    let export = |format: &str| {
        let answer = server.post("/api/export", &format!("{{\"format\":\"{format}\",\"race\":{RACE}}}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.head.contains("content-disposition: attachment; filename="), "{answer:?}");
        answer.body
    };
    let files = crate::support::Files::new();
    let toml = files.write("policy.toml", export("toml"));
    let planned = said(&mut stagger(["plan", "--json", "-p", &format!("@{}", toml.display())]));
    assert!(planned.contains("spread=5s max-attempts=inf"), "{planned}");
    let report = export("report");
    assert!(
        report.starts_with("<!doctype html>") && report.contains("stagger simulate reconnect --compare socket.io"),
        "{report}"
    );
    let rust = export("rust");
    let want = "policy!(exponential(secs(1), secs(30)).spread(secs(5)).unlimited_attempts());";
    assert!(rust.contains(want), "{rust}");
    // The file is a module of these tests.
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/golden/storm_test.rs");
    let test = export("test");
    if std::env::var_os("STAGGER_BLESS").is_some() {
        std::fs::write(golden, &test).unwrap();
    }
    assert_eq!(std::fs::read_to_string(golden).unwrap(), test);
}
