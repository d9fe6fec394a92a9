//! systemd and Docker Compose.

use stagger_config::RemarkKind;

use crate::described::{described, expect, remarks};

fn unit(service: &str) -> String {
    format!("[Unit]\nDescription=x\n\n[Service]\nExecStart=/bin/x\n{service}")
}

#[test]
fn a_start_limit_is_reached_only_if_the_starts_fit_into_its_interval() {
    for (service, wanted) in [
        ("Restart=always\n", "Restart [Service] at 6:1: attempts=5* base=100ms* multiplier=1* jitter=none*"),
        (
            "Restart=on-failure\nRestartSec=2\n",
            "Restart [Service] at 6:1: attempts=none* base=2s multiplier=1* jitter=none*",
        ),
        (
            "Restart=on-failure\nRestartSec=1999ms\n",
            "Restart [Service] at 6:1: attempts=5* base=1.999s multiplier=1* jitter=none*",
        ),
        (
            "Restart=always\nRestartSec=1\nStartLimitInterval=1min\nStartLimitBurst=4\n",
            "Restart [Service] at 6:1: attempts=4 base=1s multiplier=1* jitter=none*",
        ),
        (
            "Restart=always\nStartLimitInterval=0\n",
            "Restart [Service] at 6:1: attempts=none base=100ms* multiplier=1* jitter=none*",
        ),
    ] {
        expect(&described(&unit(service)), &[wanted]);
    }
    assert!(described(&unit("Restart=no\n")).is_empty());
    assert!(described(&unit("")).is_empty());
}

#[test]
fn steps_of_systemd_need_their_longest_delay() {
    let both = unit("Restart=always\nRestartSec=1s\nRestartSteps=4\nRestartMaxDelaySec=16s\nStartLimitInterval=0\n");
    expect(&described(&both), &["Restart [Service] at 6:1: attempts=none base=1s cap=16s multiplier=2 jitter=none*"]);
    let one = unit("Restart=always\nRestartSteps=4\n");
    expect(
        &remarks(&one, RemarkKind::NoEffect),
        &["7:1 [Service] RestartSteps: has an effect only together with RestartMaxDelaySec="],
    );
    let invalid = remarks(&unit("Restart=sometimes\n"), RemarkKind::Invalid);
    assert!(invalid.len() == 1 && invalid[0].contains("`sometimes`"), "{invalid:?}");
    let invalid = remarks(&unit("Restart=always\nRestartSec=soon\n"), RemarkKind::Invalid);
    assert!(invalid.len() == 1 && invalid[0].starts_with("7:1"), "{invalid:?}");
}

#[test]
fn services_of_compose_restart_for_ever_unless_a_number_is_given() {
    let text = r#"x-base: &base {restart: unless-stopped}
services:
  web:
    <<: *base
    image: web
    healthcheck: {test: [CMD, curl, localhost], interval: 15s, timeout: 5s, start_period: 1m}
  job: {image: job, restart: "on-failure:3"}
  none: {image: none, restart: "no", healthcheck: {disable: true}}
  swarm:
    image: s
    restart: always
    deploy: {restart_policy: {condition: any, delay: 5s, max_attempts: 2}}
  odd: {image: odd, restart: sometimes}
"#;
    expect(
        &described(text),
        &[
            "Restart services.web.restart at 1:16: attempts=none base=100ms* cap=60s* multiplier=2* jitter=none*",
            "Probe services.web.healthcheck at 6:5: attempts=3* base=15s multiplier=1* jitter=none* each=5s",
            "Restart services.job.restart at 7:21: attempts=4 base=100ms* cap=60s* multiplier=2* jitter=none*",
            "Restart services.swarm.deploy.restart_policy at 12:14: attempts=3 base=5s multiplier=1* jitter=none*",
            "Restart services.odd.restart at 13:21:",
        ],
    );
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains("deploy.restart_policy takes its place"), "{found:?}");
    let found = remarks(text, RemarkKind::Invalid);
    assert!(found.len() == 1 && found[0].contains("`sometimes`"), "{found:?}");
}
