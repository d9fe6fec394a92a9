//! Files of Docker, Compose, Kubernetes, GitHub and GitLab: what is in them is parsed, and their commands are run.

use std::net::TcpListener;
use std::process::Command;

use stagger_kit::Postgres;
use yaml_rust2::{Yaml, YamlLoader};

use super::bench::Bench;
use super::page::{code, with};
use crate::origin::{Answer, OK, Origin};
use crate::support::{Files, Running, see};

fn yaml(text: &str) -> Yaml {
    YamlLoader::load_from_str(text).expect("the file is YAML").remove(0)
}

/// Returns the words of a list.
fn words(list: &Yaml) -> Vec<String> {
    let list = list.as_vec().unwrap_or_else(|| panic!("no list: {list:?}"));
    list.iter().map(|word| word.as_str().expect("arguments are strings").to_owned()).collect()
}

/// Returns the value of a flag of a command.
fn flag(command: &[String], name: &str) -> String {
    let at = command.iter().position(|word| word == name).unwrap_or_else(|| panic!("no {name} in {command:?}"));
    command[at + 1].clone()
}

/// Returns a command with another word in place of one, which must be there.
fn replaced(command: &[String], from: &str, to: &str) -> Vec<String> {
    assert!(command.iter().any(|word| word == from), "{from:?} is not in {command:?}");
    command.iter().map(|word| if word == from { to.to_owned() } else { word.clone() }).collect()
}

/// Returns a number that must be there.
fn number(value: &Yaml) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("no number: {value:?}"))
}

/// Returns the instructions of a Dockerfile, each in one line.
fn instructions(text: &str) -> Vec<String> {
    text.replace("\\\n", "").lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn instruction(name: &str) -> String {
    let all = instructions(&code("Docker")[0]);
    let found = all.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {name} in {all:?}")).to_owned()
}

#[test]
fn the_server_of_a_container_replaces_stagger_when_the_port_is_open() {
    let list = |name: &str| serde_json::from_str::<Vec<String>>(&instruction(name)).expect("the exec form is JSON");
    let command = [list("ENTRYPOINT"), list("CMD")].concat();
    let bench = Bench::new();
    bench.script("server", "echo $$");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let command = replaced(&command, "db:5432", &address);
    let running = Running::start(&mut bench.command(&command));
    let pid = running.pid();
    running.end().exits(0).prints(&format!("{}\n", pid.as_raw_nonzero()));
    drop(listener);
    see(&mut bench.command(&replaced(&command, "2m", "50ms"))).exits(124).prints("");
}

#[test]
fn the_health_check_of_a_container_ends_with_0_or_1() {
    let check = instruction("HEALTHCHECK");
    let (flags, command) = check.split_once(" CMD ").expect("a health check has a command");
    for flag in flags.split(' ') {
        let (name, _) = flag.split_once('=').expect("a flag has a value");
        assert!(["--interval", "--timeout", "--start-period", "--retries"].contains(&name), "{name}");
    }
    let bench = Bench::new();
    const BUSY: Answer = Answer::Head(&["HTTP/1.1 503 Busy"]);
    let port = |origin: &Origin| origin.url().replace("http://127.0.0.1", "http://localhost") + "health";
    let run = |url: &str| bench.see(&with(command, &[("http://localhost:8080/health", url)]));
    let healthy = Origin::start(&[OK]);
    run(&port(&healthy)).exits(0);
    assert_eq!(healthy.requests(), ["GET /health HTTP/1.1"]);
    let unhealthy = Origin::start(&[BUSY]);
    run(&port(&unhealthy)).exits(1);
    assert_eq!(unhealthy.requests().len(), 1, "Docker repeats it");
    run(&Origin::nowhere()).exits(1);
}

#[test]
fn compose_waits_for_the_real_server_before_and_after_a_restart() {
    needs!("pg_isready");
    let file = yaml(&code("Compose")[0]);
    let (db, app) = (&file["services"]["db"], &file["services"]["app"]);
    assert_eq!(app["depends_on"]["db"]["condition"].as_str(), Some("service_healthy"));
    assert_eq!(app["restart"].as_str(), Some("on-failure"));
    let bench = Bench::new();
    bench.script("server", "echo up");
    let mut postgres = Postgres::start().unwrap();
    let port = postgres.port().to_string();
    let test = words(&db["healthcheck"]["test"]);
    assert_eq!(test[0], "CMD");
    let (check, start) = (&test[1..], [words(&app["entrypoint"]), words(&app["command"])].concat());
    let start = replaced(&start, "pg_isready -q -h db", "pg_isready -q -h 127.0.0.1");
    see(bench.command(check).env("PGPORT", &port)).exits(0);
    see(bench.command(&start).env("PGPORT", &port)).exits(0).prints("up\n");
    postgres.server().kill();
    see(bench.command(check).env("PGPORT", &port)).exits(2);
    see(bench.command(&replaced(&start, "5m", "50ms")).env("PGPORT", &port)).exits(124).prints("");
    let waiting = Running::start(bench.command(&start).env("PGPORT", &port));
    postgres.server().restart().unwrap();
    waiting.end().exits(0).prints("up\n");
}

#[test]
fn an_init_container_waits_and_the_probes_are_those_of_the_kubelet() {
    let file = yaml(&code("Kubernetes")[0]);
    assert_eq!((file["apiVersion"].as_str(), file["kind"].as_str()), (Some("apps/v1"), Some("Deployment")));
    assert_eq!(file["spec"]["selector"]["matchLabels"], file["spec"]["template"]["metadata"]["labels"]);
    let pod = &file["spec"]["template"]["spec"];
    let command = words(&pod["initContainers"][0]["command"]);
    assert_eq!(flag(&command, "-t"), "inf");
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    see(&mut bench.command(&replaced(&replaced(&command, "db:5432", &address), "5s", "1ms"))).exits(0);
    let container = &pod["containers"][0];
    let startup = &container["startupProbe"];
    // Three minutes, as the page says.
    assert_eq!(number(&startup["periodSeconds"]) * number(&startup["failureThreshold"]), 180);
    let path = |probe: &str| container[probe]["httpGet"]["path"].as_str().expect("a path").to_owned();
    assert_eq!(path("startupProbe"), path("livenessProbe"));
    assert_ne!(path("readinessProbe"), path("livenessProbe"));
}

#[test]
fn a_job_fails_after_five_attempts_before_its_own_limit() {
    let file = yaml(&code("Kubernetes")[1]);
    assert_eq!((file["apiVersion"].as_str(), file["kind"].as_str()), (Some("batch/v1"), Some("Job")));
    let spec = &file["spec"];
    let pod = &spec["template"]["spec"];
    // Without it, the policy for failed pods is invalid.
    assert_eq!(pod["restartPolicy"].as_str(), Some("Never"));
    let actions: Vec<_> = spec["podFailurePolicy"]["rules"]
        .as_vec()
        .expect("rules")
        .iter()
        .map(|rule| rule["action"].as_str().expect("an action"))
        .collect();
    // The first rule that matches counts, and a pod that is evicted has an exit code, too.
    assert_eq!(actions, ["Ignore", "FailJob"]);
    let command = words(&pod["containers"][0]["command"]);
    let limit = stagger_core::text::parse_duration(&flag(&command, "--time-limit")).unwrap().expect("a limit");
    assert!(i64::try_from(limit.as_secs()).unwrap() < number(&spec["activeDeadlineSeconds"]));
    let bench = Bench::new();
    bench.failing("migrate", 99, "busy", 3, "");
    see(&mut bench.command(&replaced(&command, "./migrate", "bin/migrate"))).exits(3);
    assert_eq!(bench.take_calls("migrate").len(), 5);
}

#[test]
fn a_step_of_ci_is_retried_after_failures_of_the_network_only() {
    let files = code("GitHub Actions and GitLab CI");
    let github = yaml(&files[0]);
    let steps = &github["jobs"]["test"]["steps"];
    let gitlab = yaml(&files[1]);
    // GitLab accepts 0, 1 and 2.
    assert_eq!(number(&gitlab["test"]["retry"]["max"]), 1);
    let install = [&steps[2]["run"], &gitlab["test"]["script"][0]];
    let test = [&steps[3]["run"], &gitlab["test"]["script"][1]];
    for (install, test) in install.into_iter().zip(test) {
        let (install, test) = (install.as_str().expect("a step"), test.as_str().expect("a step"));
        assert_eq!(test, "npm test");
        for (message, calls, code) in [
            ("npm ERR! network request to https://r failed, reason: connect ETIMEDOUT", 3, 1),
            ("npm error code E503", 3, 1),
            ("npm ERR! code ERESOLVE", 1, 1),
        ] {
            let bench = Bench::new();
            bench.failing("npm", 99, message, code, "");
            bench.see(install).exits(i32::from(code));
            assert_eq!(bench.take_calls("npm"), vec!["ci"; calls], "{install}: {message}");
        }
    }
}

/// The archive has the name that the action of this repository asks for, and the program where the action finds it.
#[test]
fn a_step_of_ci_installs_the_program_of_a_release() {
    needs!("curl");
    let files = Files::new();
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("stagger-{version}-x86_64-unknown-linux-musl");
    const ACTION: &str = include_str!("../../../../../action.yml");
    assert!(
        ACTION.contains("name=\"stagger-${VERSION#v}-$target\"") && ACTION.contains("target=x86_64-unknown-linux-musl")
    );
    let step = yaml(&code("GitHub Actions and GitLab CI")[0])["jobs"]["test"]["steps"][1]["run"].clone();
    let url = format!("https://github.com/OWNER/NAME/releases/download/v{version}/{name}.tar.gz");
    std::fs::create_dir(files.path(&name)).expect("a directory");
    files.write(&format!("{name}/stagger"), "the program\n");
    files.write(&format!("{name}/README.md"), "");
    let archive = files.path("archive.tar.gz");
    let packed = Command::new("tar").args(["-czf"]).arg(&archive).arg(&name).current_dir(files.path(".")).status();
    assert!(packed.expect("tar runs").success());
    let bin = files.path("bin");
    std::fs::create_dir(&bin).expect("a directory");
    let replacements = [
        (&*url, &*format!("file://{}", archive.display())),
        ("sudo ", ""),
        ("/usr/local/bin", bin.to_str().expect("a path in UTF-8")),
    ];
    let line = with(step.as_str().expect("a step"), &replacements);
    assert!(Command::new("sh").args(["-c", &line]).status().expect("sh runs").success(), "{line}");
    let installed = std::fs::read_dir(&bin).expect("the directory").map(|entry| entry.unwrap().file_name());
    assert_eq!(installed.collect::<Vec<_>>(), ["stagger"]);
}
