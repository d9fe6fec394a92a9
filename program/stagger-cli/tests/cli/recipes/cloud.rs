//! aws and kubectl, with stand-ins for them.

use super::bench::Bench;
use super::page::code;
use crate::support::see;

#[test]
fn aws_has_five_attempts_or_stagger_has_eight() {
    let bench = Bench::new();
    let lines = code("aws");
    bench.failing("aws", 0, "", 0, "echo \"$AWS_RETRY_MODE $AWS_MAX_ATTEMPTS\"");
    bench.see(&lines[0]).exits(0).prints("standard 5\n");
    assert_eq!(bench.take_calls("aws"), ["s3 cp backup.tar s3://backups/"]);
    // An endpoint that does not answer, then an answer.
    let refused = "upload failed: ./backup.tar to s3://backups/backup.tar Could not connect to the endpoint URL";
    bench.failing("aws", 3, refused, 1, "echo \"$AWS_MAX_ATTEMPTS\"");
    bench.see(&lines[1]).exits(0).prints("1\n").says("attempt=4/8 result=ok");
    for (message, code, reason) in [
        ("An error occurred (AccessDenied) when calling the PutObject operation: Access Denied", 1, "stop-if"),
        ("An error occurred (ExpiredToken) when calling the PutObject operation", 254, "stop-if"),
        ("Unable to locate credentials. You can configure credentials by running \"aws configure\".", 255, "stop-if"),
        ("aws: error: the following arguments are required: paths", 252, "stop-on"),
        ("usage: aws [options] <command>", 2, "stop-on"),
    ] {
        bench.take_calls("aws");
        bench.failing("aws", 99, message, code, "");
        bench.see(&lines[1]).exits(i32::from(code)).says("attempt=1/8").says(&format!("reason={reason}"));
    }
}

#[test]
fn kubectl_is_retried_if_the_api_server_does_not_answer() {
    let bench = Bench::new();
    let lines = code("kubectl");
    bench.failing("kubectl", 99, "error: timed out waiting for the condition on deployments/app", 1, "");
    bench.see(&lines[0]).exits(1);
    assert_eq!(bench.take_calls("kubectl"), ["wait --for=condition=Available --timeout=5m deployment/app"]);
    for (message, calls) in [
        // Messages of kubectl 1.32.
        ("The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?", 6),
        ("Unable to connect to the server: net/http: TLS handshake timeout", 6),
        ("Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout", 6),
        ("Error from server: etcdserver: leader changed", 6),
        ("Error from server (TooManyRequests): the server has asked for a later attempt", 6),
        ("Error from server (Forbidden): deployments.apps is forbidden", 1),
        ("Error from server (NotFound): namespaces \"app\" not found", 1),
    ] {
        bench.failing("kubectl", 99, message, 1, "");
        see(&mut bench.shell(&lines[1])).exits(1);
        assert_eq!(bench.take_calls("kubectl").len(), calls, "{message}");
    }
}
