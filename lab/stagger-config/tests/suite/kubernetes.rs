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
            "Restart CronJob/nightly spec.jobTemplate.spec at 24:9: attempts=4 base=10s* cap=300s* multiplier=2* jitter=none* all=600s",
        ],
    );
    assert_eq!(remarks(text, RemarkKind::Unmapped).len(), 1);
    assert!(described("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n").is_empty());
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
