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
fn each_setting_of_a_unit_does_what_its_row_says() {
    let plain = "multiplier=1* jitter=none*";
    for (service, wanted, wrong) in [
        ("Restart=on-watchdog\n", format!("attempts=5* base=100ms* {plain}"), 0),
        ("Type=oneshot\nRestart=on-failure\n", format!("attempts=5* base=100ms* {plain}"), 0),
        ("Type=oneshot\nRestart=always\n", format!("attempts=5* base=100ms* {plain}"), 1),
        ("Restart=on-success\nType=oneshot\n", format!("attempts=5* base=100ms* {plain}"), 1),
        ("Restart=always\nRestartSec=0\n", format!("attempts=5* base=0ns {plain}"), 0),
        ("Restart=always\nRestartSec=infinity\n", "attempts=1".to_owned(), 0),
        // The longest delay replaces a longer one, also if nothing grows.
        ("Restart=always\nRestartSec=1min\nRestartMaxDelaySec=1s\n", format!("attempts=5* base=1s {plain}"), 1),
        ("Restart=always\nRestartSec=infinity\nRestartMaxDelaySec=1s\n", format!("attempts=5* base=1s {plain}"), 1),
        ("Restart=always\nRestartSteps=0\nRestartMaxDelaySec=1s\n", format!("attempts=5* base=100ms* {plain}"), 1),
        (
            "Restart=always\nRestartSteps=3\nRestartMaxDelaySec=infinity\n",
            format!("attempts=5* base=100ms* {plain}"),
            1,
        ),
        // Delays of 1, 2, 4, 8 and 16 s do not fall into 10 s, and those of 0.1 to 1.6 s do.
        (
            "Restart=always\nRestartSec=1s\nRestartSteps=4\nRestartMaxDelaySec=16s\n",
            "attempts=none* base=1s cap=16s multiplier=2 jitter=none*".to_owned(),
            0,
        ),
        (
            "Restart=always\nRestartSteps=4\nRestartMaxDelaySec=1600ms\n",
            "attempts=5* base=100ms* cap=1.6s multiplier=2 jitter=none*".to_owned(),
            0,
        ),
        ("Restart=always\nRestartSteps=${N}\nRestartMaxDelaySec=16s\n", "attempts=unknown* base=100ms*".to_owned(), 0),
        ("Restart=always\nRestartMaxDelaySec=${N}\n", "attempts=unknown*".to_owned(), 0),
        ("Restart=always\nStartLimitBurst=0\n", format!("attempts=none base=100ms* {plain}"), 0),
        ("Restart=always\nStartLimitInterval=infinity\nRestartSec=1h\n", format!("attempts=5 base=3600s {plain}"), 0),
        ("Restart=always\nStartLimitIntervalSec=0\n", format!("attempts=5* base=100ms* {plain}"), 1),
    ] {
        let text = unit(service);
        assert_eq!(described(&text)[0].split_once(": ").unwrap().1, wanted, "{service}");
        let found = [remarks(&text, RemarkKind::Invalid), remarks(&text, RemarkKind::NoEffect)].concat();
        assert_eq!(found.len(), wrong, "{service}: {found:?}");
    }
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

#[test]
fn a_service_whose_restart_is_not_known_is_not_said_to_be_restarted() {
    let service = |restart: &str| {
        format!("services: {{a: {{image: a, restart: '{restart}', depends_on: [b]}}, b: {{image: b}}}}\n")
    };
    assert_eq!(remarks(&service("always"), RemarkKind::Hazard).len(), 1);
    for restart in ["${RESTART}", "sometimes"] {
        assert_eq!(remarks(&service(restart), RemarkKind::Hazard), [""; 0], "{restart}");
    }
}

#[test]
fn each_field_of_compose_is_read_as_the_engine_or_swarm_reads_it() {
    let service = |fields: &str| format!("services: {{a: {{image: a, {fields}}}}}\n");
    let swarm = |policy: &str| service(&format!("deploy: {{restart_policy: {{{policy}}}}}"));
    let health = |check: &str| service(&format!("healthcheck: {{test: x, {check}}}"));
    for (text, settings, invalid) in [
        (service("restart: always"), "attempts=none base=100ms* cap=60s* multiplier=2*", ""),
        (service("restart: on-failure"), "attempts=none", ""),
        (service("restart: on-failure:3"), "attempts=4", ""),
        (service("restart: on-failure:many"), "attempts=none", "Compose reads 0"),
        (service("restart: on-failure:-1"), "Restart", "is not a restart policy"),
        (service("restart: always:3"), "Restart", "is not a restart policy"),
        (swarm("condition: any"), "attempts=none* base=5s*", ""),
        (swarm("condition: none"), "attempts=1", ""),
        (swarm("max_attempts: 2"), "attempts=3 base=5s*", ""),
        (swarm("max_attempts: many"), "attempts=unknown", "whole number"),
        (swarm("condition: always, delay: 0s"), "base=0ns", ""),
        (swarm("delay: 5"), "attempts=none*", "a length of time"),
        (swarm("condition: now"), "attempts=unknown", "none, on-failure or any"),
        (health("retries: 5"), "Probe services.a.healthcheck at 1:26: attempts=5 base=30s*", ""),
        (health("retries: 0, interval: 0s"), "attempts=3* base=30s*", ""),
        (health("interval: 10us"), "attempts=3* each=30s*", "1ms or more"),
        (health("retries: few"), "attempts=unknown", "whole number"),
    ] {
        let lines = described(&text);
        assert!(lines[0].contains(settings), "{text}: {lines:?}");
        let found = remarks(&text, RemarkKind::Invalid);
        assert!(found.iter().all(|remark| remark.contains(invalid)), "{text}: {found:?}");
        assert_eq!(found.is_empty(), invalid.is_empty(), "{text}: {found:?}");
    }
    let notes = |text: &str, part: &str| remarks(text, RemarkKind::Note).iter().any(|note| note.contains(part));
    assert!(notes(&swarm("max_attempts: 2"), "restarts nothing without a condition"));
    assert!(notes(&swarm("condition: any, max_attempts: 2"), "docker compose up refuses max_attempts"));
    assert!(!notes(&swarm("condition: on-failure, max_attempts: 2"), "refuses"));
    for off in ["restart: 'no'", "restart: ''", "healthcheck: {disable: true}", "healthcheck: {test: [NONE]}"] {
        assert!(described(&service(off)).is_empty(), "{off}");
    }
}
