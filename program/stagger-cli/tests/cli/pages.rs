//! Tests of the pages of `stagger check` and `stagger advise`.

use std::fs;

use serde_json::Value;

use crate::simulate_report::opened;
use crate::support::{Files, Seen, see, stagger};

/// Returns the document in a page.
fn embedded(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"storm\">").expect("a document");
    let (json, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(json).expect("JSON")
}

fn check(files: &Files, args: &[&str]) -> Seen {
    see(stagger(["check"]).args(args).current_dir(files.path(".")))
}

#[test]
fn a_page_of_check_has_every_finding_and_a_browser_shows_it_without_an_error_or_a_request() {
    needs!("chromium");
    let files = Files::new();
    let hostile = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec:\n  hosts: ['</pre><script>console.error(1)</script>']\n  \
                   http:\n  - route:\n    - destination: {host: a}\n    retries: {attempts: 9, retryOn: 5xx} # \
                   </pre><img src=http://127.0.0.1:9/x>\n";
    files.write("vs.yaml", hostile);
    let args = ["socket.io", "vs.yaml", "--clients", "10k", "--capacity", "500/s"];
    let text = check(&files, &args);
    let seen = check(&files, &[&args[..], &["-o", "page.html"]].concat());
    assert_eq!((&seen.exits(1).stdout, &seen.stderr), (&text.stdout, &text.stderr), "the page changes nothing else");
    let page = fs::read_to_string(files.path("page.html")).unwrap();
    let document = embedded(&page);
    let of_policies = document["policies"][0]["findings"].as_array().expect("findings").len();
    assert!(of_policies > 2 && !document["files"][0]["findings"].as_array().expect("findings").is_empty());
    for finding in document["policies"][0]["findings"].as_array().unwrap() {
        let code = finding["rule"].as_str().expect("a code");
        assert!(page.contains(&format!(" {code}</small></h3>")), "{code}");
    }
    assert!(page.contains("warning S002</small>") && page.contains("<dt>fixed</dt><dd><code>"), "{page}");
    let (_, console, requests) = opened(&files, &files.path("page.html"));
    assert_eq!((console, requests), (Vec::new(), Vec::new()));
}

#[test]
fn a_page_without_findings_says_so() {
    let files = Files::new();
    let seen = check(&files, &["exponential base=1s cap=30s max-attempts=3", "-o", "-"]);
    let page = &seen.exits(0).stdout;
    assert!(page.contains("<p class=\"answer\">No findings.</p>"), "{page}");
    assert_eq!(embedded(page)["schema"], "stagger.check/1");
}

#[test]
fn a_page_of_advise_has_the_recommended_policy_and_its_figures() {
    let files = Files::new();
    let mut command = stagger(["advise", "--for=reconnecting", "--clients=100", "--capacity=20/s", "--outage=5s"]);
    let page = see(command.args(["-o", "-"]).current_dir(files.path("."))).exits(0).stdout.clone();
    let document = embedded(&page);
    assert_eq!(document["schema"], "stagger.advise/1");
    let policy = document["policy"]["line"].as_str().expect("a policy");
    let answer = format!("<p class=\"answer\">Retry with {policy}: after a mass disconnect ");
    assert!(page.contains(&answer), "{page}");
    assert!(page.contains("stagger simulate reconnect --clients 100"), "{page}");
}

#[test]
fn standard_output_has_one_output() {
    for args in [
        &["check", "curl", "-o", "-", "--json"][..],
        &["check", "curl", "-o", "-", "--sarif"],
        &["advise", "-o", "-", "--json"],
    ] {
        see(&mut stagger(args)).exits(2).says("write the page to a file");
    }
    see(&mut stagger(["check", "curl", "-o", "/no/such/page.html"])).exits(125).says("create the directory first");
}
