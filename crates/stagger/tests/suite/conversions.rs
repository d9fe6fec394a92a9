//! `?` from the error of a call, and what is left of it on the other side.

use core::error::Error as StdError;
use core::time::Duration;
use std::io::{self, ErrorKind};

use stagger::testing::{NoSleep, VirtualClock};
use stagger::{
    BoxedError, Cancel, Error, Policy, Rejected, Retrier, RetryResultExt as _, StopReason, blocking, display_chain,
    policy, stop_reason,
};

use super::support::{RecordingBreaker, ms};

const POLICY: Policy = policy!(zero().max_attempts(3));

type Boxed = Box<dyn StdError + Send + Sync>;

fn missing() -> io::Error {
    ErrorKind::NotFound.into()
}

/// Fails with `E`, within a time limit, so that the call returns an [`Error<E>`].
fn limited<E: core::fmt::Debug + Unpin + From<io::Error> + 'static>() -> Result<(), Error<E>> {
    blocking::retry(&POLICY, || Err::<(), E>(missing().into())).within(Duration::from_secs(9)).run()
}

/// Makes three functions that convert with `?`, with and without a time limit.
macro_rules! conversions {
    ($($name:ident -> $target:ty;)*) => {$(
        #[test]
        fn $name() {
            fn typed() -> Result<(), $target> {
                Ok(limited::<io::Error>()?)
            }
            fn any_how() -> Result<(), $target> {
                Ok(limited::<anyhow::Error>().boxed()?)
            }
            fn boxed() -> Result<(), $target> {
                Ok(limited::<Boxed>().boxed()?)
            }
            fn report() -> Result<(), $target> {
                Ok(limited::<eyre::Report>().boxed()?)
            }
            fn unlimited() -> Result<(), $target> {
                Ok(blocking::retry(&POLICY, || Err::<(), _>(missing())).run()?)
            }
            for call in [typed, any_how, boxed, report] {
                let error = call().unwrap_err();
                let error: &(dyn StdError + 'static) = &*error;
                assert_eq!(stop_reason(error), Some(StopReason::Permanent));
                let cause = error.source().and_then(<dyn StdError>::downcast_ref::<io::Error>);
                assert_eq!(cause.map(io::Error::kind), Some(ErrorKind::NotFound), "{error:?}");
                let text = display_chain(error).to_string();
                assert!(text.starts_with("gave up after 1 attempt in "), "{text}");
                assert!(text.ends_with(", the failure is permanent: entity not found"), "{text}");
            }
            let error = unlimited().unwrap_err();
            assert!(error.is::<io::Error>(), "a plain call returns the operation's own error");
            assert_eq!(stop_reason(&*error), None);
        }
    )*};
}

conversions! {
    every_error_converts_to_a_boxed_error -> Box<dyn StdError>;
    every_error_converts_to_a_sendable_boxed_error -> Boxed;
    every_error_converts_to_anyhow -> anyhow::Error;
    every_error_converts_to_eyre -> eyre::Report;
}

/// As the error of reqwest's middleware, whose `source` skips what it holds.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Transparent(anyhow::Error);

#[test]
fn a_rejection_behind_a_transparent_error_has_a_stop_reason() {
    for (rejected, want) in [
        (Rejected::Cancelled, Some(StopReason::Cancelled)),
        (Rejected::DeadlinePassed, Some(StopReason::Elapsed)),
        (Rejected::TimedOut, None),
    ] {
        let transparent = Transparent(rejected.into());
        assert!(StdError::source(&transparent).is_none());
        assert_eq!(stop_reason(&transparent), want);
        assert_eq!(stop_reason(&rejected), want);
    }
}

#[test]
fn a_cancelled_call_can_be_told_from_any_error_around_it() {
    let cancel = Cancel::new();
    cancel.cancel();
    // With an error of the operation, and without.
    let failed = || blocking::retry(&POLICY, || Err::<(), _>(io::Error::other("busy"))).when(|_| true);
    let cancelled = || failed().timer(NoSleep).cancelled_by(&cancel).run().unwrap_err();
    assert_eq!((cancelled().stop_reason(), cancelled().attempts()), (StopReason::Cancelled, 1));
    let wrapped: [Box<dyn StdError>; 5] = [
        cancelled().into(),
        anyhow::Error::new(cancelled()).context("loading").into(),
        eyre::Report::new(cancelled()).wrap_err("loading").into(),
        io::Error::other(cancelled()).into(),
        cancelled().boxed().into(),
    ];
    for error in wrapped {
        assert_eq!(stop_reason(&*error), Some(StopReason::Cancelled), "{error:?}");
    }
    // The rejection alone, converted to the operation's own error type.
    assert_eq!(stop_reason(&io::Error::from(Rejected::Cancelled)), Some(StopReason::Cancelled));
    assert_eq!(stop_reason(&missing()), None);
    assert_eq!(stop_reason(&Rejected::TimedOut), None);
}

#[test]
fn the_outermost_of_nested_calls_says_why_it_stopped() {
    let inner = || limited::<io::Error>().unwrap_err();
    let error = blocking::retry(&POLICY, || Err::<(), _>(inner())).when(|_| true).detailed().run().unwrap_err();
    assert_eq!(stop_reason(&error), Some(StopReason::Attempts));
    assert_eq!(error.source().and_then(stop_reason), Some(StopReason::Permanent));
}

#[test]
fn the_rejection_of_a_breaker_is_a_stop_reason() {
    let breaker = RecordingBreaker::open(ms(5));
    let call = blocking::retry(&POLICY, || Err::<(), _>(missing())).timer(VirtualClock::new());
    let error = call.guard(&breaker).run().unwrap_err();
    assert_eq!(stop_reason(&error), Some(StopReason::BREAKER));
    assert_eq!(stop_reason(&error.into_inner()), Some(StopReason::BREAKER));
}

#[test]
fn the_alternate_form_prints_the_alternate_form_of_the_cause() {
    let fails = || Err::<(), _>(anyhow::Error::new(missing()).context("loading"));
    let error = blocking::retry(&POLICY, fails).detailed().run().unwrap_err();
    assert!(format!("{error:#}").ends_with(": loading: entity not found"), "{error:#}");
}

#[test]
fn a_boxed_error_is_transparent() {
    let error = BoxedError::new(io::Error::other(missing()));
    assert_eq!((error.to_string(), format!("{error:#}")), ("entity not found".into(), "entity not found".into()));
    assert!(error.is::<io::Error>() && error.source().is_none());
    assert_eq!(BoxedError::new("text").to_string(), "text");
    assert_eq!(format!("{:?}", BoxedError::new(String::from("text"))), "\"text\"");

    let nested = limited::<io::Error>().unwrap_err().boxed();
    let text = format!("{:#}", BoxedError::new(nested));
    assert!(text.contains("the failure is permanent: entity not found"), "{text}");
}

#[test]
fn a_boxed_error_gives_back_what_was_boxed() {
    let kind = |error: io::Error| error.kind();
    assert_eq!(BoxedError::new(missing()).downcast().map(kind).unwrap(), ErrorKind::NotFound);
    let error = BoxedError::new(missing()).downcast::<core::fmt::Error>().unwrap_err();
    assert!(error.into_inner().is::<io::Error>());
    // Boxing twice is boxing once.
    assert!(BoxedError::new(BoxedError::new(missing())).is::<io::Error>());
    let rejected = Retrier::new(POLICY).blocking(|| Err::<(), _>(BoxedError::new(missing()))).into_inner();
    assert!(rejected.unwrap_err().is::<io::Error>());
    assert!(BoxedError::from(Rejected::TimedOut).is::<Rejected>());
}

#[test]
fn boxed_reports_keep_the_types_they_hold() {
    let any_how = || BoxedError::new(anyhow::Error::new(missing()));
    let report = || BoxedError::new(eyre::Report::new(missing()));
    for error in [any_how(), report()] {
        assert!(error.is::<io::Error>());
        assert_eq!(error.into_inner().to_string(), "entity not found");
    }
    for error in [any_how(), report()] {
        let error = error.downcast::<core::fmt::Error>().unwrap_err();
        assert_eq!(error.downcast::<io::Error>().unwrap().kind(), ErrorKind::NotFound);
    }
    let context = BoxedError::new(anyhow::Error::new(missing()).context("loading"));
    assert_eq!((context.to_string(), format!("{context:#}")), ("loading".into(), "loading: entity not found".into()));
    assert!(format!("{context:?}").contains("Caused by"), "{context:?}");
}
