//! Retry libraries, SDKs, proxies and tools.

use super::Profile;
use super::aws_blog::CappedLast;
use super::entry::profiles;
use super::polly::Polly;
use crate::policy::{Capped, Formula, Memory};
use crate::schedule::{Band, Steps};

profiles! {
    read "2026-11";

    /// The Go package `cenkalti/backoff`: ceilings in whole nanoseconds, drawn within ±50 % of the capped ceiling, so
    /// that delays of up to 90 s follow a cap of 60 s. [`max_elapsed`](crate::Policy::max_elapsed) is its 15 minutes.
    CENKALTI = "cenkalti" from "cenkalti/backoff for Go" version "4.3.0"
        in "github.com/cenkalti/backoff, exponential.go",
    jitter(Capped::First, &Band::shares(50, 150).steps(Steps::Nanos)):
    exponential(ms(500), secs(60)).multiplier(1.5).unlimited_attempts().max_elapsed(mins(15));

    /// Google's HTTP client for Java, from which `cenkalti/backoff` is derived: the same numbers, in whole
    /// milliseconds. Its limit of 15 minutes does not include the coming delay; here every limit does.
    GOOGLE_HTTP_JAVA = "google-http-java" from "google-http-java-client, ExponentialBackOff" version "1.45"
        in "github.com/googleapis/google-http-java-client, ExponentialBackOff.java",
    jitter(Capped::First, &Band::shares(50, 150).steps(Steps::Millis)):
    exponential(ms(500), secs(60)).multiplier(1.5).unlimited_attempts().max_elapsed(mins(15));

    /// The client libraries of Google Cloud: full jitter, two minutes in total. Generated clients have numbers of their
    /// own for each method.
    GOOGLE_CLOUD = "google-cloud" from "Google Cloud client libraries (google-api-core)" version "2.44.0"
        in "PyPI google-api-core, retry/retry_base.py":
    exponential(secs(1), secs(60)).unlimited_attempts().max_elapsed(mins(2));

    /// The AWS SDKs' standard mode: full jitter, 3 attempts, 20 s. A hint replaces the delay (in the SDKs up to 20 s
    /// only). Their retry quota is a budget, which is not part of the policy.
    ///
    /// These are the numbers of the SDKs for Rust, Go and .NET. That for JavaScript has a base of 100 ms; that for Java
    /// 100 ms, 500 ms after throttling, and 4 attempts; that for C++ 25 ms, 11 attempts and no quota.
    AWS_SDK = "aws-sdk" from "AWS SDKs, standard retry mode" version "aws-smithy-runtime 1.16.2, retries 2.0"
        in "crates.io aws-smithy-runtime, retries/strategy/standard.rs":
    exponential(secs(1), secs(20)).max_attempts(3).hint_mode(HintMode::Exact);

    /// The AWS SDKs' numbers of 2026: 50 ms after a transient failure, 1 s after throttling; a hint, in the header
    /// `x-amz-retry-after`, moves the delay by 5 s at most. They are opt-in (`AWS_NEW_RETRIES_2026=true`); AWS announced
    /// on 2026-05-20 that they become the default no sooner than November 2026.
    AWS_SDK_2026 = "aws-sdk-2026" from "AWS SDKs, standard retry mode of 2026"
        version "aws-smithy-runtime 1.16.2, retries 2.1"
        in "crates.io aws-smithy-runtime, retries/strategy/standard.rs":
    exponential(ms(50), secs(20)).throttled_base(secs(1)).max_attempts(3).hint_mode(HintMode::Clamp(secs(5)))
        .unlimited_hint();

    /// The AWS SDKs' numbers of 2026 for DynamoDB and DynamoDB Streams: [`AWS_SDK_2026`] with 25 ms and 4 attempts.
    AWS_DYNAMODB_2026 = "aws-dynamodb-2026" from "AWS SDKs, DynamoDB, standard retry mode of 2026"
        version "announcement of 2026-05-20"
        in "github.com/aws/aws-sdk-go-v2, issue 3416; github.com/aws/aws-sdk-net, issue 4411":
    exponential(ms(25), secs(20)).throttled_base(secs(1)).max_attempts(4).hint_mode(HintMode::Clamp(secs(5)))
        .unlimited_hint();

    /// OpenAI's SDK for Python: down to 75 % of the capped ceiling, 3 attempts. A hint replaces the delay, and one of more
    /// than two minutes ends the call. A hint of zero is ignored there, and followed here. Versions 1 ignored a hint of
    /// more than a minute.
    OPENAI = "openai" from "OpenAI SDK for Python" version "3.54.0" in "PyPI openai, _base_client.py, _constants.py",
    jitter(Capped::First, &Band::shares(75, 100)):
    exponential(ms(500), secs(8)).max_attempts(3).hint_mode(HintMode::Exact).max_hint(mins(2));

    /// Anthropic's SDK for Python: the delays of [`OPENAI`]. A hint replaces the delay, however long it is. A hint of zero
    /// is ignored there, and followed here.
    ANTHROPIC = "anthropic" from "Anthropic SDK for Python" version "2.12.0"
        in "PyPI anthropic, _base_client.py, _constants.py",
    jitter(Capped::First, &Band::shares(75, 100)):
    exponential(ms(500), secs(8)).max_attempts(3).hint_mode(HintMode::Exact).unlimited_hint();

    /// The article that made jitter known, with decorrelated jitter as it was published: `min(cap, U[base, 3 ·
    /// previous])` with the simulator's 5 ms and 2 s, which piles clients up on the cap. The article's full and equal
    /// jitter are [`Jitter::Full`](crate::Jitter::Full) and [`Jitter::Equal`](crate::Jitter::Equal).
    AWS_BLOG = "aws-blog" from "M. Brooker, \"Exponential Backoff And Jitter\"" version "2015"
        in "aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter",
    jitter(Capped::Last, &CappedLast).memory(Memory::Decorrelated).for_exponential_only():
    exponential(ms(5), secs(2)).unlimited_attempts();

    /// gRPC's `retryPolicy`, with the numbers of the proposal's example: within ±20 % of the capped ceiling.
    GRPC_A6 = "grpc-a6" from "gRPC A6, client retries" version "2024-08"
        in "github.com/grpc/proposal, A6-client-retries.md":
    exponential(ms(100), secs(1)).jitter(Jitter::Factor(Ratio::percent(20))).max_attempts(4).hint_mode(HintMode::Exact);

    /// Tenacity's `wait_exponential_jitter`: up to a second on top of the ceiling, cut at the cap afterwards. There is
    /// neither a cap nor an attempt limit unless one is set. To set the length of the jitter, use
    /// [`Jitter::Added`](crate::Jitter::Added): `tenacity jitter=add:500ms`.
    TENACITY = "tenacity" from "tenacity for Python, wait_exponential_jitter" version "9.2.1"
        in "PyPI tenacity, wait.py",
    jitter(Capped::Last, &Band::shares(100, 100).plus(ms(0), secs(1))):
    exponential(secs(1), secs(60)).uncapped().unlimited_attempts();

    /// Polly's exponential delays with jitter (`UseJitter`), 3 retries. With constant and linear backoff the jitter is
    /// ±25 %, cut at the cap.
    POLLY_V8 = "polly-v8" from "Polly for .NET, retry with jitter" version "8"
        in "github.com/App-vNext/Polly, RetryHelper.cs",
    jitter(Capped::Last, &Polly { band: Band::shares(75, 125) }).memory(Memory::Own):
    exponential(secs(2), secs(60)).uncapped().max_attempts(4);

    /// resilience4j's `ofExponentialRandomBackoff`: steps in whole milliseconds, ±50 %, cut at the cap.
    RESILIENCE4J = "resilience4j" from "resilience4j, ofExponentialRandomBackoff" version "2"
        in "github.com/resilience4j/resilience4j, IntervalFunction.java",
    jitter(Capped::Last, &Band::shares(50, 150).steps(Steps::Millis)):
    exponential(ms(500), secs(60)).uncapped().multiplier(1.5).max_attempts(3);

    /// failsafe-go with `WithBackoff(2 s, 30 s)`: no jitter unless configured, 2 retries. (Without `WithBackoff` it
    /// does not wait at all.)
    FAILSAFE_GO = "failsafe-go" from "failsafe-go, retrypolicy" version "0.6"
        in "github.com/failsafe-go/failsafe-go, retrypolicy":
    exponential(secs(2), secs(30)).jitter(Jitter::None).max_attempts(3);

    /// Envoy: full jitter in whole milliseconds below 25 ms, doubling to ten times that, and a single retry. Its
    /// documentation still describes another series.
    ENVOY = "envoy" from "Envoy, router retries" version "1.36"
        in "github.com/envoyproxy/envoy, retry_state_impl.cc, backoff_strategy.cc",
    jitter(Capped::First, &Band::shares(0, 100).open(ms(1)).steps(Steps::Millis)):
    exponential(ms(25), ms(250)).max_attempts(2);

    /// curl's `--retry`: from a second, doubling to ten minutes, without jitter. The caller sets the number of retries;
    /// here 3. (8.16.0 did not double, by mistake.)
    CURL = "curl" from "curl --retry" version "8" in "curl.se/docs/manpage.html":
    exponential(secs(1), mins(10)).jitter(Jitter::None).max_attempts(4);

    /// A Kubernetes container that keeps crashing: at once, then from 10 s doubling to five minutes, without jitter;
    /// healthy after ten minutes.
    KUBERNETES = "kubernetes" from "Kubernetes, CrashLoopBackOff" version "1.34"
        in "kubernetes.io, Pod lifecycle, container restarts":
    list(&[secs(0), secs(10), secs(20), secs(40), secs(80), secs(160), secs(300)])
        .jitter(Jitter::None).unlimited_attempts().stable_after(mins(10));
}
