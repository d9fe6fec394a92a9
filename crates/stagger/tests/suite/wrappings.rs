//! One error, however it is wrapped, gets one answer. A driver is one more [`Driver`], a wrapping one more line of
//! [`attempts`].

use core::error::Error;
use core::fmt::Debug;
use core::future::poll_fn;
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::observe::EventError;
use stagger::queue::RetryQueue;
use stagger::testing::NoSleep;
use stagger::{
    BoxedError, Marked, OperationError, Outcome, Policy, PollRetry, Retrier, blocking, classify, policy,
    retry_with_timer,
};

const POLICY: Policy = policy!(zero().max_attempts(4));

/// An error with a rule.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("own error")]
struct Own {
    is_transient: bool,
}

/// An error without a rule, whose source is another.
#[derive(Debug, thiserror::Error)]
enum Wrapper<E: Error + 'static> {
    #[error("cannot load the index")]
    Load(#[from] E),
}

#[derive(Debug, thiserror::Error)]
enum Transparent {
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn retrier() -> Retrier {
    Retrier::new(POLICY)
        .when(|error: &Own| error.is_transient)
        .look_into::<Wrapper<Own>>()
        .look_into::<Wrapper<io::Error>>()
        .look_into::<Transparent>()
}

/// A way to make a call.
trait Driver {
    const NAME: &'static str;

    /// Returns the number of attempts of a call that always fails with this error.
    fn attempts<E: OperationError<Inner: EventError> + EventError>(retrier: &Retrier, error: impl Fn() -> E) -> u32;
}

struct Async;

impl Driver for Async {
    const NAME: &'static str = "async";

    fn attempts<E: OperationError<Inner: EventError> + EventError>(retrier: &Retrier, error: impl Fn() -> E) -> u32 {
        block_on(retrier.run_on(NoSleep, async || Err::<(), _>(error()))).unwrap_err().attempts()
    }
}

struct Blocking;

impl Driver for Blocking {
    const NAME: &'static str = "blocking";

    fn attempts<E: OperationError<Inner: EventError> + EventError>(retrier: &Retrier, error: impl Fn() -> E) -> u32 {
        retrier.blocking(|| Err::<(), _>(error())).unwrap_err().attempts()
    }
}

struct Loop;

impl Driver for Loop {
    const NAME: &'static str = "loop";

    fn attempts<E: OperationError<Inner: EventError> + EventError>(retrier: &Retrier, error: impl Fn() -> E) -> u32 {
        let mut call = retrier.call_on(NoSleep);
        loop {
            if let Some(done) = block_on(call.attempt(async { Err::<(), _>(error()) })) {
                return done.unwrap_err().attempts();
            }
        }
    }
}

struct Poll;

impl Driver for Poll {
    const NAME: &'static str = "poll";

    fn attempts<E: OperationError<Inner: EventError> + EventError>(retrier: &Retrier, error: impl Fn() -> E) -> u32 {
        let mut call = PollRetry::new(retrier, NoSleep);
        loop {
            block_on(poll_fn(|cx| call.poll_begin(cx))).unwrap();
            let error = error();
            if call.failed(call.outcome(&error), Some(&error)).is_some() {
                return call.attempts();
            }
        }
    }
}

struct Queue;

impl Driver for Queue {
    const NAME: &'static str = "queue";

    fn attempts<E: OperationError<Inner: EventError> + EventError>(retrier: &Retrier, error: impl Fn() -> E) -> u32 {
        let mut queue = RetryQueue::with_timer(NoSleep, retrier);
        queue.push((), Duration::ZERO).unwrap();
        loop {
            let job = block_on(queue.next()).unwrap().unwrap();
            if let Err(gave_up) = queue.push_failed(job, &error()) {
                return gave_up.attempts;
            }
        }
    }
}

/// Returns the attempts of a call that fails with this error, by the error's wrapping.
fn attempts<D: Driver, E: Error + Send + Sync + Unpin + 'static>(root: impl Fn() -> E) -> Vec<(&'static str, u32)> {
    let retrier = retrier();
    let wrapper = || Wrapper::Load(root());
    vec![
        ("bare", D::attempts(&retrier, &root)),
        ("Box<E>", D::attempts(&retrier, || Box::new(root()))),
        ("Arc<E>", D::attempts(&retrier, || Arc::new(root()))),
        ("Rc<E>", D::attempts(&retrier, || Rc::new(root()))),
        ("Box<dyn Error + Send + Sync>", D::attempts(&retrier, || -> Box<dyn Error + Send + Sync> { root().into() })),
        ("Box<dyn Error + Send>", D::attempts(&retrier, || -> Box<dyn Error + Send> { Box::new(root()) })),
        ("Box<dyn Error>", D::attempts(&retrier, || -> Box<dyn Error> { root().into() })),
        (
            "Arc<dyn Error + Send + Sync>",
            D::attempts(&retrier, || -> Arc<dyn Error + Send + Sync> { Arc::new(root()) }),
        ),
        ("Rc<dyn Error>", D::attempts(&retrier, || -> Rc<dyn Error> { Rc::new(root()) })),
        ("dyn Error around an Arc<E>", D::attempts(&retrier, || -> Box<dyn Error> { Arc::new(root()).into() })),
        (
            "dyn Error around an Arc<dyn Error>",
            D::attempts(&retrier, || -> Box<dyn Error> {
                let shared: Arc<dyn Error + Send + Sync> = Arc::new(root());
                shared.into()
            }),
        ),
        (
            "BoxedError in a Box<dyn Error>",
            D::attempts(&retrier, || -> Box<dyn Error> { BoxedError::new(root()).into() }),
        ),
        ("BoxedError", D::attempts(&retrier, || BoxedError::new(root()))),
        ("io::Error", D::attempts(&retrier, || io::Error::other(root()))),
        ("io::Error in an io::Error", D::attempts(&retrier, || io::Error::other(io::Error::other(root())))),
        ("#[from]", D::attempts(&retrier, wrapper)),
        ("#[from] in a Box<dyn Error>", D::attempts(&retrier, || -> Box<dyn Error> { wrapper().into() })),
        ("#[from] in an Arc", D::attempts(&retrier, || Arc::new(wrapper()))),
        (
            "#[from] in #[from]",
            D::attempts(&retrier.clone().look_into::<Wrapper<Wrapper<E>>>(), || Wrapper::Load(wrapper())),
        ),
        #[cfg(feature = "anyhow")]
        ("anyhow", D::attempts(&retrier, || anyhow::Error::new(root()))),
        #[cfg(feature = "anyhow")]
        ("anyhow with context", D::attempts(&retrier, || anyhow::Error::new(root()).context("loading"))),
        #[cfg(feature = "anyhow")]
        ("#[from] in anyhow", D::attempts(&retrier, || anyhow::Error::new(wrapper()))),
        #[cfg(feature = "anyhow")]
        ("Arc<anyhow>", D::attempts(&retrier, || Arc::new(anyhow::Error::new(root())))),
        #[cfg(feature = "anyhow")]
        ("anyhow in a BoxedError", D::attempts(&retrier, || BoxedError::new(anyhow::Error::new(root())))),
        #[cfg(feature = "eyre")]
        ("eyre", D::attempts(&retrier, || eyre::Report::new(root()))),
        #[cfg(feature = "eyre")]
        ("eyre with context", D::attempts(&retrier, || eyre::Report::new(root()).wrap_err("loading"))),
        #[cfg(feature = "eyre")]
        ("Arc<eyre>", D::attempts(&retrier, || Arc::new(eyre::Report::new(root())))),
        #[cfg(feature = "eyre")]
        ("eyre in a BoxedError", D::attempts(&retrier, || BoxedError::new(eyre::Report::new(root())))),
    ]
}

fn assert_one_answer<D: Driver>() {
    for (root, want, all) in [
        ("a missing file", 1, attempts::<D, _>(|| io::Error::from(ErrorKind::NotFound))),
        ("a refused connection", 4, attempts::<D, _>(|| io::Error::from(ErrorKind::ConnectionRefused))),
        ("own transient", 4, attempts::<D, _>(|| Own { is_transient: true })),
        ("own permanent", 1, attempts::<D, _>(|| Own { is_transient: false })),
    ] {
        for (wrapping, attempts) in all {
            assert_eq!(attempts, want, "{}: {root}, {wrapping}", D::NAME);
        }
    }
}

#[test]
fn async_calls_classify_an_error_however_it_is_wrapped() {
    assert_one_answer::<Async>();
}

#[test]
fn blocking_calls_classify_an_error_however_it_is_wrapped() {
    assert_one_answer::<Blocking>();
}

#[test]
fn loops_classify_an_error_however_it_is_wrapped() {
    assert_one_answer::<Loop>();
}

#[test]
fn polled_calls_classify_an_error_however_it_is_wrapped() {
    assert_one_answer::<Poll>();
}

#[test]
fn queues_classify_an_error_however_it_is_wrapped() {
    assert_one_answer::<Queue>();
}

/// Without a retrier there are no rules by type, and the type of a wrapper has to be made known by `classify::error`.
#[test]
fn plain_calls_classify_an_io_error_however_it_is_wrapped() {
    fn plain<E: Debug + Unpin + 'static>(error: impl Fn() -> E) -> [u32; 2] {
        let blocking = blocking::retry(&POLICY, || Err::<(), _>(error())).detailed().run().unwrap_err().attempts();
        let call = retry_with_timer(&POLICY, NoSleep, async || Err::<(), _>(error())).detailed();
        [blocking, block_on(call).unwrap_err().attempts()]
    }
    fn known<E: Error + Unpin + 'static>(error: impl Fn() -> E) -> [u32; 2] {
        let call = blocking::retry(&POLICY, || Err::<(), _>(error())).classify(classify::error);
        let blocking = call.detailed().run().unwrap_err().attempts();
        let call = retry_with_timer(&POLICY, NoSleep, async || Err::<(), _>(error())).classify(classify::error);
        [blocking, block_on(call.detailed()).unwrap_err().attempts()]
    }
    for (kind, want) in [(ErrorKind::NotFound, [1, 1]), (ErrorKind::ConnectionRefused, [4, 4])] {
        let root = || io::Error::from(kind);
        assert_eq!(plain(root), want);
        assert_eq!(plain(|| Arc::new(root())), want);
        assert_eq!(plain(|| -> Box<dyn Error + Send + Sync> { Wrapper::Load(root()).into() }), want);
        assert_eq!(plain(|| -> Arc<dyn Error + Send + Sync> { Arc::new(Wrapper::Load(root())) }), want);
        assert_eq!(plain(|| BoxedError::new(Wrapper::Load(root()))), want);
        assert_eq!(known(|| Wrapper::Load(root())), want);
        assert_eq!(known(|| Transparent::Io(root())), want);
        #[cfg(feature = "anyhow")]
        assert_eq!(plain(|| anyhow::Error::new(Wrapper::Load(root())).context("loading")), want);
        #[cfg(feature = "eyre")]
        assert_eq!(plain(|| eyre::Report::new(Wrapper::Load(root())).wrap_err("loading")), want);
    }
}

/// `source()` of a transparent wrapper skips the error that it wraps, so its message has to do.
#[test]
fn an_io_error_in_a_transparent_wrapper_is_recognized_by_its_message() {
    let enoent = || Transparent::Io(std::fs::read("/no/such/file").unwrap_err());
    let refused = || Transparent::Io(io::Error::from(ErrorKind::ConnectionRefused));
    let missing = || Transparent::Io(io::Error::from(ErrorKind::NotFound));
    assert_eq!(Blocking::attempts(&retrier(), enoent), 1);
    assert_eq!(Blocking::attempts(&retrier(), missing), 1);
    assert_eq!(Blocking::attempts(&retrier(), refused), 4);
    assert_eq!(Blocking::attempts(&retrier(), || -> Box<dyn Error> { enoent().into() }), 1);
    // The message of an error with a source is its own, not that of an inner error.
    #[derive(Debug, thiserror::Error)]
    #[error("entity not found")]
    struct Lookalike(#[source] Own);
    let lookalike = || -> Box<dyn Error> { Lookalike(Own { is_transient: true }).into() };
    assert_eq!(Blocking::attempts(&Retrier::new(POLICY), lookalike), 4);
}

#[test]
fn the_error_of_an_inner_call_is_classified_by_its_cause() {
    for (kind, want) in [(ErrorKind::NotFound, 1), (ErrorKind::ConnectionRefused, 4)] {
        let inner = || Retrier::new(POLICY).blocking(|| Err::<(), _>(io::Error::from(kind))).unwrap_err();
        assert_eq!(Blocking::attempts(&retrier(), inner), want);
        assert_eq!(Blocking::attempts(&retrier(), || inner().boxed()), want);
        assert_eq!(Blocking::attempts(&retrier(), || -> Box<dyn Error> { inner().into() }), want);
    }
}

#[test]
fn the_kind_of_an_io_error_decides_unless_it_is_other() {
    let refused = || io::Error::from(ErrorKind::ConnectionRefused);
    assert_eq!(Blocking::attempts(&retrier(), || io::Error::new(ErrorKind::NotFound, refused())), 1);
    assert_eq!(Blocking::attempts(&retrier(), || io::Error::other(refused())), 4);
    assert_eq!(Blocking::attempts(&retrier(), || io::Error::other("text")), 1);
}

#[test]
fn a_rule_at_any_depth_comes_before_the_built_in_rules() {
    let retries = retrier().when(|_: &Wrapper<io::Error>| true);
    let stops = retrier().when(|_: &Wrapper<io::Error>| false);
    let refused =
        || -> Box<dyn Error> { io::Error::other(Wrapper::Load(io::Error::from(ErrorKind::ConnectionRefused))).into() };
    let missing = || -> Box<dyn Error> { Wrapper::Load(io::Error::from(ErrorKind::NotFound)).into() };
    assert_eq!(Blocking::attempts(&retries, missing), 4);
    assert_eq!(Blocking::attempts(&stops, refused), 1);
    // The built-in rule would stop at the outer error, whose kind is not `Other`.
    let own = || io::Error::new(ErrorKind::NotFound, Own { is_transient: true });
    assert_eq!(Blocking::attempts(&retrier(), own), 4);
    assert_eq!(Blocking::attempts(&Retrier::new(POLICY), own), 1);
}

#[test]
fn of_several_rules_that_of_the_outermost_error_applies() {
    let root = || -> Box<dyn Error> { Wrapper::Load(Own { is_transient: true }).into() };
    assert_eq!(Blocking::attempts(&retrier().when(|_: &Wrapper<Own>| false), root), 1);
    assert_eq!(Blocking::attempts(&retrier(), root), 4);
    let bare = || Wrapper::Load(Own { is_transient: false });
    assert_eq!(Blocking::attempts(&retrier().when(|_: &Wrapper<Own>| true), bare), 4);
}

#[test]
fn looking_into_a_type_keeps_its_rule() {
    let rule = |_: &Wrapper<Own>| true;
    let bare = || Wrapper::Load(Own { is_transient: false });
    assert_eq!(Blocking::attempts(&retrier().when(rule).look_into::<Wrapper<Own>>(), bare), 4);
}

#[test]
fn a_rule_for_exactly_one_type_applies_to_pointers_and_not_to_sources() {
    let rule = |error: &Own| if error.is_transient { Outcome::TRANSIENT } else { Outcome::Permanent };
    let retrier = Retrier::new(POLICY).classify_exactly(rule).classify_exactly(|_: &&str| Outcome::Permanent);
    let permanent = || Own { is_transient: false };
    assert_eq!(Blocking::attempts(&retrier, || "text"), 1);
    assert_eq!(Blocking::attempts(&retrier, || Arc::new("text")), 1);
    assert_eq!(Blocking::attempts(&retrier, permanent), 1);
    assert_eq!(Blocking::attempts(&retrier, || -> Box<dyn Error> { permanent().into() }), 4);
}

/// The `source` of each of these holders skips the error that it holds.
#[test]
fn a_chain_continues_with_what_a_holder_in_it_holds() {
    let error = || io::Error::from(ErrorKind::NotFound);
    let shared: Arc<dyn Error + Send + Sync> = Arc::new(error());
    let local: Arc<dyn Error> = Arc::new(error());
    for wrapper in [
        &Wrapper::Load(BoxedError::new(error())) as &(dyn Error + 'static),
        &Wrapper::Load(shared),
        &Wrapper::Load(local),
        &Wrapper::Load(Box::new(error())),
        &Wrapper::Load(Arc::new(error())),
        &Wrapper::Load(io::Error::other(error())),
    ] {
        let root = classify::links(wrapper).last().and_then(|root| root.downcast_ref::<io::Error>());
        assert_eq!(root.map(io::Error::kind), Some(ErrorKind::NotFound), "{wrapper:?}");
    }
}

#[test]
fn a_cyclic_chain_of_sources_ends() {
    #[derive(Debug, thiserror::Error)]
    #[error("cycle")]
    struct Cycle;
    #[derive(Debug)]
    struct Endless;
    impl core::fmt::Display for Endless {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("endless")
        }
    }
    impl Error for Endless {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }
    let retrier = Retrier::new(POLICY).when(|_: &Cycle| false);
    assert_eq!(Blocking::attempts(&retrier, || -> Box<dyn Error> { Endless.into() }), 4);
    assert_eq!(stagger::display_chain(&Endless).to_string().matches("endless").count(), 64);
    assert_eq!(stagger::stop_reason(&Endless), None);
}

/// The rule says the opposite of the mark.
fn assert_marks_apply<D: Driver>() {
    let retrier = Retrier::new(POLICY).when(|error: &Own| error.is_transient);
    assert_eq!(D::attempts(&retrier, || Marked::permanent(Own { is_transient: true })), 1, "{}", D::NAME);
    assert_eq!(D::attempts(&retrier, || Marked::transient(Own { is_transient: false })), 4, "{}", D::NAME);
    assert_eq!(D::attempts(&retrier, || Marked::from(Own { is_transient: false })), 1, "{}", D::NAME);
}

/// `?` converts a marked error to a boxed one without a word, so the mark must survive it.
#[test]
fn a_mark_applies_inside_other_errors() {
    let refused = || io::Error::from(ErrorKind::ConnectionRefused);
    let missing = || io::Error::from(ErrorKind::NotFound);
    for retrier in
        [Retrier::new(POLICY), Retrier::new(POLICY).when(|error: &io::Error| error.kind() == ErrorKind::Other)]
    {
        let attempts = |error: &dyn Fn() -> Box<dyn Error + Send + Sync>| {
            let plain = Blocking::attempts(&retrier, error);
            assert_eq!(Blocking::attempts(&retrier, || BoxedError::new(error())), plain);
            #[cfg(feature = "anyhow")]
            assert_eq!(Blocking::attempts(&retrier, || anyhow::Error::from_boxed(error()).context("loading")), plain);
            plain
        };
        assert_eq!(attempts(&|| Marked::permanent(refused()).into()), 1);
        assert_eq!(attempts(&|| Marked::transient(missing()).into()), 4);
        assert_eq!(attempts(&|| Wrapper::Load(Marked::transient(missing())).into()), 4);
        assert_eq!(attempts(&|| io::Error::other(Marked::permanent(refused())).into()), 1);
    }
}

#[test]
fn a_mark_inside_other_errors_applies_in_plain_calls() {
    let failed = |error: fn(io::Error) -> Marked<io::Error>, kind: ErrorKind| {
        let fails = || Err::<(), Box<dyn Error>>(error(kind.into()).into());
        blocking::retry(&POLICY, fails).detailed().run().unwrap_err().attempts()
    };
    assert_eq!(failed(Marked::permanent, ErrorKind::ConnectionRefused), 1);
    assert_eq!(failed(Marked::transient, ErrorKind::NotFound), 4);
    // An unmarked error is not decided by the mark of another one before it.
    let unmarked: Box<dyn Error> = Marked::from(io::Error::other("text")).into();
    assert_eq!(classify::chain(&Marked::permanent(core::fmt::Error)), Some(Outcome::Permanent));
    assert_eq!(classify::chain(&*unmarked), None);
}

#[test]
fn marks_need_no_step_in_any_driver() {
    assert_marks_apply::<Async>();
    assert_marks_apply::<Blocking>();
    assert_marks_apply::<Loop>();
    assert_marks_apply::<Poll>();
}
