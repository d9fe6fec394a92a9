//! Files that are cut off, long, or made to harm.

use stagger_config::{Format, read};

/// One file of each syntax.
const FILES: [&str; 13] = [
    "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  http:\n  - retries: {attempts: 3, perTryTimeout: 2s}\n    timeout: 1s\n",
    "{\"methodConfig\": [{\"timeout\": \"1s\", \"retryPolicy\": {\"maxAttempts\": 4, \"initialBackoff\": \"0.1s\"}}]}",
    "[Service]\nRestart=always\nRestartSec=1min 2s\nRestartSteps=3\nRestartMaxDelaySec=1h\n",
    "http { upstream a { server b; server c max_fails=0; } server { location / { proxy_pass http://a; } } }",
    "defaults\n  timeout connect 5s\nbackend b\n  retries 2\n  server a 1.2.3.4:80\n",
    "resilience4j.retry.instances.a.waitDuration=1s\nresilience4j.retry.instances.a.enableExponentialBackoff=true\n",
    "spring.cloud.gateway.routes[0].filters[0]=Retry=3,BAD_GATEWAY,GET,10ms\n",
    "[default]\nretry_mode = standard\nmax_attempts = 5\n",
    "unit:\n  script: x\n  timeout: 1h 30m\n  retry: {max: 2}\n",
    "jobs:\n  a:\n    steps:\n    - uses: nick-fields/retry@v3\n      with: {max_attempts: 3}\n",
    "apiVersion: batch/v1\nkind: CronJob\nspec:\n  schedule: '0-9/2,40 * * * *'\n  jobTemplate: {spec: {backoffLimit: 9}}\n",
    "upstream a { server unix:/b; server b; } server { listen [::1]:8; limit_req z; limit_req_status 429; proxy_pass http://a; }",
    "{\"RetryOptions\": {\"MaxRetries\": 4, \"Delay\": \"00:00:00.8\", \"MaxDelay\": \"1.00:00:00\", \"Mode\": \"Fixed\"}}",
];

#[test]
fn a_file_that_is_cut_or_changed_anywhere_is_read_or_refused() {
    for file in FILES {
        assert!(!read(file, None).unwrap().is_empty(), "{file}");
        for at in 0..file.len() {
            let _ = read(&file[..at], None);
            for replacement in ["", "{", "\"", "\n", "-", "é", "99999999999999999999"] {
                let changed = format!("{}{replacement}{}", &file[..at], &file[at + 1..]);
                let _ = read(&changed, None);
            }
            for format in Format::all() {
                let _ = read(&file[..at], Some(format));
            }
        }
    }
}

#[test]
fn numbers_beyond_every_limit_saturate_or_are_refused_with_a_remark() {
    let text = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  http:\n  - retries: {attempts: 4294967295, perTryTimeout: 99999999h, backoff: 9999999h}\n    timeout: 1e9s\n";
    let entries = read(text, None).unwrap();
    assert!(entries[0].settings.attempts.is_some());
    assert_eq!(entries[0].remarks.iter().filter(|remark| remark.path.ends_with("timeout")).count(), 1);
}

// Their places are looked up in each of the lists and objects once.
#[test]
fn a_service_config_of_many_methods_and_fields_is_read_in_linear_time() {
    let many = |one: fn(usize) -> String| (0..50_000).map(one).collect::<Vec<_>>().join(",");
    let keys = many(|at| format!("\"key{at}\": 1"));
    let methods = many(|at| format!("{{\"name\": [{{\"service\": \"s{at}\"}}], \"timeout\": \"1s\"}}"));
    let text = format!("{{{keys}, \"methodConfig\": [{methods}, {{\"retryPolicy\": {{{keys}}}}}]}}");
    let entries = read(&text, None).unwrap();
    assert_eq!((entries.len(), entries[50_000].remarks.len()), (50_001, 50_000 + 5 + 2));
}
