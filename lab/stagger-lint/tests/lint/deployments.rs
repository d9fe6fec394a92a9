//! Configurations in a deployment: the rules for policies that need to know it, and what the file says in its stead.

use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;

use stagger_core::text::Rate;
use stagger_lint::config::ConfigFile;
use stagger_lint::{Budgeted, DeploymentContext, FileFinding, Idempotency, Purpose};

const UNIT: &str = "[Unit]\nDescription=a\n[Service]\nRestart=always\nRestartSec=5s\n";

const MESH: &str = "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec:
  http:
  - name: ratings
    timeout: 4s
    retries:
      attempts: 5
      perTryTimeout: 500ms
      retryOn: connect-failure
";

const NGINX: &str = "\
upstream app { server a; server b; server c; server d; }
server {
    location / {
        fastcgi_next_upstream_tries 4;
        fastcgi_next_upstream_timeout 9s;
        fastcgi_read_timeout 2s;
        fastcgi_pass app;
    }
}
";

const GRPC: &str = r#"{
  "methodConfig": [{
    "name": [{}],
    "retryPolicy": {
      "maxAttempts": 5,
      "initialBackoff": "0.1s",
      "maxBackoff": "1s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    },
    "timeout": "20s"
  }],
  "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1}
}
"#;

const SPRING: &str = "\
resilience4j:
  retry:
    instances:
      orders:
        maxAttempts: 6
        waitDuration: 500ms
        enableRandomizedWait: true
";

const LINKERD: &str = "\
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    retry.linkerd.io/http: gateway-error
    retry.linkerd.io/limit: '3'
    retry.linkerd.io/timeout: 100ms
    timeout.linkerd.io/request: 2s
";

const PROBE: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: app
    livenessProbe: {timeoutSeconds: 3, httpGet: {path: /}}
";

fn known() -> DeploymentContext {
    DeploymentContext::default()
}

fn per_second(rate: f64) -> Rate {
    Rate::per_second(rate).unwrap()
}

fn read(text: &str) -> ConfigFile {
    ConfigFile::read("file", text, None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn find(text: &str, context: &DeploymentContext, code: &str) -> Option<FileFinding> {
    read(text).check_in(context).into_iter().find(|found| found.finding().rule().code() == code)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A file, what is known beside it, the rule that applies because of that, and a part of the fixed file.
#[test]
fn a_rule_that_needs_the_deployment_fires_with_it_and_is_silent_without_it_and_on_the_fixed_file() {
    let serverless = known().purpose(Purpose::Serverless);
    let interactive = known().purpose(Purpose::Interactive);
    let within = |s| known().deadline(seconds(s));
    let cases: [(&str, DeploymentContext, &str, &str); 12] = [
        (MESH, serverless, "S010", "      attempts: 2\n"),
        (MESH, interactive, "S010", "      attempts: 2\n"),
        (MESH, within(2), "S012", "    timeout: 2s\n"),
        (MESH, within(2), "S013", "perTryTimeout: 230ms"),
        (
            NGINX,
            serverless,
            "S010",
            "        fastcgi_next_upstream_tries 3;\n        fastcgi_next_upstream_timeout 9s;\n",
        ),
        (GRPC, serverless, "S010", "\"maxAttempts\": 3,"),
        (GRPC, within(1), "S012", "\"timeout\": \"1s\""),
        (GRPC, known().lease(seconds(1)), "S012", "\"timeout\": \"1s\""),
        (SPRING, serverless, "S010", "        maxAttempts: 3\n"),
        (LINKERD, serverless, "S010", "retry.linkerd.io/limit: '2'\n"),
        (GRPC, known().invocation(seconds(1)), "S012", "\"timeout\": \"1s\""),
        (SPRING, known().tick(seconds(1)), "S009", ""),
    ];
    for (text, context, code, part) in cases {
        assert_eq!(find(text, &known(), code), None, "{code} without {context:?}");
        let found = find(text, &context, code).unwrap_or_else(|| panic!("{code} of {context:?}\n{text}"));
        if part.is_empty() {
            continue;
        }
        let fix = found.fix().unwrap_or_else(|| panic!("{code}: {found:?}"));
        let fixed = fix.applied_to(text).unwrap_or_else(|| panic!("{code}: {fix:?}"));
        assert!(fixed.contains(part), "{code}: {part}\n{fixed}");
        assert_eq!(find(&fixed, &context, code), None, "{code}: {fixed}");
    }
}

#[test]
fn a_fleet_of_processes_that_start_together_is_found() {
    let fleet = known().clients(NonZeroU64::new(10_000).unwrap()).capacity(per_second(500.0));
    let codes = |context| {
        let found = read(UNIT).check_in(&context);
        found.iter().map(|found| found.finding().rule().code()).collect::<Vec<_>>()
    };
    assert_eq!(codes(known()), ["C006"]);
    // S016 is about calls, and a single process is no fleet.
    assert_eq!(codes(fleet), ["S004", "S022", "C006"]);
    assert_eq!(codes(known().clients(NonZeroU64::MIN).capacity(per_second(500.0))), ["C006"]);
    let found = find(UNIT, &fleet, "S004").unwrap();
    let advice = found.finding().suggestion().advice().unwrap().to_owned();
    assert!(advice.starts_with("spread=20s base=20s, as a policy, which this file cannot say"), "{advice}");
}

#[test]
fn what_the_file_says_of_itself_counts() {
    // A flag for the length of an attempt does not replace that of the file.
    let slow = known().attempt_timeout(seconds(3));
    assert_eq!(find(MESH, &slow, "S013"), None);
    assert_eq!(read(MESH).unused(&slow).iter().map(|fact| fact.name()).collect::<Vec<_>>(), ["attempt-timeout"]);
    // This one has none.
    assert!(find(GRPC, &known().attempt_timeout(seconds(5)), "S013").is_some());
    assert_eq!(find(GRPC, &known().attempt_timeout(seconds(4)), "S013"), None);
    // Its own limit ends a call sooner than the caller, the lease, or the invocation.
    for longer in [known().deadline(seconds(20)), known().lease(seconds(20)), known().invocation(seconds(21))] {
        assert_eq!(find(GRPC, &longer, "S012"), None, "{longer:?}");
    }
    // That of nginx ends no attempt.
    assert_eq!(find(NGINX, &known().deadline(seconds(11)), "S012"), None);
    assert!(find(NGINX, &known().deadline(seconds(10)), "S012").is_none(), "the worst case is 8 s");
    assert!(find(NGINX, &known().deadline(seconds(7)), "S012").is_some());
}

#[test]
fn a_budget_of_the_file_is_a_budget() {
    let busy = known().requests(per_second(500.0));
    assert_eq!(find(GRPC, &busy, "S016"), None);
    let unguarded = GRPC.replace("\"retryThrottling\": {\"maxTokens\": 100, \"tokenRatio\": 0.1}", "\"a\": 1");
    let found = find(&unguarded, &busy, "S016").unwrap();
    // The rule that needs no figures says the same.
    assert!(find(&unguarded, &known(), "C012").is_some() && find(&unguarded, &busy, "C012").is_none());
    let fixed = found.fix().unwrap().applied_to(&unguarded).unwrap();
    assert!(fixed.contains("retryThrottling") && find(&fixed, &busy, "S016").is_none(), "{fixed}");
    // One that is given counts where the file has none.
    assert_eq!(find(&unguarded, &busy.budget(Budgeted::Yes), "S016"), None);
    assert_eq!(read(GRPC).unused(&known().budget(Budgeted::Yes)).len(), 1);
    assert_eq!(read(&unguarded).unused(&known().budget(Budgeted::Yes)), []);
}

#[test]
fn whether_calls_may_be_repeated_is_for_the_user_to_say() {
    let unsafe_mesh = MESH.replace("connect-failure", "5xx");
    assert!(find(&unsafe_mesh, &known(), "S019").is_some());
    for safe in [Idempotency::Yes, Idempotency::ByKey] {
        assert_eq!(find(&unsafe_mesh, &known().idempotency(safe), "S019"), None);
    }
    let not = known().idempotency(Idempotency::No);
    assert!(find(SPRING, &not, "S019").is_some() && find(SPRING, &known(), "S019").is_none());
    // Only what was not processed is repeated.
    assert_eq!(find(MESH, &not, "S019"), None);
    assert_eq!(read(MESH).unused(&not).len(), 1);
}

#[test]
fn a_fact_that_no_part_of_a_file_uses_is_named_with_the_reason() {
    let many = known()
        .purpose(Purpose::Far)
        .clients(NonZeroU64::MIN)
        .requests(per_second(1.0))
        .layers(NonZeroU32::MIN)
        .retry_after(seconds(1));
    let names = |text: &str| {
        let unused = read(text).unused(&many);
        unused.iter().map(|fact| format!("{}: {}", fact.name(), fact.reason())).collect::<Vec<_>>()
    };
    assert_eq!(names(MESH), ["retry-after: whether a system waits as long as a server asks is not read from its file"]);
    let of_a_process = "the file starts a process again, which is not a call";
    let unit = names(UNIT);
    assert_eq!(unit.iter().filter(|text| text.ends_with(of_a_process)).count(), 3, "{unit:?}");
    assert!(unit.iter().all(|text| !text.starts_with("clients")), "{unit:?}");
    assert!(
        names(PROBE).len() == 5 && names(PROBE).iter().all(|text| text.contains("probes alone, which are not calls"))
    );
    let off = names(&MESH.replace("attempts: 5", "attempts: 0"));
    assert!(off.len() == 5 && off.iter().all(|text| text.ends_with("nothing in the file is retried")), "{off:?}");
    // Of several parts, one that uses it is enough.
    let both = format!("{PROBE}---\n{MESH}");
    assert_eq!(read(&both).unused(&many).len(), 1);
    assert_eq!(read(MESH).unused(&known()), []);
}

#[test]
fn the_load_is_applied_to_so_many_policies_that_differ() {
    let routes = |count: u32| {
        let route =
            |nth| format!("  - timeout: 9s\n    retries: {{attempts: {}, retryOn: connect-failure}}\n", nth + 1);
        let all: String = (0..count).map(route).collect();
        format!("{}{all}", MESH.split("  - name").next().unwrap())
    };
    let busy = known().requests(per_second(500.0));
    let found = |count| {
        let file = read(&routes(count));
        let found = file.check_in(&busy);
        let loaded = found.iter().filter(|found| found.finding().rule().code() == "S016").count();
        (loaded, file.unused(&busy).len())
    };
    assert_eq!(found(64), (64, 0));
    assert_eq!(found(66), (64, 1));
}
