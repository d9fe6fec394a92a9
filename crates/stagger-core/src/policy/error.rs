use core::fmt;

use super::DelayList;
use crate::numbers::message::{Message, Value, words};
use crate::numbers::ratio::Ratio;

/// Every problem in the settings of a policy, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyError {
    pub(super) problems: u32,
    pub(super) base: u64,
    pub(super) cap: u64,
    pub(super) floor: u64,
    pub(super) spread: u64,
    pub(super) max_elapsed: u64,
    pub(super) throttled_base: u64,
    pub(super) local_base: u64,
    /// As `f32`, so that a `Result` with this error stays small; below 1 if the setting is.
    pub(super) multiplier: f32,
    /// The share of the jitter if that is above 1, otherwise `hint_spread`.
    pub(super) share: Ratio,
    pub(super) is_jitter_share: bool,
    pub(super) is_exponential: bool,
}

words! {
    /// One problem in the settings of a policy.
    #[repr(u8)]
    pub enum PolicyProblem {
        /// `max_attempts` is 0, but the first call counts.
        NoAttempt = "max-attempts is 0, but the first call counts: use 1 for no retry, or more",
        /// `base` is 0, so every delay would be 0.
        ZeroBase = "base is 0s, so every delay would be 0s: raise base, or use a zero backoff",
        /// `cap` is below `base`.
        CapBelowBase = "cap {} is below base {}: raise cap or lower base",
        /// `floor` is above `cap`.
        FloorAboveCap = "floor {} is above cap {}: lower floor or raise cap",
        /// `floor` is set, but the jitter of a profile has none.
        FloorUnused = "floor {} has no effect on this profile's jitter: drop floor, or choose another jitter",
        /// `multiplier` is not finite, or below 1.
        Multiplier = "multiplier {} is not a finite number of at least 1: use 2, or 1 for no growth",
        /// A share is above 1.
        RatioAboveOne = "{}{} is above 100%: use at most 100%",
        /// The list has no delay, more than 16, or delays without a common unit.
        List = "the list needs 1 to {} delays that are multiples of a common unit: shorten it, or round its delays",
        /// The range of a uniform backoff ends before it begins, or at 0.
        Range = "range {}..{} has no delay: write the shorter delay first, and end above 0s",
        /// Decorrelated jitter is combined with another backoff than exponential, a multiplier or a floor.
        Decorrelated = "decorrelated jitter {}, or choose another jitter",
        /// The jitter of a profile is combined with a backoff that is not exponential.
        ProfileJitter =
            "this profile's jitter is for exponential delays: choose another jitter, or an exponential backoff",
        /// Jitter is set for a backoff without delays, or for a uniform one.
        NothingToJitter = "{}: drop jitter, or {} backoff",
        /// `cap` or `floor` is set for a backoff that does not grow.
        NothingToCap = "cap and floor are for delays that grow: drop them, or use an exponential or linear backoff",
        /// `base`, `step`, `multiplier` or `range` is set for a backoff that has none.
        Misplaced =
            "base, step, range or multiplier is set for a backoff that has none: drop it, or choose another backoff",
        /// `spread` is longer than `max_elapsed`.
        SpreadAboveElapsed = "spread {} is longer than max-elapsed {}: shorten spread or raise max-elapsed",
        /// `max_elapsed` ends before the first retry can start.
        ElapsedBelowBase =
            "max-elapsed {} ends before the first retry can start: raise max-elapsed, lower base, or set \
             max-attempts to 1",
        /// `hint_spread` is set, but the hint mode does not use it.
        HintSpreadUnused = "hint-spread{}{} has no effect with this hint mode: use at-least, or drop hint-spread",
        /// `throttled_base` is outside `base..=cap`.
        ThrottledBase = "throttled-base {} is not between base {} and cap: change it, or leave it out",
        /// `local_base` is outside `base..=cap`.
        LocalBase = "local-base {} is not between base {} and cap: change it, or leave it out",
    }
    const ALL;
    /// Returns the sentence about the problem, in which each `{}` stands for a value.
    const fn sentence;
}

use PolicyProblem::{
    Decorrelated, ElapsedBelowBase, FloorAboveCap, FloorUnused, HintSpreadUnused, LocalBase, Multiplier,
    NothingToJitter, Range, RatioAboveOne, SpreadAboveElapsed, ThrottledBase,
};

/// Room for all messages of a policy at once.
type Sentences = Message<2048>;

impl PolicyError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = PolicyProblem> + '_ {
        PolicyProblem::ALL.iter().copied().filter(|&problem| self.has(problem))
    }

    pub(super) const fn is_none(&self) -> bool {
        self.problems == 0
    }

    const fn has(&self, problem: PolicyProblem) -> bool {
        self.problems & (1 << problem as u8) != 0
    }

    /// Returns the sentences about all problems.
    pub(super) const fn message(&self) -> Sentences {
        let mut text = Sentences::new();
        let mut at = 0;
        while at < PolicyProblem::ALL.len() {
            let problem = PolicyProblem::ALL[at];
            if self.has(problem) {
                text = if text.is_empty() { text } else { text.text("; ") };
                text = text.sentence(problem.sentence(), &self.values(problem));
            }
            at += 1;
        }
        text
    }

    const fn decorrelated(&self) -> &'static str {
        if self.is_exponential {
            "takes base and cap of an exponential backoff and nothing else: drop multiplier and floor"
        } else {
            "grows by itself, from base to cap: use a decorrelated backoff"
        }
    }

    const fn values(&self, problem: PolicyProblem) -> [Value; 2] {
        let (base, cap, floor) = (Value::Length(self.base), Value::Length(self.cap), Value::Length(self.floor));
        let (share, max_elapsed) = (Value::Share(self.share), Value::Length(self.max_elapsed));
        match problem {
            FloorAboveCap | FloorUnused => [floor, cap],
            Range => [floor, base],
            Multiplier => [Value::Decimal(self.multiplier as f64), base],
            Decorrelated => [Value::Text(self.decorrelated()), base],
            RatioAboveOne => [Value::Text(if self.is_jitter_share { "jitter ±" } else { "hint-spread " }), share],
            HintSpreadUnused if self.is_jitter_share => [Value::Text(""), Value::Text("")],
            HintSpreadUnused => [Value::Text(" "), share],
            PolicyProblem::List => [Value::Count(DelayList::MAX_LEN as u64), base],
            NothingToJitter if self.base > 0 => {
                [Value::Text("a uniform backoff draws from its range"), Value::Text("use a constant")]
            }
            NothingToJitter => {
                [Value::Text("a zero or stop backoff has no delay to jitter"), Value::Text("choose another")]
            }
            SpreadAboveElapsed => [Value::Length(self.spread), max_elapsed],
            ElapsedBelowBase => [max_elapsed, base],
            ThrottledBase => [Value::Length(self.throttled_base), base],
            LocalBase => [Value::Length(self.local_base), base],
            _ => [cap, base],
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().as_str())
    }
}

impl core::error::Error for PolicyError {}
