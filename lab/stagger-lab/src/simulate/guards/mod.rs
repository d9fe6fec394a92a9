//! The guards of a simulated client process: a small language of guards with settings.
//!
//! `tokens capacity=500+breaker consecutive=3, window ratio=10%` is a list of two: items are separated by commas, the
//! guards of one process by plus signs, and settings by spaces. Nothing within parentheses separates.

mod breaker;
mod budgets;
mod lease;
mod pacer;
mod quiet;
mod words;

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

use stagger_core::Seed;
use stagger_core::guard::MAX_GUARDS;
use stagger_core::text::nearest;
use stagger_sim::outage::ProcessGuards;

pub(crate) use words::ratio;
use words::{Words, split};

/// Adds a new guard to the guards of a process.
type AddGuard = Arc<dyn Fn(ProcessGuards, Seed) -> ProcessGuards + Send + Sync>;

/// A kind of guard, with the names of its settings.
struct Kind {
    keyword: &'static str,
    settings: &'static [&'static str],
    /// Creates the guard from its settings.
    build: fn(&mut Words<'_>) -> Result<AddGuard, String>,
}

/// All kinds, in the order of the help text. A new one is a row here and a file with its settings.
const KINDS: &[&Kind] = &[
    &Kind { keyword: "none", settings: &[], build: |_| Ok(Arc::new(|process, _| process)) },
    &budgets::TOKENS,
    &budgets::WINDOW,
    &budgets::LIFETIME,
    &budgets::THROTTLE,
    &budgets::CONCURRENT,
    &budgets::ADAPTIVE,
    &budgets::SUCCESS_RATE,
    &breaker::BREAKER,
    &quiet::QUIET,
    &pacer::PACER,
    &lease::LEASE,
];

/// Returns the kinds with their settings, for the help text.
pub(super) fn settings_help() -> String {
    const WIDTH: usize = 80;
    let mut help = String::from("Settings of guards:");
    for kind in KINDS.iter().filter(|kind| !kind.settings.is_empty()) {
        let mut line = format!("  {:<13}", kind.keyword);
        for (nth, setting) in kind.settings.iter().enumerate() {
            let comma = if nth + 1 < kind.settings.len() { "," } else { "" };
            if line.len() + 1 + setting.len() + comma.len() > WIDTH {
                help.extend(["\n", &*line]);
                line = " ".repeat(15);
            }
            line.extend([" ", setting, comma]);
        }
        help.extend(["\n", &*line]);
    }
    help
}

/// Guards of a client process, in the order in which they are asked.
#[derive(Clone)]
pub(crate) struct Guards {
    /// The guards as the user wrote them.
    pub(crate) text: String,
    guards: Vec<AddGuard>,
    /// Whether the processes share a budget.
    pub(crate) has_lease: bool,
}

impl Guards {
    /// Creates a process with new guards of this kind.
    pub(crate) fn process(&self, seed: Seed) -> ProcessGuards {
        self.guards.iter().fold(ProcessGuards::none(), |process, add| add(process, seed))
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guards").field(&self.text).finish()
    }
}

/// Parses a comma-separated list of guards to compare.
pub(crate) fn parse_list(text: &str) -> Result<Vec<Guards>, String> {
    split(text, |c| c == ',')?.into_iter().map(str::parse).collect()
}

impl FromStr for Guards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let mut guards = Self { text: text.to_owned(), guards: Vec::new(), has_lease: false };
        for part in split(text, |c| c == '+')? {
            let (word, settings) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
            let Some(kind) = KINDS.iter().find(|kind| kind.keyword == word) else {
                return Err(unknown_guard(word));
            };
            let mut words = Words::parse(kind.keyword, settings)?;
            let add = (kind.build)(&mut words)?;
            words.finish(kind.settings)?;
            if kind.keyword == lease::LEASE.keyword {
                if guards.has_lease {
                    return Err(format!("`{text}` names two leases; keep one of them"));
                }
                guards.has_lease = true;
            }
            guards.guards.push(add);
        }
        if guards.guards.len() > MAX_GUARDS {
            return Err(format!("`{text}` names more than {MAX_GUARDS} guards; keep the most important ones"));
        }
        Ok(guards)
    }
}

fn unknown_guard(word: &str) -> String {
    if word.is_empty() {
        return "a guard is missing; write at least one, such as none or tokens, separated by one comma each"
            .to_owned();
    }
    if let Some(nearest) = nearest(word, KINDS.iter().map(|kind| kind.keyword)) {
        return format!("`{word}` is not a guard; did you mean `{nearest}`?");
    }
    let known: Vec<&str> = KINDS.iter().map(|kind| kind.keyword).collect();
    format!("`{word}` is not a guard; expected one of {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use stagger_sim::outage::DefaultGuards;

    use super::*;

    fn shown(text: &str) -> String {
        format!("{:?}", text.parse::<Guards>().unwrap().process(Seed::new(1)))
    }

    fn error(text: &str) -> String {
        parse_list(text).unwrap_err()
    }

    #[test]
    fn guards_are_asked_in_the_order_given() {
        let process = shown("pacer+quiet+breaker+tokens+window");
        let kinds = ["Pacer", "QuietPeriod", "CircuitBreaker", "Tokens", "Window"];
        let places = kinds.map(|kind| process.find(kind).unwrap());
        assert!(places.is_sorted(), "{process}");
        assert_eq!(error("lease+quiet+lease"), "`lease+quiet+lease` names two leases; keep one of them");
        assert!(error(&["tokens"; 7].join("+")).ends_with("names more than 6 guards; keep the most important ones"));
    }

    #[test]
    fn every_guard_keyword_is_accepted() {
        for kind in KINDS {
            let is_empty = shown(kind.keyword) == shown("none");
            assert_eq!(is_empty, kind.keyword == "none", "{}", kind.keyword);
        }
    }

    #[test]
    fn the_guards_that_check_and_advise_recommend_have_the_same_names_here() {
        for guards in [DefaultGuards::None].into_iter().chain(DefaultGuards::TRIED) {
            assert_eq!(shown(guards.name()), format!("{:?}", guards.process(Seed::new(1))), "{}", guards.name());
        }
    }

    #[test]
    fn a_setting_changes_the_guard() {
        for (text, part) in [
            ("tokens capacity=700", "capacity: 700000000"),
            ("tokens initial=7", "initial: Some(7000000)"),
            ("tokens cost=8", "local: 8000000"),
            ("tokens cost=8 transient-cost=9", "transient: 9000000"),
            ("tokens throttled-cost=9", "throttled: 9000000"),
            ("tokens local-cost=9", "local: 9000000"),
            ("tokens refund=last-cost", "refund: LastCost"),
            ("tokens reward=2", "reward: 2000000"),
            ("tokens reward=10%", "reward: 100000"),
            ("tokens refill=50/s", "refill: Some(Refill { amount: 50000000, per: 1000000000 })"),
            ("tokens refill=30/min", "refill: Some(Refill { amount: 30000000, per: 60000000000 })"),
            ("window ttl=5s", "ttl: 5000000000"),
            ("window ratio=10%", "100000"),
            ("window min-per-second=3", "min_per_second: 3"),
            ("window min-per-second=0", "min_per_second: 0"),
            ("lifetime ratio=25%", "250000"),
            ("lifetime bootstrap=77", "77"),
            ("throttle max-tokens=77", "Throttle {"),
            ("throttle token-ratio=0.5", "Throttle {"),
            ("concurrent ratio=25%", "250000"),
            ("concurrent floor=77", "77"),
            ("adaptive multiplier=1.1", "multiplier: Ratio(1100000)"),
            ("adaptive window=30s", "window: 30000000000"),
            ("adaptive max-rejection-probability=90%", "900000"),
            ("adaptive min-requests=77", "min_requests: 77"),
            ("success-rate ratio=75%", "750000"),
            ("success-rate last=33", "33"),
            ("breaker consecutive=77", "consecutive: 77"),
            ("breaker failure-ratio=50%", "failure_ratio: Some(Ratio(500000))"),
            ("breaker slow-ratio=50% slow-after=200ms", "after: 200000000"),
            // The default of `min-calls` is at most the window.
            ("breaker failure-ratio=50% window=7", "min_calls: 7"),
            ("breaker failure-ratio=50% min-calls=33", "min_calls: 33"),
            ("breaker probes=7", "probes: 7"),
            ("breaker probes=7 healthy-probes=3", "healthy_probes: 3"),
            ("breaker probe-wait=7s", "probe_wait: 7000000000"),
            ("quiet trigger=hints-and-refusals", "trigger: HintsAndRefusals"),
            ("quiet max=7s", "max: 7000000000"),
            ("quiet max-wait=7s", "max_wait: Some(7000000000)"),
            ("quiet max-waiting=77", "max_waiting: 77"),
            ("quiet probe-wait=7s", "probe_wait: 7000000000"),
            ("pacer max-wait=7s", "max_wait: Some(7000000000)"),
            ("pacer max-waiting=77", "max_waiting: 77"),
            ("lease tokens=700", "capacity: 700000000"),
            ("lease initial=7", "initial: 7000000"),
            ("lease cost=8", "cost: 8000000"),
            ("lease reward=2", "reward: 2000000"),
            ("lease refill=50/s", "refill: 50000000"),
            ("lease expected=7", "expected: Some(7)"),
        ] {
            let (plain, changed) = (shown(text.split(' ').next().unwrap()), shown(text));
            assert!(changed.contains(part), "{text}: {changed}");
            assert_ne!(changed, plain, "{text}");
        }
    }

    #[test]
    fn every_setting_of_every_kind_is_tried_above() {
        let source = include_str!("mod.rs");
        for kind in KINDS {
            for setting in kind.settings {
                let text = format!("{} {setting}=", kind.keyword);
                let later = format!(" {setting}=");
                assert!(
                    source.lines().any(|line| line.contains(&text)
                        || line.contains(&format!("\"{} ", kind.keyword)) && line.contains(&later)),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn the_help_lists_every_setting_of_every_kind() {
        let help = settings_help();
        let words: Vec<&str> = help.split_whitespace().collect();
        for kind in KINDS.iter().filter(|kind| !kind.settings.is_empty()) {
            let list = format!("{} {}", kind.keyword, kind.settings.join(", "));
            assert!(words.join(" ").contains(&list), "{list}\n{help}");
        }
    }

    #[test]
    fn an_error_names_the_setting_and_the_way_out() {
        for (text, want) in [
            ("", "a guard is missing; write at least one, such as none or tokens, separated by one comma each"),
            ("tokens,", "a guard is missing; write at least one, such as none or tokens, separated by one comma each"),
            ("tokns", "`tokns` is not a guard; did you mean `tokens`?"),
            (
                "weather",
                "`weather` is not a guard; expected one of none, tokens, window, lifetime, throttle, concurrent, \
                 adaptive, success-rate, breaker, quiet, pacer, lease",
            ),
            ("tokens capcity=5", "tokens: `capcity` is not a setting; did you mean `capacity`?"),
            ("window capacity=5", "window: `capacity` is not a setting; use ttl, ratio or min-per-second"),
            ("none ratio=5%", "none: `ratio` is not a setting; none has no settings"),
            ("tokens capacity", "tokens: `capacity` has no value; write it as capacity=VALUE"),
            ("tokens capacity=", "tokens: `capacity` has no value; write it as capacity=VALUE"),
            ("tokens capacity=5 capacity=6", "tokens: `capacity` is set twice; keep one of them"),
            ("tokens capacity=many", "tokens: capacity: `many` is not a whole number; expected one like 0, 500 or 10k"),
            ("tokens refund=all", "tokens: refund: unknown value `all`; expected one of every-success, last-cost"),
            (
                "tokens refill=5",
                "tokens: refill: `5` is not a number of tokens in a time; expected a form like 50/s or 10/500ms",
            ),
            ("window ratio=lots", "window: ratio: `lots` is not a share; expected a form like 10% or 0.1"),
            ("breaker slow-ratio=5%", "breaker: slow-ratio needs slow-after: the length from which a call is slow"),
            ("breaker slow-after=5s", "breaker: slow-after needs slow-ratio: the share of slow calls that trips it"),
            ("breaker open=(constant", "`(` is not closed; add `)`"),
            ("breaker open=constant)", "`)` closes nothing; remove it"),
            ("breaker open=(nonsense)", "breaker: open: `nonsense` is not a backoff"),
            ("window ratio=200%", "window: share 200% is above 100%: use at most 1"),
            ("tokens capacity=0", "tokens: capacity is 0, so every retry would be rejected"),
            ("breaker failure-ratio=5% window=50ms", "breaker: the window of 50ms cannot be counted"),
            ("breaker open=(exponential base=5s)", "breaker: the open time can be 0s"),
            ("breaker consecutive=0", "breaker: consecutive is 0, so it would never close"),
            ("quiet max=0s", "quiet: max 0s is outside the range: use more than 0s and at most 24h"),
            ("pacer mode=wait", "pacer: `mode` is not a setting; use max-wait or max-waiting"),
            (
                "lease capacity=5",
                "lease: `capacity` is not a setting; use tokens, initial, cost, reward, refill or expected",
            ),
            ("lease tokens=0", "lease: capacity 0 is outside 1 to 1000000000: change it"),
            ("lease expected=0", "lease: 0 processes are expected: use the number that usually runs"),
        ] {
            let error = error(text);
            assert!(error.starts_with(want), "{text}: {error}");
        }
    }

    #[test]
    fn commas_within_parentheses_do_not_separate() {
        let guards = parse_list("breaker open=(list delays=5s,10s), none").unwrap();
        assert_eq!(
            guards.iter().map(|guards| &*guards.text).collect::<Vec<_>>(),
            ["breaker open=(list delays=5s,10s)", "none"]
        );
    }
}
