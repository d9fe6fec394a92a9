use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::Arc;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeTransmitInterceptorContextMut, BeforeTransmitInterceptorContextRef, Error, FinalizerInterceptorContextRef,
    InterceptorContext,
};
use aws_smithy_runtime_api::client::orchestrator::{Metadata, OrchestratorError};
use aws_smithy_runtime_api::client::retries::classifiers::{
    ClassifyRetry, RetryAction, RetryClassifierPriority, RetryReason,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::retry::{ErrorKind, ReconnectMode, RetryConfig};
use aws_smithy_types::timeout::TimeoutConfig;
use stagger::time::{Clock, SystemClock};
use stagger::{FailureKind, Outcome, Retrier, ServerHint};

use super::call::{Call, CallInFlight, Calls};
use super::error::{by_status, server_hint};
use super::timer::SharedClock;
use crate::request::{Idempotency, RequestProgress};

/// The name of both parts.
const NAME: &str = "stagger";
/// The longest delay. The SDK computes with it in floating point, which must not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A retrier for clients of the AWS SDK: an interceptor and a retry classifier. See the [module](super).
///
/// Its clones share the retrier, with its budgets and breakers: use them in several clients.
#[derive(Clone)]
pub struct Retries {
    settings: Arc<Settings>,
}

struct Settings {
    retrier: Retrier,
    clock: SharedClock,
    is_idempotent: Option<Predicate>,
    calls: Arc<Calls>,
}

type Predicate = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

impl Retries {
    /// Creates retries through this retrier, on the system's clock. They wait on the SDK's timer, its `sleep_impl`.
    #[must_use]
    pub fn new(retrier: impl Into<Retrier>) -> Self {
        Self::with_clock(SystemClock, retrier)
    }

    /// Creates retries like [`new`](Self::new), on `clock`.
    #[must_use]
    pub fn with_clock(clock: impl Clock + Send + Sync + 'static, retrier: impl Into<Retrier>) -> Self {
        let (retrier, clock) = (retrier.into(), Arc::new(clock));
        Self { settings: Arc::new(Settings { retrier, clock, is_idempotent: None, calls: Calls::new() }) }
    }

    /// Sets which operations may run twice, by the names of the service and the operation, such as `"SQS"` and
    /// `"SendMessage"`. If one may not, it is retried only if it was throttled, or if no connection was made. Default:
    /// all may, as in the SDK.
    #[must_use]
    pub fn idempotent_if(self, predicate: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> Self {
        let Settings { retrier, clock, .. } = &*self.settings;
        let settings = Settings {
            retrier: retrier.clone(),
            clock: Arc::clone(clock),
            is_idempotent: Some(Arc::new(predicate)),
            calls: Calls::new(),
        };
        Self { settings: Arc::new(settings) }
    }

    /// Returns the call of this execution, if it is one of these retries: of several, those that were set last are in
    /// charge.
    fn call(&self, cfg: &ConfigBag) -> Option<Arc<Call>> {
        let CallInFlight(call) = cfg.load::<CallInFlight>()?;
        if call.is_of(&self.settings.calls) { Some(Arc::clone(call)) } else { None }
    }
}

impl Intercept for Retries {
    fn name(&self) -> &'static str {
        NAME
    }

    fn modify_before_retry_loop(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        components: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if !components.retry_classifiers().any(|classifier| classifier.name() == NAME) {
            return Err("stagger's retries are set as an interceptor only; set them as a retry classifier, too".into());
        }
        let Settings { retrier, clock, is_idempotent, calls } = &*self.settings;
        let (service, operation) = match cfg.load::<Metadata>() {
            Some(metadata) => (metadata.service(), metadata.name()),
            None => ("", ""),
        };
        let idempotency = match is_idempotent {
            Some(is_idempotent) if !is_idempotent(service, operation) => Idempotency::OnlyIfUnsent,
            _ => Idempotency::Declared,
        };
        let time = cfg.load::<TimeoutConfig>().and_then(TimeoutConfig::operation_timeout);
        let call = Call::start(calls, context.inner(), retrier, Arc::clone(clock), time, service, idempotency);
        cfg.interceptor_state().store_put(call);
        Ok(())
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(call) = self.call(cfg) else { return Ok(()) };
        // Not before: interceptors of the SDK choose the prices of its token bucket by the original. Without a version
        // of the SDK's own specification, it waits for as long as a classifier says.
        let reconnect = match cfg.load::<RetryConfig>() {
            Some(config) => config.reconnect_mode(),
            None => ReconnectMode::ReconnectOnTransientError,
        };
        let attempts = self.settings.retrier.policy().max_attempts().map_or(u32::MAX, NonZeroU32::get);
        let config = RetryConfig::standard().with_reconnect_mode(reconnect).with_max_backoff(LONGEST);
        cfg.interceptor_state().store_put(config.with_max_attempts(attempts));
        Ok(call.begin()?)
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        cfg: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // No classifier is asked after a timeout of the whole operation, nor after one that has forbidden the retry.
        if let Some(call) = self.call(cfg) {
            match context.output_or_error() {
                Some(Err(error)) if error.is_timeout_error() => {
                    call.failed(Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None }, Some(error));
                }
                Some(Err(error)) => {
                    call.failed(Outcome::Permanent, Some(error));
                }
                _ => call.succeeded(),
            }
        }
        Ok(())
    }
}

impl ClassifyRetry for Retries {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        self.classify_retry_v2(context, &RetryAction::NoActionIndicated)
    }

    fn classify_retry_v2(&self, context: &InterceptorContext, previous: &RetryAction) -> RetryAction {
        let Some(call) = self.settings.calls.of(context) else { return RetryAction::NoActionIndicated };
        let Some(Err(error)) = context.output_or_error() else {
            call.succeeded();
            return RetryAction::NoActionIndicated;
        };
        let outcome = restrict(outcome(context, previous), call.idempotency, error);
        match call.failed(outcome, Some(error)) {
            Some(delay) => RetryAction::retryable_error_with_explicit_delay(error_kind(outcome, previous), delay),
            None => RetryAction::RetryForbidden,
        }
    }

    fn name(&self) -> &'static str {
        NAME
    }

    /// After all of the SDK's own.
    fn priority(&self) -> RetryClassifierPriority {
        RetryClassifierPriority::run_after(RetryClassifierPriority::transient_error_classifier())
    }
}

/// Returns the outcome of a failed attempt: what the SDK says, or else by its status.
fn outcome(context: &InterceptorContext, previous: &RetryAction) -> Outcome {
    match previous {
        RetryAction::RetryIndicated(RetryReason::RetryableError { kind, retry_after }) => {
            let kind = match kind {
                ErrorKind::ThrottlingError => FailureKind::Throttled,
                _ => FailureKind::Transient,
            };
            let hint = match context.response() {
                Some(response) => server_hint(response.headers()),
                None => None,
            };
            // A classifier of the application may know a delay that is not in a header.
            Outcome::Failed { kind, hint: hint.or(retry_after.map(ServerHint::AtLeast)) }
        }
        RetryAction::NoActionIndicated => match context.response().map(by_status) {
            // A success that the SDK could not read, or that another interceptor made a failure.
            None | Some(Outcome::Success) => Outcome::Permanent,
            Some(outcome) => outcome,
        },
        _ => Outcome::Permanent,
    }
}

/// Restricts an outcome to what is safe for the operation. A service throttles a request before it processes it.
fn restrict(outcome: Outcome, idempotency: Idempotency, error: &OrchestratorError<Error>) -> Outcome {
    let Outcome::Failed { kind, hint } = outcome else { return outcome };
    let progress = match error.as_connector_error() {
        Some(error) => RequestProgress::from_error(error),
        None if kind == FailureKind::Throttled => RequestProgress::NotProcessed,
        None => RequestProgress::MaybeProcessed,
    };
    if idempotency.allows_retry(progress) { outcome } else { Outcome::UnsafeToRetry { kind, hint } }
}

/// Returns the kind that the SDK's token bucket shall take the retry for.
fn error_kind(outcome: Outcome, previous: &RetryAction) -> ErrorKind {
    match (previous, outcome) {
        (RetryAction::RetryIndicated(RetryReason::RetryableError { kind, .. }), _) => *kind,
        (_, Outcome::Failed { kind: FailureKind::Throttled, .. }) => ErrorKind::ThrottlingError,
        _ => ErrorKind::TransientError,
    }
}

impl fmt::Debug for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries").field("retrier", &self.settings.retrier).finish_non_exhaustive()
    }
}
