//! Tests of `stagger plan FILE` and `stagger simulate outage FILE` with configurations of other systems, run as a
//! program.

use serde_json::Value;

use crate::support::{Files, Seen, see, stagger};

/// Two calls of a mesh, and one that is made once.
const ROUTES: &str = "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec:
  http:
  - retries: {attempts: 3}
  - retries: {attempts: 1}
  - retries: {attempts: 1}
";

fn in_directory(files: &Files, args: &[&str]) -> Seen {
    see(stagger(args.iter().copied()).current_dir(files.path(".")).env("COLUMNS", "80"))
}

#[test]
fn the_policies_of_a_configuration_are_planned_with_their_places() {
    let files = Files::new();
    files.write("mesh.yaml", ROUTES);
    let all = in_directory(&files, &["plan", "mesh.yaml"]);
    let text = &all.exits(0).stdout;
    assert!(text.starts_with("mesh.yaml:6: VirtualService/reviews.http[0] (Istio)\nexponential base=25ms"), "{text}");
    assert!(text.contains("\n\nmesh.yaml:8: VirtualService/reviews.http[2] (Istio)\nexponential"), "{text}");

    let one = in_directory(&files, &["plan", "mesh.yaml", "--entry", "http[0]", "--json", "-n", "3"]);
    assert_eq!(one.exits(0).json()["max_attempts"], 3);
    let policy = in_directory(&files, &["plan", "socket.io", "-n", "3"]);
    assert!(
        policy.exits(0).stdout.starts_with("exponential base=1s cap=5s multiplier=2 jitter=socket.io"),
        "{policy:#?}"
    );
    for (args, want) in [
        (
            &["plan", "mesh.yaml", "--json"][..],
            "has several policies, and this output is of one; choose it with --entry",
        ),
        (
            &["plan", "mesh.yaml", "--entry", "x"],
            "--entry: mesh.yaml has no `x`; it has VirtualService/reviews.http[0],",
        ),
    ] {
        let seen = in_directory(&files, args);
        assert!(seen.exits(2).stderr.contains(want), "{seen:#?}");
    }
}

#[test]
fn the_policies_of_a_configuration_are_compared_and_equal_ones_are_simulated_once() {
    let files = Files::new();
    files.write("mesh.yaml", ROUTES);
    let seen =
        in_directory(&files, &["simulate", "outage", "mesh.yaml", "--rate", "20/s", "--capacity", "40/s", "--json"]);
    let document = seen.exits(0).json();
    let names: Vec<_> =
        document["strategies"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["VirtualService/reviews.http[0]", "VirtualService/reviews.http[1]"]);
}

/// One proxy with three retries at once recovers; with a thousand it does not.
#[test]
fn the_limits_of_a_configuration_are_simulated() {
    let files = Files::new();
    let envoy = |budget: &str| {
        format!(
            "virtual_hosts:\n- routes:\n  - match: {{prefix: /}}\n    route:\n      cluster: app\n      timeout: 5s\n      retry_policy: {{retry_on: connect-failure, num_retries: 3, per_try_timeout: 0.4s}}\nclusters:\n- name: app\n  circuit_breakers: {{thresholds: [{{{budget}}}]}}\n"
        )
    };
    let outage = |budget: &str, flags: &[&str]| {
        files.write("envoy.yaml", envoy(budget));
        let args = [
            "simulate",
            "outage",
            "envoy.yaml",
            "--rate=40/s",
            "--horizon=15m",
            "--capacity=60/s",
            "--backlog=60",
            "--processes=1",
            "--json",
        ];
        in_directory(&files, &[&args[..], flags].concat()).exits(0).json()
    };
    let ended = |document: &Value| document["strategies"][0]["runs"][0]["verdict"].clone();
    let few = outage("max_retries: 3", &[]);
    let [strategy, scenario] = [&few["strategies"][0], &few["scenario"]];
    assert!(strategy["name"].as_str().unwrap().ends_with(", concurrent ratio=0 floor=3"), "{strategy:#}");
    assert!(strategy["policy"].to_string().contains("max-elapsed=5s"), "{strategy:#}");
    assert_eq!(scenario["timeout_s"], 0.4, "{scenario:#}");
    assert_eq!(ended(&few), "recovered");
    let many = outage("max_retries: 1000", &[]);
    assert_eq!(ended(&many), "still-down");
    // What is given on the command line counts.
    let own = outage("max_retries: 1000", &["--guards", "concurrent ratio=0 floor=3", "--timeout", "300ms"]);
    assert_eq!((ended(&own), &own["scenario"]["timeout_s"]), ("recovered".into(), &Value::from(0.3)));
}

#[test]
fn several_limits_of_attempts_are_told() {
    let files = Files::new();
    files.write("mesh.yaml", ROUTES.replace("attempts: 3", "attempts: 3, perTryTimeout: 300ms"));
    let seen = in_directory(&files, &["simulate", "outage", "mesh.yaml", "--rate", "20/s", "--capacity", "40/s"]);
    assert!(seen.exits(0).stderr.contains("several time limits"), "{seen:#?}");
}
