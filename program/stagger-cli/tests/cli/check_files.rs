//! Tests of `stagger check FILE`, run as a program.

use std::fs;

use serde_sarif::sarif::Sarif;

use crate::support::{Files, Seen, see, see_with_input, stagger};

const CHAIN: &str = "\
[users]
rate = \"90/s\"
[tier.database]
service = \"5ms\"
backlog = 100
[[edge]]
from = \"users\"
to = \"database\"
policy = \"zero max-attempts=3\"
";

/// Runs `stagger check` in a directory.
fn check(files: &Files, args: &[&str]) -> Seen {
    see(stagger(["check"]).args(args).current_dir(files.path(".")).env("COLUMNS", "80"))
}

#[test]
fn a_finding_of_a_system_shows_its_place_and_its_fix() {
    let files = Files::new();
    files.write("shop.toml", CHAIN);
    let seen = check(&files, &["shop.toml"]);
    let want = "\
shop.toml: system of services
warning[M003]: retries without a budget can exceed the capacity
  ╭▸ shop.toml:9:10
  │
9 │ policy = \"zero max-attempts=3\"
  ╰╴         ━━━━━━━━━━━━━━━━━━━━━
  users-database makes up to 3 attempts per call; if no call succeeds, database
    receives 270/s and serves 200/s
  why: when its calls fail, the service is busy with retries, and refuses first
    attempts that it could serve
  help: budget = { tokens = 10, refund = 0.1 } in edge.users-database
  ╭╴
7 + budget = { tokens = 10, refund = 0.1 }
  ╰╴
1 warning; for details: stagger check --explain CODE
";
    assert!(seen.exits(1).stderr.is_empty(), "{seen:#?}");
    assert_eq!(seen.stdout, want);

    let seen = check(&files, &["shop.toml", "--json"]);
    let found = &seen.json()["files"][0]["findings"][0];
    assert_eq!(
        (&found["rule"], &found["place"]["line"], &found["place"]["column"]),
        (&"M003".into(), &9.into(), &10.into())
    );
    let edit = &found["fix"]["edits"][0];
    let lines: Vec<_> = CHAIN.lines().collect();
    let at = edit["place"]["line"].as_u64().unwrap() as usize - 1;
    let fixed = format!("{}\n{}{}\n", lines[..at].join("\n"), edit["text"].as_str().unwrap(), lines[at..].join("\n"));
    files.write("fixed.toml", fixed);
    let seen = check(&files, &["fixed.toml"]);
    assert_eq!(seen.exits(0).stdout, "fixed.toml: system of services\nno findings\n");
    assert!(check(&files, &["shop.toml", "--allow", "M003"]).exits(0).stderr.is_empty());
}

#[test]
fn files_come_from_patterns_directories_and_standard_input() {
    let files = Files::new();
    fs::create_dir(files.path("deep")).unwrap();
    files.write("deep/a.toml", CHAIN);
    files.write("deep/b.toml", CHAIN);
    files.write("deep/Cargo.toml", "[package]\nname = \"x\"\n");
    for args in [&["deep/"][..], &["deep/[ab].toml"], &["deep/a.toml", "deep/b.toml", "deep/a.toml"], &["."]] {
        let seen = check(&files, &[args, &["--json"]].concat());
        let names: Vec<_> =
            seen.json()["files"].as_array().unwrap().iter().map(|file| file["name"].to_string()).collect();
        assert_eq!(names.len(), 2, "{args:?}: {names:?}");
    }
    let seen = see_with_input(stagger(["check", "-"]).env("COLUMNS", "80"), CHAIN.as_bytes());
    assert!(seen.exits(1).stdout.starts_with("standard input: system of services\nwarning[M003]"), "{seen:#?}");
}

#[test]
fn a_file_that_cannot_be_checked_is_an_error_with_the_way_out() {
    let files = Files::new();
    files.write("typo.toml", CHAIN.replace("backlog", "backlgo"));
    files.write("latin1.toml", b"# caf\xe9\n");
    for (args, code, want) in [
        (&["missing.toml"][..], 125, "cannot read missing.toml"),
        (&["typo.toml"], 2, "typo.toml, line 5, column 1: unknown key `backlgo`; did you mean `backlog`?"),
        (&["latin1.toml"], 2, "latin1.toml, line 1: not valid UTF-8"),
        (&["nothing/*.toml"], 2, "no file matches `nothing/*.toml`"),
    ] {
        let seen = check(&files, args);
        assert!(seen.exits(code).stderr.contains(want), "{seen:#?}");
    }
}

#[test]
fn a_policy_is_no_file_and_is_checked_beside_one() {
    let files = Files::new();
    files.write("shop.toml", CHAIN);
    files.write("socket.io", CHAIN);
    let seen = check(&files, &["socket.io", "exponential base=0.5s", "shop.toml", "--json"]);
    let document = seen.json();
    assert_eq!(document["policies"].as_array().unwrap().len(), 2);
    assert_eq!(document["files"][0]["name"], "shop.toml");
    // Without a policy, there is no note about its circumstances.
    assert!(!check(&files, &["shop.toml"]).stdout.contains("deployment context"));
}

#[test]
fn the_output_is_ascii_and_without_color_where_it_has_to_be() {
    let files = Files::new();
    files.write("shop.toml", CHAIN);
    let seen =
        see(stagger(["check", "shop.toml"]).current_dir(files.path(".")).env("COLUMNS", "40").env("LC_ALL", "C"));
    assert!(seen.exits(1).stdout.is_ascii(), "{}", seen.stdout);
    assert!(seen.stdout.contains("\n9 | policy = \"zero max-attempts=3\"\n"), "{}", seen.stdout);
    let colored = see(stagger(["check", "shop.toml", "--color", "always"]).current_dir(files.path(".")));
    assert!(colored.stdout.contains("\u{1b}["), "{}", colored.stdout);
}

const MESH: &str = "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec:
  http:
  - timeout: 4s
    retries: {attempts: 5, perTryTimeout: 2s, retryOn: connect-failure}
";

#[test]
fn a_finding_of_a_configuration_shows_what_the_system_does_and_the_fix() {
    let files = Files::new();
    files.write("virtualservice.yaml", MESH);
    let want = "\
virtualservice.yaml: Istio
warning[S013]: the attempts alone exceed the deadline
  ╭▸ virtualservice.yaml:6:5
  │
6 │   - timeout: 4s
  ╰╴    ━━━━━━━━━━━
  Istio makes up to 6 attempts, after 0s to 24ms, 0s to 49ms, 0s to 99ms and so
    on up to 250ms, each of at most 2s, all within 4s
  6 attempts of 2s take 12s; the deadline is 4s, which leaves time for 2
  why: if the server answers slowly, which is when retries are needed, the last
    attempts are cut off or never made
  help: shorten an attempt so that all of them fit, or make fewer
  ╭╴
7 -     retries: {attempts: 5, perTryTimeout: 2s, retryOn: connect-failure}
7 +     retries: {attempts: 5, perTryTimeout: 560ms, retryOn: connect-failure}
  ╰╴
1 warning; for details: stagger check --explain CODE
";
    let seen = check(&files, &["virtualservice.yaml"]);
    assert!(seen.exits(1).stderr.is_empty(), "{seen:#?}");
    assert_eq!(seen.stdout, want);
}

#[test]
fn what_cannot_be_said_as_a_policy_is_shown_on_request_and_always_in_json() {
    let files = Files::new();
    let text = MESH.replace("perTryTimeout: 2s", "perTryTimeout: 500ms, retryRemoteLocalities: true");
    files.write("virtualservice.yaml", &text);
    files.write("app.service", "[Service]\nRestart=always\nStartLimitInterval=0\n");
    let quiet = check(&files, &["virtualservice.yaml", "app.service"]);
    assert!(!quiet.exits(0).stdout.contains("retryRemoteLocalities"), "{quiet:#?}");
    for flag in ["-v", "--verbose"] {
        let seen = check(&files, &[flag, "virtualservice.yaml", "app.service"]);
        let want = "\
virtualservice.yaml: Istio
no findings
cannot be said as a policy:
  7:50: VirtualService/reviews.http[0].retries.retryRemoteLocalities: whether
    other regions are tried as well

app.service: systemd
no findings
worth knowing:
  3:1: StartLimitInterval: no start limit: the process is started again for ever
";
        assert_eq!(seen.exits(0).stdout, want);
    }
    let seen = check(&files, &["--json", "virtualservice.yaml", "app.service"]);
    let document = seen.json();
    let note = |file: usize| &document["files"][file]["notes"][0];
    let parts = |file: usize| (&note(file)["kind"], &note(file)["place"]["line"], &note(file)["place"]["column"]);
    assert_eq!(parts(0), (&"unmapped".into(), &7.into(), &50.into()));
    assert_eq!(parts(1), (&"fact".into(), &3.into(), &1.into()));
    assert_eq!(note(0)["path"], "VirtualService/reviews.http[0].retries.retryRemoteLocalities");
}

#[test]
fn what_a_file_refers_to_and_is_not_read_is_named() {
    let files = Files::new();
    files.write("nginx.conf", "include conf.d/*.conf;\nserver { location / { proxy_pass http://10.0.0.1; } }\n");
    files.write("empty.conf", "events {}\nhttp {\n  include conf.d/*.conf;\n}\n");
    let seen = check(&files, &["nginx.conf", "empty.conf"]);
    let want = "\
nginx.conf: nginx
no findings
not read:
  1:1: include: what `conf.d/*.conf` says may replace this; `nginx -T` prints it
    in one file

empty.conf: says nothing about retries, restarts or probes; what it includes is
  not read
no findings
";
    assert_eq!(seen.exits(0).stdout, want);
    assert_eq!(check(&files, &["nginx.conf", "--json"]).json()["files"][0]["notes"][0]["kind"], "not-read");

    files.write("app.service", "[Service]\nRestart=always\nStartLimitInterval=0\n");
    fs::create_dir(files.path("app.service.d")).unwrap();
    assert_eq!(check(&files, &["app.service"]).exits(0).stderr, "");
    files.write("app.service.d/10-fast.conf", "[Service]\nRestartSec=0\n");
    let seen = check(&files, &["app.service"]);
    assert!(seen.exits(0).stderr.contains("`systemctl cat app.service | stagger check -`"), "{seen:#?}");
}

#[test]
fn context_flags_apply_to_files_and_those_without_effect_are_named() {
    let files = Files::new();
    files.write("virtualservice.yaml", MESH.replace("perTryTimeout: 2s", "perTryTimeout: 500ms"));
    files.write("shop.toml", CHAIN);
    assert_eq!(check(&files, &["virtualservice.yaml"]).exits(0).stdout, "virtualservice.yaml: Istio\nno findings\n");
    let flags = ["--for", "serverless", "--retry-after", "3s", "--attempt-timeout", "1s"];
    let seen = check(&files, &[&["virtualservice.yaml", "shop.toml", "--allow", "M003"], &flags[..]].concat());
    for part in [
        "warning[S010]: too many attempts for this purpose\n",
        "  help: max-attempts=3\n",
        "7 +     retries: {attempts: 2, perTryTimeout: 500ms",
        "note: --attempt-timeout has no effect on this file: the file, or a default of\n",
        "note: --for, --attempt-timeout, --retry-after have no effect on this file: a\n      system of services \
         states its own load",
    ] {
        assert!(seen.stdout.contains(part), "{part}\n{}", seen.exits(1).stdout);
    }
    let seen = check(&files, &[&["virtualservice.yaml", "--json"], &flags[..]].concat());
    let flags = &seen.json()["files"][0]["unused_flags"];
    assert_eq!((&flags[0]["flag"], &flags[1]["flag"]), (&"--attempt-timeout".into(), &"--retry-after".into()));

    // A file has its own policy.
    let seen = check(&files, &["virtualservice.yaml", "-n", "3"]);
    assert!(seen.exits(2).stderr.contains("--max-attempts describes a policy, and only files are given"), "{seen:#?}");
    assert!(check(&files, &["virtualservice.yaml", "-n", "3", "-p", "zero"]).exits(1).stderr.is_empty());
}

#[test]
fn findings_that_are_equal_are_shown_once_with_all_their_places() {
    let files = Files::new();
    let probe = "  - name: app\n    livenessProbe: {httpGet: {path: /, port: 80}}\n".repeat(3);
    files.write(
        "pod.yaml",
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: app}}\nspec:\n  containers:\n{probe}"),
    );
    let seen = check(&files, &["pod.yaml"]);
    assert!(seen.stdout.contains("\n  the same at 9:5, 11:5\n3 warnings;"), "{}", seen.stdout);
}

#[test]
fn files_of_several_layers_are_taken_for_one_path() {
    let files = Files::new();
    files.write("mesh.yaml", MESH);
    files.write("application.yml", "resilience4j.retry.instances.a: {maxAttempts: 3}\n");
    let seen = check(&files, &[".", "--allow", "S001,S013"]);
    let text = seen.exits(1).stdout.replace("\n    ", " ");
    assert!(text.contains("taken for layers of one path, from the users inward: library, mesh"), "{text}");
    assert!(text.contains("a server that fails receives each call 18 times"), "{text}");
    assert!(check(&files, &["mesh.yaml", "--allow", "S013"]).exits(0).stdout.contains("no findings"));
}

#[test]
fn a_file_of_a_directory_that_cannot_be_read_is_named_and_the_others_are_checked() {
    let files = Files::new();
    files.write("good.yaml", MESH);
    files.write("template.yaml", "a: {{ .Values.b }}: c\n\t- d");
    files.write("other.yaml", "color: red\n");
    let seen = check(&files, &["."]);
    assert!(seen.exits(1).stdout.starts_with("./good.yaml: Istio\n"), "{seen:#?}");
    assert!(seen.stderr.starts_with("skipped ./template.yaml:") && seen.stderr.lines().count() == 1, "{seen:#?}");
    let pattern = check(&files, &["o*.yaml"]);
    assert!(pattern.exits(0).stderr.contains("the file says nothing about retries; name one"), "{pattern:#?}");
    let named = check(&files, &["other.yaml"]);
    assert!(named.exits(2).stderr.contains("other.yaml:1:1: not a configuration that is known here"), "{named:#?}");
}

#[test]
fn the_format_can_be_given() {
    let files = Files::new();
    files.write("retries.conf", "retries 2\n");
    let seen = check(&files, &["retries.conf", "--format", "istio"]);
    assert!(seen.exits(2).stderr.contains("retries.conf:1:1:"), "{seen:#?}");
    let seen = check(&files, &["retries.conf", "--format", "helm"]);
    assert!(seen.exits(2).stderr.contains("expected one of grpc, envoy, istio"), "{seen:#?}");
}

/// The types are generated from the schema. What they do not know would be lost on the way back.
#[test]
fn sarif_is_of_its_schema_and_has_places_and_fixes() {
    let files = Files::new();
    fs::create_dir(files.path("a b")).unwrap();
    files.write("a b/mesh.yaml", MESH);
    let seen = check(&files, &["./a b/mesh.yaml", "socket.io", "--sarif"]);
    let written = seen.json();
    let read: Sarif = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), written);
    let run = &written["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let results = run["results"].as_array().unwrap();
    for result in results {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    let placed = results.iter().find(|result| result["ruleId"] == "S013").unwrap();
    let place = &placed["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b/mesh.yaml");
    assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&6.into(), &5.into()));
    let change = &placed["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["insertedContent"]["text"], "perTryTimeout: 560ms");
    // A policy of the command line has no place.
    assert!(results.iter().any(|result| result.get("locations").is_none()), "{written}");
    let none = check(&files, &["a b/mesh.yaml", "--allow", "S013", "--sarif"]).json();
    assert_eq!(none["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn annotations_of_github_are_escaped_lines() {
    let files = Files::new();
    files.write("a,b.yaml", MESH);
    let seen = check(&files, &["a,b.yaml", "--github"]);
    let want = "::warning file=a%2Cb.yaml,line=6,endLine=6,col=5,endColumn=16,title=S013%3A the attempts alone exceed the \
                deadline::Istio makes up to 6 attempts, after 0s to 24ms";
    assert!(seen.exits(1).stdout.starts_with(want) && seen.stdout.lines().count() == 1, "{}", seen.stdout);
    assert!(seen.stdout.contains("%0A6 attempts of 2s take 12s;"), "{}", seen.stdout);
}

#[test]
fn junit_has_a_suite_for_each_file_and_a_failure_for_each_finding() {
    let files = Files::new();
    files.write("bad.yaml", MESH);
    files.write("good.yaml", MESH.replace("attempts: 5", "attempts: 1"));
    let seen = check(&files, &["bad.yaml", "good.yaml", "--junit"]);
    let document = roxmltree::Document::parse(&seen.exits(1).stdout).unwrap();
    let root = document.root_element();
    assert_eq!((root.attribute("tests"), root.attribute("failures")), (Some("2"), Some("1")));
    let suites: Vec<_> = root.children().filter(|node| node.has_tag_name("testsuite")).collect();
    assert_eq!(suites.len(), 2);
    let failure = suites[0].descendants().find(|node| node.has_tag_name("failure")).unwrap();
    assert_eq!(failure.attribute("message"), Some("the attempts alone exceed the deadline"));
    assert!(failure.text().unwrap().contains("perTryTimeout: 560ms"), "{:?}", failure.text());
    assert!(!suites[1].descendants().any(|node| node.has_tag_name("failure")));
}

#[test]
fn findings_of_a_baseline_do_not_count_also_if_their_lines_move() {
    let files = Files::new();
    files.write("mesh.yaml", MESH);
    let written = check(&files, &["mesh.yaml", "socket.io", "--write-baseline", "known.json"]);
    assert!(written.exits(0).stderr.starts_with("wrote ") && written.stdout.is_empty(), "{written:#?}");
    files.write("mesh.yaml", format!("# moved\n{MESH}"));
    let seen = check(&files, &["./mesh.yaml", "socket.io", "--baseline", "known.json"]);
    assert!(seen.exits(0).stdout.contains(" of the baseline not shown\n"), "{seen:#?}");

    // A new finding counts, and only that.
    files.write("mesh.yaml", MESH.replace("connect-failure", "5xx"));
    let seen = check(&files, &["mesh.yaml", "--baseline", "known.json", "--json"]);
    let document = seen.json();
    let found: Vec<_> =
        document["files"][0]["findings"].as_array().unwrap().iter().map(|found| &found["rule"]).collect();
    seen.exits(1);
    assert_eq!(found, ["S019"]);

    let missing = check(&files, &["mesh.yaml", "--baseline", "missing.json"]);
    assert!(missing.exits(125).stderr.contains("--baseline: cannot read missing.json"), "{missing:#?}");
}

#[test]
fn a_document_on_one_line_does_not_fill_the_screen() {
    let files = Files::new();
    let methods = "{\"name\":[{}],\"timeout\":\"9s\",\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"0.1s\",\
        \"maxBackoff\":\"1s\",\"backoffMultiplier\":2,\"retryableStatusCodes\":[\"UNAVAILABLE\"]}},"
        .repeat(200);
    files.write("config.json", format!("{{\"methodConfig\":[{}]}}", methods.trim_end_matches(',')));
    let seen = check(&files, &["config.json"]);
    assert!(seen.exits(1).stdout.lines().all(|line| line.chars().count() <= 100), "{}", seen.stdout);
    assert!(
        seen.stdout.contains("\n    \"retryThrottling\": {\"maxTokens\": 100, \"tokenRatio\": 0.1}\n"),
        "{}",
        seen.stdout
    );
}
