use core::fmt;

use super::PolicyBuilder;
use crate::numbers::instant::nanos;
use crate::numbers::message::Message;
use crate::numbers::ratio::Ratio;
use crate::policy::backoff::{Backoff, DelayList};
use crate::policy::hint_mode::HintMode;
use crate::policy::jitter::Jitter;

/// Every problem in the settings of a policy, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyError {
    problems: u32,
    base: u64,
    cap: u64,
    floor: u64,
    spread: u64,
    max_elapsed: u64,
    throttled_base: u64,
    local_base: u64,
    /// As `f32`, so that a `Result` with this error stays small; below 1 if the setting is.
    multiplier: f32,
    /// The share of the jitter if that is above 1, otherwise `hint_spread`.
    share: Ratio,
    is_jitter_share: bool,
}

/// One problem in the settings of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum PolicyProblem {
    /// `max_attempts` is 0, but the first call counts.
    NoAttempt,
    /// `base` is 0, so every delay would be 0.
    ZeroBase,
    /// `cap` is below `base`.
    CapBelowBase,
    /// `floor` is above `cap`.
    FloorAboveCap,
    /// `floor` is set, but the jitter of a profile has none.
    FloorUnused,
    /// `multiplier` is not finite, or below 1.
    Multiplier,
    /// A share is above 1.
    RatioAboveOne,
    /// The list has no delay, more than 16, or delays without a common unit.
    List,
    /// The range of a uniform backoff ends before it begins, or at 0.
    Range,
    /// Decorrelated jitter is combined with another backoff than exponential, a multiplier or a floor.
    Decorrelated,
    /// The jitter of a profile is combined with a backoff that is not exponential.
    ProfileJitter,
    /// Jitter is set for a backoff without delays, or for a uniform one.
    NothingToJitter,
    /// `cap` or `floor` is set for a backoff that does not grow.
    NothingToCap,
    /// `base`, `step`, `multiplier` or `range` is set for a backoff that has none.
    Misplaced,
    /// `spread` is longer than `max_elapsed`.
    SpreadAboveElapsed,
    /// `max_elapsed` ends before the first retry can start.
    ElapsedBelowBase,
    /// `hint_spread` is set, but the hint mode does not use it.
    HintSpreadUnused,
    /// `throttled_base` is outside `base..=cap`.
    ThrottledBase,
    /// `local_base` is outside `base..=cap`.
    LocalBase,
}

use PolicyProblem::{
    CapBelowBase, Decorrelated, ElapsedBelowBase, FloorAboveCap, FloorUnused, HintSpreadUnused, LocalBase, Misplaced,
    Multiplier, NoAttempt, NothingToCap, NothingToJitter, ProfileJitter, Range, RatioAboveOne, SpreadAboveElapsed,
    ThrottledBase, ZeroBase,
};

const ALL: [PolicyProblem; 19] = [
    NoAttempt,
    ZeroBase,
    CapBelowBase,
    FloorAboveCap,
    FloorUnused,
    Multiplier,
    RatioAboveOne,
    PolicyProblem::List,
    Range,
    Decorrelated,
    ProfileJitter,
    NothingToJitter,
    NothingToCap,
    Misplaced,
    SpreadAboveElapsed,
    ElapsedBelowBase,
    HintSpreadUnused,
    ThrottledBase,
    LocalBase,
];

/// The largest `f32` below 1.
const BELOW_ONE: f32 = f32::from_bits(0x3f7f_ffff);

/// Room for all messages of a policy at once.
type Sentences = Message<2048>;

impl PolicyError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = PolicyProblem> + '_ {
        ALL.into_iter().filter(|&problem| self.has(problem))
    }

    pub(super) const fn is_none(&self) -> bool {
        self.problems == 0
    }

    const fn has(&self, problem: PolicyProblem) -> bool {
        self.problems & (1 << problem as u8) != 0
    }

    pub(super) const fn of(builder: &PolicyBuilder) -> Self {
        let settings = &builder.settings;
        let jitter = settings.jitter();
        let cap = match settings.cap {
            Some(cap) => nanos(cap),
            None => u64::MAX,
        };
        let factor_above_one = matches!(jitter, Jitter::Factor(share) if share.is_above_one());
        let mut error = Self {
            problems: 0,
            base: nanos(settings.base()),
            cap,
            floor: match settings.backoff {
                Backoff::Uniform { min, .. } => nanos(min),
                _ => nanos(settings.floor),
            },
            spread: nanos(settings.spread),
            max_elapsed: match settings.max_elapsed {
                Some(limit) => nanos(limit),
                None => u64::MAX,
            },
            throttled_base: nanos(settings.throttled_base()),
            local_base: nanos(settings.local_base()),
            multiplier: 1.0,
            share: Ratio::ZERO,
            is_jitter_share: factor_above_one,
        };
        let base = error.base;
        let grows = matches!(settings.backoff, Backoff::Linear { .. } | Backoff::Exponential { .. });
        let has_base = grows || matches!(settings.backoff, Backoff::Constant { .. });
        let is_uniform = matches!(settings.backoff, Backoff::Uniform { .. });
        let has_delays = !matches!(settings.backoff, Backoff::Zero | Backoff::Stop);
        let multiplier = match settings.backoff {
            Backoff::Exponential { multiplier, .. } => multiplier,
            _ => 1.0,
        };
        let rounded = multiplier as f32;
        error.multiplier = if multiplier.is_nan() {
            // Not NaN, so that the derived comparison finds equal errors equal.
            f32::NEG_INFINITY
        } else if multiplier < 1.0 && rounded >= 1.0 {
            BELOW_ONE
        } else {
            rounded
        };
        error.share = match (jitter, settings.hint_spread) {
            (Jitter::Factor(share), _) if factor_above_one => share,
            (_, Some(share)) => share,
            _ => Ratio::ZERO,
        };
        let list_is_wrong = match settings.backoff {
            Backoff::List(list) => list.is_empty(),
            _ => false,
        };
        let spread_above_one = matches!(settings.hint_spread, Some(share) if share.is_above_one());
        // A multiplier that was set to its default cannot be told from one that was not set.
        let decorrelates = matches!(settings.backoff, Backoff::Exponential { .. })
            && multiplier.to_bits() == 2.0_f64.to_bits()
            && error.floor == 0;
        let jitter_is_wrong = match jitter {
            Jitter::None => is_uniform,
            Jitter::Full => !has_delays,
            _ => is_uniform || !has_delays,
        };
        let needs_growth = match jitter {
            Jitter::Profile(jitter) => jitter.0.needs_exponential,
            _ => false,
        };
        let ignores_floor = match (jitter, settings.backoff) {
            (Jitter::Profile(jitter), Backoff::Exponential { .. }) => jitter.0.has_own_delays(),
            _ => false,
        };
        let retries = !matches!(settings.max_attempts, Some(1));
        let least = match jitter {
            Jitter::None | Jitter::Decorrelated | Jitter::Added(_) => base,
            Jitter::Equal => base / 2,
            Jitter::Full | Jitter::Factor(_) | Jitter::Profile(_) => 0,
        };
        let spreads_hints = matches!(settings.hint_mode, HintMode::AtLeast);
        let throttled_fits = (has_base || is_uniform) && error.throttled_base >= base && error.throttled_base <= cap;
        let local_fits = (has_base || is_uniform) && error.local_base >= base && error.local_base <= cap;
        let found = [
            (NoAttempt, matches!(settings.max_attempts, Some(0))),
            (ZeroBase, has_base && base == 0),
            (CapBelowBase, grows && cap < base),
            (FloorAboveCap, grows && error.floor > cap),
            (FloorUnused, ignores_floor && error.floor > 0),
            (NothingToCap, !grows && (settings.cap.is_some() || !settings.floor.is_zero())),
            (Misplaced, builder.misplaced),
            // Written so that NaN fails it.
            (Multiplier, !(multiplier >= 1.0 && multiplier <= f64::MAX)),
            (RatioAboveOne, factor_above_one || spread_above_one),
            (PolicyProblem::List, list_is_wrong),
            (Range, is_uniform && (base == 0 || error.floor > base)),
            (Decorrelated, matches!(jitter, Jitter::Decorrelated) && !decorrelates),
            (ProfileJitter, needs_growth && !matches!(settings.backoff, Backoff::Exponential { .. }) && has_delays),
            (NothingToJitter, jitter_is_wrong),
            (SpreadAboveElapsed, error.spread > error.max_elapsed),
            (ElapsedBelowBase, retries && (least > error.max_elapsed || error.floor > error.max_elapsed)),
            (HintSpreadUnused, settings.hint_spread.is_some() && !spreads_hints),
            (ThrottledBase, settings.throttled_base.is_some() && !throttled_fits),
            (LocalBase, settings.local_base.is_some() && !local_fits),
        ];
        let mut at = 0;
        while at < found.len() {
            if found[at].1 {
                error.problems |= 1 << found[at].0 as u8;
            }
            at += 1;
        }
        error
    }

    pub(super) const fn message(&self) -> Sentences {
        let mut text = Sentences::new();
        let mut at = 0;
        while at < ALL.len() {
            if self.has(ALL[at]) {
                if !text.is_empty() {
                    text = text.text("; ");
                }
                text = self.sentence(text, ALL[at]);
            }
            at += 1;
        }
        text
    }

    const fn sentence(&self, text: Sentences, problem: PolicyProblem) -> Sentences {
        match problem {
            NoAttempt => text.text("max-attempts is 0, but the first call counts: use 1 for no retry, or more"),
            ZeroBase => text.text("base is 0s, so every delay would be 0s: raise base, or use a zero backoff"),
            CapBelowBase => text
                .text("cap ")
                .duration(self.cap)
                .text(" is below base ")
                .duration(self.base)
                .text(": raise cap or lower base"),
            FloorAboveCap => text
                .text("floor ")
                .duration(self.floor)
                .text(" is above cap ")
                .duration(self.cap)
                .text(": lower floor or raise cap"),
            FloorUnused => text
                .text("floor ")
                .duration(self.floor)
                .text(" has no effect on this profile's jitter: drop floor, or choose another jitter"),
            Multiplier => text
                .text("multiplier ")
                .decimal(self.multiplier as f64)
                .text(" is not a finite number of at least 1: use 2, or 1 for no growth"),
            RatioAboveOne => text
                .text(if self.is_jitter_share { "jitter ±" } else { "hint-spread " })
                .percent(self.share)
                .text(" is above 100%: use at most 100%"),
            PolicyProblem::List => text
                .text("the list needs 1 to ")
                .number(DelayList::MAX_LEN as u64)
                .text(" delays that are multiples of a common unit: shorten it, or round its delays"),
            Range => text
                .text("range ")
                .duration(self.floor)
                .text("..")
                .duration(self.base)
                .text(" has no delay: write the shorter delay first, and end above 0s"),
            Decorrelated => text.text(
                "decorrelated jitter takes base and cap of an exponential backoff and nothing else: \
                 drop multiplier and floor, or choose another jitter",
            ),
            ProfileJitter => text.text(
                "this profile's jitter is for exponential delays: choose another jitter, or an exponential backoff",
            ),
            NothingToJitter if self.base > 0 => {
                text.text("a uniform backoff draws from its range: drop jitter, or use a constant backoff")
            }
            NothingToJitter => {
                text.text("a zero or stop backoff has no delay to jitter: drop jitter, or choose another backoff")
            }
            NothingToCap => {
                text.text("cap and floor are for delays that grow: drop them, or use an exponential or linear backoff")
            }
            Misplaced => text.text(
                "base, step, range or multiplier is set for a backoff that has none: drop it, or choose another \
                 backoff",
            ),
            SpreadAboveElapsed => text
                .text("spread ")
                .duration(self.spread)
                .text(" is longer than max-elapsed ")
                .duration(self.max_elapsed)
                .text(": shorten spread or raise max-elapsed"),
            ElapsedBelowBase => text.text("max-elapsed ").duration(self.max_elapsed).text(
                " ends before the first retry can start: raise max-elapsed, lower base, or set max-attempts to 1",
            ),
            HintSpreadUnused => {
                let text = text.text("hint-spread");
                let text = if self.is_jitter_share { text } else { text.text(" ").percent(self.share) };
                text.text(" has no effect with this hint mode: use at-least, or drop hint-spread")
            }
            ThrottledBase => self.kind_base(text.text("throttled-base "), self.throttled_base),
            LocalBase => self.kind_base(text.text("local-base "), self.local_base),
        }
    }

    const fn kind_base(&self, text: Sentences, kind_base: u64) -> Sentences {
        text.duration(kind_base)
            .text(" is not between base ")
            .duration(self.base)
            .text(" and cap: change it, or leave it out")
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().as_str())
    }
}

impl core::error::Error for PolicyError {}
