//! systemd units: `Restart=` and its start limit.
//!
//! Read in systemd.service(5) and systemd.unit(5) of version 256.

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, Setting};
use crate::fields::whole;
use crate::format::Format;
use crate::tree::{Assignment, assignments};
use crate::units;

const RESTART_DELAY: Duration = Duration::from_millis(100);
const START_LIMIT_INTERVAL: Duration = Duration::from_secs(10);
const START_LIMIT_BURST: u32 = 5;

/// The settings that are read; the last assignment of each counts.
struct Unit<'a> {
    assignments: Vec<Assignment<'a>>,
}

impl<'a> Unit<'a> {
    fn last(&self, sections: &[&str], names: &[&str]) -> Option<&Assignment<'a>> {
        let is_meant = |found: &&Assignment<'_>| sections.contains(&found.section) && names.contains(&found.name);
        self.assignments.iter().rev().find(is_meant)
    }
}

/// Reads a length of time; `infinity` is no limit, and an empty value resets to the default.
fn length(found: Option<&Assignment<'_>>, remarks: &mut Vec<Remark>) -> Option<Setting<Limit<Duration>>> {
    let found = found.filter(|found| !found.value.is_empty())?;
    let value = match &*found.value {
        "infinity" => Some(Limit::None),
        text => units::systemd(text).map(Limit::At),
    };
    if value.is_none() {
        remarks.push(remark(
            found,
            RemarkKind::Invalid,
            format!("`{}` is not a length of time, such as 5s", found.value),
        ));
    }
    value.map(|value| Setting::stated(value, found.span))
}

fn remark(found: &Assignment<'_>, kind: RemarkKind, text: impl Into<String>) -> Remark {
    Remark { kind, path: format!("[{}] {}", found.section, found.name), span: found.span, text: text.into() }
}

fn count(found: Option<&Assignment<'_>>, remarks: &mut Vec<Remark>) -> Option<Setting<u32>> {
    let found = found.filter(|found| !found.value.is_empty())?;
    let value = whole(&found.value);
    if value.is_none() {
        remarks.push(remark(found, RemarkKind::Invalid, format!("`{}` is not a whole number", found.value)));
    }
    value.map(|value| Setting::stated(value, found.span))
}

pub(crate) fn read(text: &str) -> Vec<Entry> {
    let unit = Unit { assignments: assignments(text) };
    let restart = unit.last(&["Service", "Swap", "Mount"], &["Restart"]);
    let Some(restart) = restart.filter(|restart| !matches!(&*restart.value, "" | "no")) else {
        return Vec::new();
    };
    let mut entry = Entry::new(Format::Systemd, EntryKind::Restart, "[Service]", restart.span);
    let remarks = &mut entry.remarks;
    if !matches!(&*restart.value, "always" | "on-success" | "on-failure" | "on-abnormal" | "on-abort" | "on-watchdog") {
        remarks.push(remark(
            restart,
            RemarkKind::Invalid,
            format!("`{}` is not a value of Restart=: systemd ignores it", restart.value),
        ));
        entry.settings.attempts = Some(Setting::default(Limit::At(1)));
        return vec![entry];
    }
    let delay = length(unit.last(&["Service"], &["RestartSec"]), remarks);
    let delay = match delay {
        // Never is the only delay that cannot be waited for.
        Some(Setting { value: Limit::None, .. }) => None,
        Some(delay) => Some(delay.map(|delay| delay.at().unwrap_or(RESTART_DELAY))),
        None => Some(Setting::default(RESTART_DELAY)),
    };
    let steps = unit.last(&["Service"], &["RestartSteps"]);
    let longest = unit.last(&["Service"], &["RestartMaxDelaySec"]);
    growth(&mut entry, delay, steps, longest);
    start_limit(&mut entry, &unit, Setting::value_or(delay, RESTART_DELAY));
    vec![entry]
}

/// Reads `RestartSteps=` and `RestartMaxDelaySec=`, which have an effect only together.
fn growth(
    entry: &mut Entry,
    delay: Option<Setting<Duration>>,
    steps: Option<&Assignment<'_>>,
    longest: Option<&Assignment<'_>>,
) {
    let Some(delay) = delay else { return };
    let remarks = &mut entry.remarks;
    let number = count(steps, remarks).filter(|steps| steps.value > 0);
    let limit = length(longest, remarks)
        .and_then(|longest| Some(Setting { value: longest.value.at()?, origin: longest.origin }));
    match (number, limit) {
        (Some(number), Some(limit)) if limit.value > delay.value && !delay.value.is_zero() => {
            // A geometric sequence from the one to the other in so many steps.
            let ratio = limit.value.as_secs_f64() / delay.value.as_secs_f64();
            entry.settings.base = Some(delay);
            entry.settings.cap = Some(limit.map(Limit::At));
            entry.settings.multiplier =
                Some(Setting { value: ratio.powf(1.0 / f64::from(number.value)), origin: number.origin });
            entry.settings.jitter = Some(Setting::default(Jitter::None));
            return;
        }
        (Some(_), None) => {
            remarks.extend(steps.map(|found| {
                remark(found, RemarkKind::NoEffect, "has an effect only together with RestartMaxDelaySec=")
            }))
        }
        (None, Some(_)) => remarks.extend(longest.map(|found| {
            remark(found, RemarkKind::NoEffect, "has an effect only together with RestartSteps= above 0")
        })),
        _ => {}
    }
    entry.settings = core::mem::take(&mut entry.settings).constant(delay);
}

/// Determines how often a process that ends at once is started.
fn start_limit(entry: &mut Entry, unit: &Unit<'_>, delay: Duration) {
    let remarks = &mut entry.remarks;
    let sections = ["Unit", "Service"];
    let interval = unit.last(&sections, &["StartLimitIntervalSec", "StartLimitInterval"]);
    let burst = unit.last(&sections, &["StartLimitBurst"]);
    let stated = length(interval, remarks);
    let number = count(burst, remarks);
    let window = Setting::value_or(stated, Limit::At(START_LIMIT_INTERVAL));
    let starts = Setting::value_or(number, START_LIMIT_BURST);
    let origin = number.map(|number| number.origin).or(stated.map(|stated| stated.origin));
    let of = |value| Setting { value, origin: origin.unwrap_or(crate::entry::Origin::Default) };
    let (path, place) = match burst.or(interval) {
        Some(found) => (found.name.to_owned(), found.span),
        None => ("[Service] Restart".to_owned(), entry.span),
    };
    let note = |text: String| remarks.push(Remark { kind: RemarkKind::Note, path, span: place, text });
    // The k-th start of a process that ends at once comes after k - 1 delays; one more than the burst is refused within
    // the interval.
    let is_reached = match window {
        Limit::At(window) if window.is_zero() => false,
        Limit::At(window) => starts > 0 && delay.saturating_mul(starts) < window,
        Limit::None => starts > 0,
    };
    if starts == 0 || window == Limit::At(Duration::ZERO) {
        entry.settings.attempts = Some(of(Limit::None));
        note("no start limit: the process is started again for ever".to_owned());
    } else if is_reached {
        entry.settings.attempts = Some(of(Limit::At(starts)));
        note(format!("a process that ends at once is given up for good after {starts} starts"));
    } else {
        entry.settings.attempts = Some(of(Limit::None));
        note(format!(
            "the start limit is never reached: {starts} starts do not fall into its interval, because each waits"
        ));
    }
}

/// Returns whether a text is a unit: it has a section of one.
pub(crate) fn is_unit(text: &str) -> bool {
    const SECTIONS: [&str; 6] = ["Unit", "Service", "Install", "Socket", "Timer", "Mount"];
    assignments(text).iter().any(|found| SECTIONS.contains(&found.section))
}
