//! What a call brings along besides its policy and its operation. Every part has a form of size zero, which is the
//! default, so a plain call pays for none of them.

use core::convert::Infallible;
use core::time::Duration;

use crate::error::{Error, Last, Refused, Report};
use crate::event::Silent;
use crate::scope::Inside;
use crate::{Clock, Entropy, Guards, Instant, Nested, Permit, Stop, SystemEntropy};

/// The parts: who listens, which guards are asked, what limits an attempt, where the seed comes from, what the caller
/// gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<S = Silent, G = Unguarded, L = Unlimited, Y = SystemEntropy, M = Bare> {
    pub(crate) sink: S,
    pub(crate) guards: G,
    pub(crate) limits: L,
    pub(crate) entropy: Y,
    pub(crate) mode: M,
}

/// A setup whose call gives [`Error<E>`].
pub(crate) type Explaining<S, G, L, Y> = Setup<S, G, L, Y, Explained>;

impl<S, G, L, Y, M> Setup<S, G, L, Y, M> {
    pub(crate) fn with_sink<S2>(self, sink: S2) -> Setup<S2, G, L, Y, M> {
        Setup { sink, guards: self.guards, limits: self.limits, entropy: self.entropy, mode: self.mode }
    }

    pub(crate) fn with_guards<G2>(self, guards: G2) -> Setup<S, G2, L, Y, M> {
        Setup { sink: self.sink, guards, limits: self.limits, entropy: self.entropy, mode: self.mode }
    }

    /// Limited, which can end a call without an error of the operation's.
    pub(crate) fn limited(self, change: impl FnOnce(&mut Limits)) -> Setup<S, G, Limits, Y, Explained>
    where
        L: Into<Limits>,
    {
        let mut limits = self.limits.into();
        change(&mut limits);
        Setup { sink: self.sink, guards: self.guards, limits, entropy: self.entropy, mode: Explained }
    }

    pub(crate) fn with_entropy<Y2>(self, entropy: Y2) -> Setup<S, G, L, Y2, M> {
        Setup { sink: self.sink, guards: self.guards, limits: self.limits, entropy, mode: self.mode }
    }

    pub(crate) fn with_mode<M2>(self, mode: M2) -> Setup<S, G, L, Y, M2> {
        Setup { sink: self.sink, guards: self.guards, limits: self.limits, entropy: self.entropy, mode }
    }
}

/// Which guards are asked.
pub trait Guarding {
    /// What holds a permit between two steps; nothing, if nothing is ever lent.
    type Held: Hold;

    /// The guards.
    fn guards(&self) -> Guards<'_>;

    /// What the call does inside an attempt of another.
    fn inside(&self) -> Inside {
        Inside::StandDown
    }

    /// Holds a permit for an attempt that is not yet made, or is being made.
    fn hold(&self, permit: Permit, stage: Stage, nested: Nested) -> Self::Held;
}

/// What happens to a permit whose call is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The attempt is not yet made: the permit is given back.
    Waiting,
    /// The attempt is let in, and not yet made: the permit is given back, and the breaker's pass is settled as cancelled.
    LetIn,
    /// The attempt is being made: it is settled as cancelled.
    Attempting,
}

/// What holds a permit. Dropping it settles what is in it.
pub trait Hold {
    /// With nothing in it.
    const EMPTY: Self;

    /// Takes the permit out.
    fn take(&mut self) -> Permit;

    /// The attempt has come to this stage.
    fn stands_at(&mut self, stage: Stage);
}

/// Nothing is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl Guarding for Unguarded {
    type Held = ();

    #[inline]
    fn guards(&self) -> Guards<'_> {
        Guards::none()
    }

    #[inline]
    fn hold(&self, _: Permit, _: Stage, _: Nested) {}
}

impl Hold for () {
    const EMPTY: Self = ();

    #[inline]
    fn take(&mut self) -> Permit {
        Permit::NONE
    }

    #[inline]
    fn stands_at(&mut self, _: Stage) {}
}

/// These guards are asked; the clock is for what is dropped in the middle of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Guarded<'g, C> {
    pub(crate) guards: Guards<'g>,
    pub(crate) inside: Inside,
    pub(crate) clock: C,
}

impl<C: Clock + Clone> Guarding for Guarded<'_, C> {
    type Held = Lent<Self>;

    fn guards(&self) -> Guards<'_> {
        self.guards
    }

    fn inside(&self) -> Inside {
        self.inside
    }

    fn hold(&self, permit: Permit, stage: Stage, nested: Nested) -> Lent<Self> {
        Lent::new(self, permit, stage, nested)
    }
}

impl<C: Clock + Clone> Lender for Guarded<'_, C> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

/// Guards that can be kept beside a permit.
pub trait Lender: Guarding + Clone {
    /// The time, for a permit that is dropped in the middle of an attempt.
    fn now(&self) -> Instant;
}

/// A permit with those who lent it.
#[derive(Debug)]
pub struct Lent<L: Lender> {
    lender: Option<L>,
    permit: Permit,
    stage: Stage,
    nested: Nested,
}

impl<L: Lender> Lent<L> {
    /// Those who have lent nothing, and hear of nothing, are not kept.
    pub(crate) fn new(lender: &L, permit: Permit, stage: Stage, nested: Nested) -> Self {
        let lender = if lender.guards().is_unguarded() { None } else { Some(lender.clone()) };
        Self { lender, permit, stage, nested }
    }
}

impl<L: Lender> Hold for Lent<L> {
    const EMPTY: Self = Self { lender: None, permit: Permit::NONE, stage: Stage::Waiting, nested: Nested::No };

    fn take(&mut self) -> Permit {
        self.lender = None;
        Permit::take(&mut self.permit)
    }

    fn stands_at(&mut self, stage: Stage) {
        self.stage = stage;
    }
}

impl<L: Lender> Drop for Lent<L> {
    fn drop(&mut self) {
        let Some(lender) = self.lender.take() else { return };
        let (guards, permit) = (lender.guards().nested(self.nested), Permit::take(&mut self.permit));
        match self.stage {
            Stage::Waiting => guards.give_back(permit),
            Stage::LetIn => guards.withdraw(permit, || lender.now()),
            Stage::Attempting => guards.abandon(permit, || lender.now()),
        }
    }
}

/// What limits an attempt.
pub trait Limiting {
    /// Whether there can be a limit at all.
    const LIMITS: bool;

    /// When the whole call ends.
    fn deadline(&self) -> Option<Instant>;

    /// How long one attempt may take.
    fn timeout(&self, last: IsLast) -> Option<Duration>;
}

/// Whether an attempt is the last that the policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsLast {
    /// It is.
    Yes,
    /// Another may follow.
    No,
}

/// Nothing does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Limiting for Unlimited {
    const LIMITS: bool = false;

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        None
    }

    #[inline]
    fn timeout(&self, _: IsLast) -> Option<Duration> {
        None
    }
}

/// A deadline for the call, a timeout for each attempt, or both.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub(crate) deadline: Option<Instant>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) last: LastAttempt,
}

impl Limits {
    /// Whether nothing is limited, as it happens.
    pub(crate) const fn are_none(&self) -> bool {
        self.deadline.is_none() && self.timeout.is_none()
    }
}

impl From<Unlimited> for Limits {
    fn from(_: Unlimited) -> Self {
        Self::default()
    }
}

/// Whether the timeout of an attempt holds for the last one too.
///
/// A timeout makes room for another attempt. When there is none left, cutting the last one short only turns a late
/// answer into no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LastAttempt {
    /// It holds for every attempt. The default.
    #[default]
    Timed,
    /// The last attempt may take as long as the deadline allows.
    Untimed,
}

impl Limiting for Limits {
    const LIMITS: bool = true;

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn timeout(&self, last: IsLast) -> Option<Duration> {
        match (last, self.last) {
            (IsLast::Yes, LastAttempt::Untimed) => None,
            _ => self.timeout,
        }
    }
}

/// What the caller gets.
pub trait Mode {
    /// Whether it tells the elapsed time, for which the clock is read before attempt 1.
    const TIMED: bool;
    /// How it says that there is no error of the operation's.
    type Refusal;
    /// Where the last error waits during a sleep, for a caller who cancels.
    type Kept<E>: Keep<E>;

    /// A refusal, where one can happen at all.
    fn refusal(why: Refused) -> Option<Self::Refusal>;
}

/// What the caller gets for this value and this error.
pub trait Finish<T, E>: Mode {
    /// It.
    type Output;

    /// Makes it.
    fn finish(end: End<T, E, Self::Refusal>) -> Self::Output;
}

/// The end of a call.
#[derive(Debug)]
pub struct End<T, E, R> {
    pub(crate) result: Result<T, (Stop, Ending<E, R>)>,
    pub(crate) attempts: u32,
    pub(crate) elapsed: Duration,
}

/// How a call ended that did not succeed.
#[derive(Debug)]
pub(crate) enum Ending<E, R> {
    /// With the operation's error.
    Failed(E),
    /// Without one.
    Refused(R),
}

/// Where an error waits.
pub trait Keep<E> {
    /// With nothing in it.
    const EMPTY: Self;

    /// Puts one in, in place of the one before.
    fn put(&mut self, error: E);

    /// Takes it out.
    fn take(&mut self) -> Option<E>;
}

impl<E> Keep<E> for () {
    const EMPTY: Self = ();

    #[inline]
    fn put(&mut self, error: E) {
        drop(error);
    }

    #[inline]
    fn take(&mut self) -> Option<E> {
        None
    }
}

impl<E> Keep<E> for Option<E> {
    const EMPTY: Self = None;

    fn put(&mut self, error: E) {
        *self = Some(error);
    }

    fn take(&mut self) -> Self {
        self.take()
    }
}

/// The operation's own error, bare. Nothing can refuse such a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bare;

impl Mode for Bare {
    const TIMED: bool = false;
    type Refusal = Infallible;
    type Kept<E> = ();

    fn refusal(_: Refused) -> Option<Infallible> {
        None
    }
}

impl<T, E> Finish<T, E> for Bare {
    type Output = Result<T, E>;

    #[inline]
    fn finish(end: End<T, E, Infallible>) -> Result<T, E> {
        end.result.map_err(|(_, ending)| match ending {
            Ending::Failed(error) => error,
            Ending::Refused(never) => match never {},
        })
    }
}

macro_rules! timed {
    ($($(#[$doc:meta])* $mode:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $mode;

        impl Mode for $mode {
            const TIMED: bool = true;
            type Refusal = Refused;
            type Kept<E> = Option<E>;

            fn refusal(why: Refused) -> Option<Refused> {
                Some(why)
            }
        }
    )*};
}

timed! {
    /// [`Error<E>`].
    Explained
    /// [`Report`].
    Reported
    /// The operation's own error, which can also say that the call was refused.
    Own
}

impl<T, E> End<T, E, Refused> {
    pub(crate) fn explained(self) -> Result<T, Error<E>> {
        self.result.map_err(|(stop, ending)| {
            let last = match ending {
                Ending::Failed(error) => Last::Failed(error),
                Ending::Refused(why) => Last::Refused(why),
            };
            Error::new(stop, self.attempts, self.elapsed, last)
        })
    }
}

impl<T, E> Finish<T, E> for Explained {
    type Output = Result<T, Error<E>>;

    fn finish(end: End<T, E, Refused>) -> Self::Output {
        end.explained()
    }
}

impl<T, E> Finish<T, E> for Reported {
    type Output = Report<T, E>;

    fn finish(end: End<T, E, Refused>) -> Self::Output {
        Report { attempts: end.attempts, elapsed: end.elapsed, result: end.explained() }
    }
}

impl<T, E: From<Refused>> Finish<T, E> for Own {
    type Output = Result<T, E>;

    fn finish(end: End<T, E, Refused>) -> Self::Output {
        end.explained().map_err(Error::own)
    }
}

/// Everything that a call asks its setup.
pub trait Extras {
    /// What holds a permit.
    type Held: Hold;
    /// Where the last error waits.
    type Kept<E>: Keep<E>;
    /// Whether the clock is read before attempt 1 whatever the policy says, if it [`is_timed`](Self::is_timed).
    const TIMED: bool;
    /// Whether an attempt can have a limit of time.
    const LIMITS: bool;
    /// Whether nothing at all is asked before the first attempt.
    const PLAIN: bool = !Self::TIMED && !Self::LIMITS && size_of::<Self::Held>() == 0;

    /// Whether anybody will ask how long the call has taken.
    #[inline]
    fn is_timed(&self) -> bool {
        Self::TIMED
    }
    /// Whether, as it happens, nothing at all is asked before the first attempt.
    #[inline]
    fn is_plain(&self) -> bool {
        Self::PLAIN
    }
    /// The guards.
    fn guards(&self) -> Guards<'_>;
    /// What the call does inside an attempt of another.
    fn inside(&self) -> Inside;
    /// Holds a permit.
    fn hold(&self, permit: Permit, stage: Stage, nested: Nested) -> Self::Held;
    /// When the call ends.
    fn deadline(&self) -> Option<Instant>;
    /// How long one attempt may take.
    fn timeout(&self, last: IsLast) -> Option<Duration>;
    /// A seed for the call.
    fn seed(&self) -> crate::Seed;
}

/// Whether anybody listens, whatever the error.
pub trait Listening {
    /// Somebody does.
    const LISTENS: bool;
}

impl<S: Listening, G: Guarding, L: Limiting, Y: Entropy, M: Mode> Extras for Setup<S, G, L, Y, M> {
    type Held = G::Held;
    type Kept<E> = M::Kept<E>;
    const TIMED: bool = M::TIMED || S::LISTENS;
    const LIMITS: bool = L::LIMITS;

    #[inline]
    fn guards(&self) -> Guards<'_> {
        self.guards.guards()
    }

    #[inline]
    fn inside(&self) -> Inside {
        self.guards.inside()
    }

    #[inline]
    fn hold(&self, permit: Permit, stage: Stage, nested: Nested) -> G::Held {
        self.guards.hold(permit, stage, nested)
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.limits.deadline()
    }

    #[inline]
    fn timeout(&self, last: IsLast) -> Option<Duration> {
        self.limits.timeout(last)
    }

    #[inline]
    fn seed(&self) -> crate::Seed {
        self.entropy.seed()
    }
}
