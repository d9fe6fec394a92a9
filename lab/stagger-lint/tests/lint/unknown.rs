//! No rule concludes anything of a value that is not known.

use stagger_lint::DeploymentContext;
use stagger_lint::config::ConfigFile;

fn codes(text: &str, context: &DeploymentContext) -> Vec<&'static str> {
    let file = ConfigFile::read("file", text, None).unwrap_or_else(|error| panic!("{error}: {text}"));
    file.check_in(context).iter().map(|found| found.finding().rule().code()).collect()
}

#[test]
fn no_rule_fires_on_a_value_that_is_filled_in_elsewhere() {
    let plain = DeploymentContext::default();
    let loaded = plain
        .clients(10_000.try_into().unwrap())
        .capacity("500/s".parse().unwrap())
        .deadline(core::time::Duration::from_secs(1));
    for text in [
        // The limits of time are known, and the attempts are not.
        "services: {a: {image: a, restart: '${RESTART}'}}\n",
        "[Service]\nExecStart=/x\nRestart=always\nRestartSec=${DELAY}\n",
        "[Unit]\nStartLimitBurst=@N@\n[Service]\nExecStart=/x\nRestart=always\n",
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{timeout: '${T}', retries: \
             {attempts: '${N}', perTryTimeout: '${P}', retryOn: '${C}'}}]}\n",
        "route: {cluster: a, timeout: '${T}', retry_policy: {retry_on: connect-failure, num_retries: '${N}', \
             retry_back_off: {base_interval: '${B}'}}}\n",
        "backend a\n  retries \"${N}\"\n  timeout server \"${T}\"\n  server a 10.0.0.1:80\n",
        "upstream a { server 10.0.0.1; server 10.0.0.2; }\nserver { location / { proxy_next_upstream_tries ${N}; \
             proxy_next_upstream_timeout ${T}; proxy_pass http://a; } }\n",
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{livenessProbe: {httpGet: {port: 80}, timeoutSeconds: '${T}', \
             periodSeconds: '${P}'}}]}\n",
        "resilience4j.retry.instances.a.max-attempts=${N}\n",
    ] {
        assert_eq!(codes(text, &plain), [""; 0], "{text}");
        assert_eq!(codes(text, &loaded), [""; 0], "{text}");
    }
}

#[test]
fn rules_fire_on_the_default_in_a_placeholder() {
    let unit = "[Service]\nExecStart=/x\nRestart=always\nRestartSec=${DELAY:-1s}\n";
    assert_eq!(codes(unit, &DeploymentContext::default()), ["C005"]);
}
