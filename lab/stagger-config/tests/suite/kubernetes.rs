//! Kubernetes itself, Dapr, and workflows.

use stagger_config::RemarkKind;

use crate::described::{described, expect, remarks};

#[test]
fn probes_have_short_defaults_and_jobs_restart_their_pods() {
    let text = r"apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    template:
      spec:
        containers:
        - name: web
          livenessProbe: {httpGet: {path: /, port: 80}, initialDelaySeconds: 3}
          readinessProbe:
            tcpSocket: {port: 80}
            periodSeconds: 2
            timeoutSeconds: 0
            failureThreshold: 10
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: nightly}
  spec:
    jobTemplate:
      spec:
        backoffLimit: 3
        activeDeadlineSeconds: 600
        parallelism: 4
        template: {spec: {restartPolicy: OnFailure}}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: x}
";
    expect(
        &described(text),
        &[
            "Probe Deployment/web spec.template.spec.containers[0].livenessProbe at 12:11: attempts=3* base=10s* multiplier=1* jitter=none* each=1s*",
            "Probe Deployment/web spec.template.spec.containers[0].readinessProbe at 13:11: attempts=10 base=2s multiplier=1* jitter=none* each=1s*",
            "Restart CronJob/nightly spec.jobTemplate.spec at 24:9: attempts=4 cap=300s* multiplier=2* jitter=none* all=600s",
        ],
    );
    assert_eq!(remarks(text, RemarkKind::Unmapped).len(), 1);
    assert!(described("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n").is_empty());
}

#[test]
fn each_field_of_a_job_does_what_its_row_says() {
    let job = |fields: &str, policy: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: a}}\nspec: {{{fields}template: {{spec: {{{policy}}}}}}}\n"
        )
    };
    let never = "restartPolicy: Never";
    let pods = "base=10s* cap=600s* multiplier=2* jitter=none*";
    let none = "all=none*";
    for (fields, policy, wanted, refused) in [
        ("", never, format!("attempts=7* {pods} {none}"), 0),
        ("backoffLimit: 0, ", never, format!("attempts=1 {none}"), 0),
        ("backoffLimit: -1, ", never, format!("attempts=unknown {pods} {none}"), 1),
        ("activeDeadlineSeconds: 60, ", never, format!("attempts=7* {pods} all=60s"), 0),
        ("activeDeadlineSeconds: -1, ", never, format!("attempts=7* {pods} all=unknown"), 1),
        ("backoffLimitPerIndex: 0, completionMode: Indexed, ", never, format!("attempts=1 {none}"), 0),
        ("backoffLimitPerIndex: 2, completionMode: Indexed, ", never, format!("attempts=3 {pods} {none}"), 0),
        ("backoffLimitPerIndex: 2, ", never, format!("attempts=3 {pods} {none}"), 1),
        (
            "backoffLimitPerIndex: 2, completionMode: Indexed, ",
            "restartPolicy: OnFailure",
            format!("attempts=3 cap=300s* multiplier=2* jitter=none* {none}"),
            1,
        ),
        ("", "restartPolicy: OnFailure", format!("attempts=7* cap=300s* multiplier=2* jitter=none* {none}"), 0),
        ("", "restartPolicy: Always", format!("attempts=7* multiplier=2* jitter=none* {none}"), 1),
        ("", "containers: []", format!("attempts=7* multiplier=2* jitter=none* {none}"), 1),
        ("", "restartPolicy: '${P}'", format!("attempts=7* multiplier=2* jitter=none* {none}"), 0),
    ] {
        let text = job(fields, policy);
        assert_eq!(described(&text)[0].split_once(": ").unwrap().1, wanted, "{text}");
        let found = remarks(&text, RemarkKind::Invalid);
        assert_eq!(found.len(), refused, "{text}: {found:?}");
    }
}

#[test]
fn each_field_of_a_probe_does_what_its_row_says() {
    let pod = |kind: &str, container: &str| {
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{{kind}: [{{{container}}}]}}\n")
    };
    let rest = "multiplier=1* jitter=none*";
    let plain = format!("attempts=3* base=10s* {rest} each=1s*");
    for (kind, container, wanted, refused) in [
        ("containers", "livenessProbe: {exec: {}}", plain.clone(), 0),
        ("containers", "livenessProbe: {periodSeconds: 0, timeoutSeconds: 0, failureThreshold: 0}", plain.clone(), 0),
        (
            "containers",
            "startupProbe: {periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 30}",
            format!("attempts=30 base=5s {rest} each=2s"),
            0,
        ),
        ("containers", "livenessProbe: {periodSeconds: -1}", "attempts=3* each=1s*".to_owned(), 1),
        ("containers", "livenessProbe: {timeoutSeconds: -1}", format!("attempts=3* base=10s* {rest} each=unknown"), 1),
        (
            "containers",
            "livenessProbe: {failureThreshold: -1}",
            format!("attempts=unknown base=10s* {rest} each=1s*"),
            1,
        ),
        ("containers", "livenessProbe: {successThreshold: 2}", plain.clone(), 1),
        ("containers", "startupProbe: {successThreshold: 2}", plain.clone(), 1),
        ("containers", "livenessProbe: {successThreshold: 1}", plain.clone(), 0),
        ("containers", "readinessProbe: {successThreshold: 2}", plain.clone(), 0),
        ("containers", "readinessProbe: {terminationGracePeriodSeconds: 2}", plain.clone(), 1),
        ("containers", "livenessProbe: {terminationGracePeriodSeconds: 2}", plain.clone(), 0),
        ("initContainers", "livenessProbe: {exec: {}}", plain.clone(), 1),
        ("initContainers", "restartPolicy: Always, livenessProbe: {exec: {}}", plain.clone(), 0),
    ] {
        let text = pod(kind, container);
        assert_eq!(described(&text)[0].split_once(": ").unwrap().1, wanted, "{text}");
        let found = remarks(&text, RemarkKind::Invalid);
        assert_eq!(found.len(), refused, "{text}: {found:?}");
    }
}

#[test]
fn a_policy_of_dapr_without_a_number_retries_for_ever() {
    let text = r"apiVersion: dapr.io/v1alpha1
kind: Resiliency
metadata: {name: r}
spec:
  policies:
    timeouts: {short: 2s}
    retries:
      plain: {policy: constant}
      grows: {policy: exponential, maxInterval: 15s, maxRetries: 10, duration: 1s}
      unused: {policy: constant, duration: 1s, maxRetries: 0}
  targets:
    apps:
      cart: {retry: plain, timeout: short}
    components:
      store: {outbound: {retry: grows}}
";
    expect(
        &described(text),
        &[
            "Call policies.retries.plain at 8:7: attempts=none* base=5s* multiplier=1 jitter=none* each=2s",
            "Call policies.retries.grows at 9:7: attempts=11 base=500ms* cap=15s multiplier=1.5* jitter=±50%* each=none*",
            "Call policies.retries.unused at 10:7: attempts=1 each=none*",
        ],
    );
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(
        found.len() == 2 && found[0].contains("begins at 500ms") && found[1].contains("no target names"),
        "{found:?}"
    );
}

#[test]
fn retriers_of_a_state_machine_are_read_at_every_depth() {
    let text = r#"{
  "StartAt": "All",
  "States": {
    "All": {"Type": "Map", "ItemProcessor": {"StartAt": "Call", "States": {
      "Call": {"Type": "Task", "TimeoutSeconds": 30, "End": true, "Retry": [
        {"ErrorEquals": ["Lambda.TooManyRequestsException"], "IntervalSeconds": 2, "MaxAttempts": 6, "BackoffRate": 2, "MaxDelaySeconds": 20, "JitterStrategy": "FULL"},
        {"ErrorEquals": ["States.ALL"]},
        {"ErrorEquals": ["Fatal"], "MaxAttempts": 0}
      ]}
    }}, "End": true}
  }
}"#;
    expect(
        &described(text),
        &[
            "Step All.Call.Retry[0] at 6:9: attempts=7 base=2s cap=20s multiplier=2 jitter=full each=30s",
            "Step All.Call.Retry[1] at 7:9: attempts=4* base=1s* cap=none* multiplier=2* jitter=none* each=30s unsafe",
            "Step All.Call.Retry[2] at 8:9: attempts=1 each=30s",
        ],
    );
}

#[test]
fn each_field_of_a_retrier_does_what_its_row_says() {
    let machine = |kind: &str, state: &str, retrier: &str, top: &str| {
        format!(
            "{{\"StartAt\": \"A\", {top} \"States\": {{\"A\": {{\"Type\": \"{kind}\", {state} \"Retry\": [{{\"ErrorEquals\": [\"E\"] \
             {retrier}}}]}}}}}}"
        )
    };
    let task = |retrier: &str| machine("Task", "", retrier, "");
    let within = |state: &str| machine("Task", state, "", "");
    let grows = "base=1s* cap=none* multiplier=2* jitter=none*";
    let each = "each=none*";
    for (text, wanted, refused) in [
        (task(""), format!("attempts=4* {grows} {each}"), 0),
        // One without retries says nothing about the limits of the others.
        (task(", \"MaxAttempts\": 0"), "attempts=1".to_owned(), 0),
        (task(", \"MaxAttempts\": 1.5"), format!("attempts=unknown {grows} {each}"), 1),
        (
            task(", \"IntervalSeconds\": 3"),
            format!("attempts=4* base=3s cap=none* multiplier=2* jitter=none* {each}"),
            0,
        ),
        (task(", \"IntervalSeconds\": 0"), format!("attempts=4* cap=none* multiplier=2* jitter=none* {each}"), 1),
        (task(", \"IntervalSeconds\": 0.5"), format!("attempts=4* cap=none* multiplier=2* jitter=none* {each}"), 1),
        (task(", \"BackoffRate\": 1"), format!("attempts=4* base=1s* cap=none* multiplier=1 jitter=none* {each}"), 0),
        (task(", \"BackoffRate\": 0.9"), format!("attempts=4* base=1s* cap=none* jitter=none* {each}"), 1),
        (task(", \"MaxDelaySeconds\": 9"), format!("attempts=4* base=1s* cap=9s multiplier=2* jitter=none* {each}"), 0),
        (
            task(", \"MaxDelaySeconds\": 0"),
            format!("attempts=4* base=1s* cap=unknown multiplier=2* jitter=none* {each}"),
            1,
        ),
        (
            task(", \"JitterStrategy\": \"FULL\""),
            format!("attempts=4* base=1s* cap=none* multiplier=2* jitter=full {each}"),
            0,
        ),
        (task(", \"JitterStrategy\": \"HALF\""), format!("attempts=4* base=1s* cap=none* multiplier=2* {each}"), 1),
        (within("\"TimeoutSeconds\": 5,"), format!("attempts=4* {grows} each=5s"), 0),
        (within("\"TimeoutSeconds\": 0,"), format!("attempts=4* {grows} each=unknown"), 1),
        (within("\"TimeoutSeconds\": \"{% $t %}\","), format!("attempts=4* {grows} each=unknown"), 0),
        (within("\"TimeoutSecondsPath\": \"$.t\","), format!("attempts=4* {grows} each=unknown"), 0),
        (machine("Task", "", "", "\"TimeoutSeconds\": 60,"), format!("attempts=4* {grows} {each} all=60s"), 0),
        (machine("Parallel", "", "", ""), format!("attempts=4* {grows}"), 0),
        (machine("Map", "\"TimeoutSeconds\": 5,", "", ""), format!("attempts=4* {grows}"), 1),
        (machine("Choice", "", "", ""), format!("attempts=4* {grows}"), 1),
        (task("").replace("[\"E\"]", "[\"States.ALL\"]"), format!("attempts=4* {grows} {each} unsafe"), 0),
        (task("").replace("[\"E\"]", "[\"States.ALL\", \"E\"]"), format!("attempts=4* {grows} {each} unsafe"), 1),
    ] {
        assert_eq!(described(&text)[0].split_once(": ").unwrap().1, wanted, "{text}");
        let found = remarks(&text, RemarkKind::Invalid);
        assert_eq!(found.len(), refused, "{text}: {found:?}");
    }
    let first = task("").replace("[{\"Error", "[{\"ErrorEquals\": [\"States.ALL\"]}, {\"Error");
    assert_eq!(remarks(&first, RemarkKind::Invalid).len(), 1, "{first}");
    // The items of a distributed map are executions of their own.
    let map = |mode: &str| {
        format!(
            "{{\"StartAt\": \"M\", \"TimeoutSeconds\": 60, \"States\": {{\"M\": {{\"Type\": \"Map\", \"ItemProcessor\": \
             {{\"ProcessorConfig\": {{\"Mode\": \"{mode}\"}}, {}}}}}}}",
            &task("")[1..]
        )
    };
    assert!(described(&map("INLINE"))[0].ends_with("all=60s"), "{:?}", described(&map("INLINE")));
    assert!(described(&map("DISTRIBUTED"))[0].ends_with("each=none*"), "{:?}", described(&map("DISTRIBUTED")));
}
