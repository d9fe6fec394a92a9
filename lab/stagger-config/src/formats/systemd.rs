//! systemd units: `Restart=` and its start limit.
//!
//! Read in `load-fragment-gperf.gperf.in`, in `service.c`, and in systemd.service(5) and systemd.unit(5), version
//! 256. What systemd cannot read, it ignores, and the assignment before it goes on to apply.
//!
//! | field | default | 0, `infinity` | ignored | refused |
//! |---|---|---|---|---|
//! | `[Service] Restart` | `no` | | in other sections | `always`, `on-success` with `Type=oneshot` |
//! | `[Service] RestartSec` | 100 ms | 0: at once; `infinity`: never | in other sections; above `RestartMaxDelaySec` | |
//! | `[Service] RestartSteps` | 0 | 0: the delay does not grow | without `RestartMaxDelaySec` | |
//! | `[Service] RestartMaxDelaySec` | `infinity` | `infinity`: no growth | without `RestartSteps`, if it is the longer one | |
//! | `[Unit] StartLimitIntervalSec` | 10 s | 0: no limit; `infinity`: of all starts ever | in `[Service]` | |
//! | `[Unit]`, `[Service] StartLimitInterval` | the same, under its older name | | in other sections | |
//! | `[Unit]`, `[Service] StartLimitBurst` | 5 | 0: no limit | in other sections | |

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, Setting, Settings};
use crate::fields::{shortened, whole};
use crate::format::Format;
use crate::tree::placeholders::{self, Filled, Syntax};
use crate::tree::{Assignment, assignments};
use crate::units;

const RESTART_DELAY: Duration = Duration::from_millis(100);
const START_LIMIT_INTERVAL: Duration = Duration::from_secs(10);
const START_LIMIT_BURST: u32 = 5;

/// The settings that are read, and the sections in which systemd knows them; in others it ignores them. The names in
/// `[Service]` that begin with `StartLimit` are older ones, which it still takes, but not the newest.
const KNOWN: [(&str, &[&str]); 7] = [
    ("Restart", &["Service"]),
    ("RestartSec", &["Service"]),
    ("RestartSteps", &["Service"]),
    ("RestartMaxDelaySec", &["Service"]),
    ("StartLimitIntervalSec", &["Unit"]),
    ("StartLimitInterval", &["Unit", "Service"]),
    ("StartLimitBurst", &["Unit", "Service"]),
];

/// Sections of vendors, which systemd leaves alone.
const VENDOR: &str = "X-";

fn is_known(found: &Assignment<'_>) -> bool {
    KNOWN.iter().any(|(name, sections)| *name == found.name && sections.contains(&found.section))
}

/// Says where systemd would take a setting that it ignores.
fn ignored(found: &Assignment<'_>) -> Option<Remark> {
    if is_known(found) || found.section.starts_with(VENDOR) || found.section.is_empty() {
        return None;
    }
    let (_, sections) = KNOWN.iter().find(|(name, _)| *name == found.name)?;
    let text = format!("systemd ignores it in [{}]: it belongs into [{}]", found.section, sections[0]);
    Some(remark(found, RemarkKind::NoEffect, text))
}

struct Unit<'a> {
    assignments: Vec<Assignment<'a>>,
}

impl<'a> Unit<'a> {
    /// Returns the assignments of these names that systemd takes.
    fn of(&self, names: &[&str]) -> impl Iterator<Item = &Assignment<'a>> {
        self.assignments.iter().filter(move |found| names.contains(&found.name) && is_known(found))
    }

    fn last(&self, names: &[&str]) -> Option<&Assignment<'a>> {
        self.of(names).last()
    }

    /// Reads a setting: the last assignment counts whose value systemd accepts. It ignores others, empty ones as well,
    /// and goes on with the one before.
    fn read<T>(
        &self,
        names: &[&str],
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
        remarks: &mut Vec<Remark>,
    ) -> Found<T> {
        let mut last = Found::Absent;
        for found in self.of(names) {
            let value = match placeholders::filled(&found.value, Syntax::Shell) {
                Filled::Plain => found.value.clone(),
                Filled::Default(value) => {
                    let (kind, text) = placeholders::said(&found.value, true);
                    remarks.push(remark(found, kind, text));
                    value
                }
                Filled::Unknown => {
                    let (kind, text) = placeholders::said(&found.value, false);
                    remarks.push(remark(found, kind, text));
                    last = Found::Unknown(found.span);
                    continue;
                }
            };
            match parse(&value) {
                Some(value) => last = Found::Known(Setting::stated(value, found.span)),
                None if value.is_empty() => {}
                None => {
                    let text = format!("`{}` is not {wanted}: systemd ignores it", shortened(&value));
                    remarks.push(remark(found, RemarkKind::Invalid, text));
                }
            }
        }
        last
    }

    /// Reads a length of time; `infinity` is no limit.
    fn length(&self, names: &[&str], remarks: &mut Vec<Remark>) -> Found<Limit<Duration>> {
        let parse = |text: &str| match text {
            "infinity" => Some(Limit::None),
            text => units::systemd(text).map(Limit::At),
        };
        self.read(names, "a length of time, such as 5s", parse, remarks)
    }

    fn count(&self, names: &[&str], remarks: &mut Vec<Remark>) -> Found<u32> {
        self.read(names, "a whole number", whole, remarks)
    }
}

fn remark(found: &Assignment<'_>, kind: RemarkKind, text: impl Into<String>) -> Remark {
    Remark { kind, path: format!("[{}] {}", found.section, found.name), span: found.span, text: text.into() }
}

/// Returns whether a process is started again with this value of `Restart=`.
fn restarts(text: &str) -> Option<bool> {
    match text {
        "no" => Some(false),
        "always" | "on-success" | "on-failure" | "on-abnormal" | "on-abort" | "on-watchdog" => Some(true),
        _ => None,
    }
}

pub(crate) fn read(text: &str) -> Vec<Entry> {
    let unit = Unit { assignments: assignments(text) };
    let mut remarks: Vec<Remark> = unit.assignments.iter().filter_map(ignored).collect();
    let restart = unit.read(&["Restart"], "a value of Restart=", restarts, &mut remarks);
    if let Some(Setting { value: false, .. }) = restart.known() {
        return Vec::new();
    }
    // Without one, there is something to say only of what systemd ignores.
    let Some(place) = restart.span().or(remarks.first().map(|remark| remark.span)) else { return Vec::new() };
    let mut entry = Entry::new(Format::Systemd, EntryKind::Restart, "[Service]", place);
    entry.remarks = remarks;
    match restart.or(false) {
        None => {
            entry.settings.attempts = Some(Setting::stated(Limit::Unknown, place));
            return vec![entry];
        }
        Some(Setting { value: false, .. }) => {
            entry.settings.attempts = Some(Setting::default(Limit::At(1)));
            return vec![entry];
        }
        Some(_) => {}
    }
    refused(&unit, &mut entry.remarks);
    let remarks = &mut entry.remarks;
    let delay = unit.length(&["RestartSec"], remarks).flat_or(Limit::At(RESTART_DELAY));
    let steps = unit.count(&["RestartSteps"], remarks);
    let longest = unit.length(&["RestartMaxDelaySec"], remarks);
    let delay = match (delay.value, longest) {
        (Limit::Unknown, _) | (_, Found::Unknown(_)) => {
            entry.settings.attempts = Some(Setting { value: Limit::Unknown, ..delay.map(|_| Limit::Unknown) });
            return vec![entry];
        }
        (own, Found::Known(Setting { value: Limit::At(longest), origin }))
            if own.at().is_none_or(|own| own > longest) =>
        {
            let text = "RestartMaxDelaySec= is shorter, and systemd takes it in its place";
            remarks.extend(unit.last(&["RestartSec"]).map(|found| remark(found, RemarkKind::NoEffect, text)));
            Setting { value: longest, origin }
        }
        (Limit::At(length), _) => delay.map(|_| length),
        // It waits without end, which is no restart.
        (Limit::None, _) => {
            entry.settings.attempts = Some(delay.map(|_| Limit::At(1)));
            return vec![entry];
        }
    };
    if longest.span().is_some() && steps.is_unknown() {
        // Whether it grows is not known, and so is whether the limit is reached.
        entry.settings.base = Some(delay);
        entry.settings.attempts = Some(delay.map(|_| Limit::Unknown));
        return vec![entry];
    }
    growth(&mut entry, delay, &unit, steps, longest);
    start_limit(&mut entry, &unit, delay.value);
    vec![entry]
}

/// Says that systemd refuses a unit for what it starts again.
fn refused(unit: &Unit<'_>, remarks: &mut Vec<Remark>) {
    let is_type = |found: &&Assignment<'_>| found.section == "Service" && found.name == "Type";
    let Some(restart) = unit.last(&["Restart"]) else { return };
    if unit.assignments.iter().rfind(is_type).is_some_and(|found| found.value == "oneshot")
        && matches!(&*restart.value, "always" | "on-success")
    {
        let text = "systemd refuses a unit of Type=oneshot that is started again after success";
        remarks.push(remark(restart, RemarkKind::Invalid, text));
    }
}

/// Reads `RestartSteps=` and `RestartMaxDelaySec=`, which have an effect only together.
fn growth(
    entry: &mut Entry,
    delay: Setting<Duration>,
    unit: &Unit<'_>,
    steps: Found<u32>,
    longest: Found<Limit<Duration>>,
) {
    let remarks = &mut entry.remarks;
    let number = steps.known().filter(|steps| steps.value > 0);
    let limit =
        longest.known().and_then(|longest| Some(Setting { value: longest.value.at()?, origin: longest.origin }));
    let (steps, longest) = (unit.last(&["RestartSteps"]), unit.last(&["RestartMaxDelaySec"]));
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
        (None, Some(limit)) if limit.value > delay.value => remarks.extend(longest.map(|found| {
            remark(found, RemarkKind::NoEffect, "has an effect only together with RestartSteps= above 0")
        })),
        _ => {}
    }
    entry.settings = core::mem::take(&mut entry.settings).constant(delay);
}

/// Determines how often a process that ends at once is started.
fn start_limit(entry: &mut Entry, unit: &Unit<'_>, delay: Duration) {
    let remarks = &mut entry.remarks;
    let intervals = ["StartLimitIntervalSec", "StartLimitInterval"];
    let stated = unit.length(&intervals, remarks);
    let number = unit.count(&["StartLimitBurst"], remarks);
    if stated.is_unknown() || number.is_unknown() {
        let span = number.span().or(stated.span()).unwrap_or(entry.span);
        entry.settings.attempts = Some(Setting::stated(Limit::Unknown, span));
        return;
    }
    let (burst, interval) = (unit.last(&["StartLimitBurst"]), unit.last(&intervals));
    let (stated, number) = (stated.known(), number.known());
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
        Limit::At(window) => starts > 0 && waits(&entry.settings, delay, starts, window) < window,
        Limit::None | Limit::Unknown => starts > 0,
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

/// Returns how long so many delays are together, or that they are longer than a window.
fn waits(settings: &Settings, first: Duration, number: u32, window: Duration) -> Duration {
    let factor = Setting::value_or(settings.multiplier, 1.0);
    if factor <= 1.0 {
        return first.saturating_mul(number);
    }
    let longest = Setting::value_or(settings.cap, Limit::None).at().unwrap_or(Duration::MAX).as_secs_f64();
    let (mut sum, mut delay) = (0.0, first.as_secs_f64());
    for _ in 0..number {
        sum += delay;
        delay = (delay * factor).min(longest);
        if sum > window.as_secs_f64() {
            break;
        }
    }
    Duration::try_from_secs_f64(sum).unwrap_or(Duration::MAX)
}

/// Returns whether a text is a unit: it has a section of one.
pub(crate) fn is_unit(text: &str) -> bool {
    const SECTIONS: [&str; 6] = ["Unit", "Service", "Install", "Socket", "Timer", "Mount"];
    // The names of its settings begin with a capital, those of other files with such a section hardly ever.
    let is_setting = |found: &Assignment<'_>| {
        SECTIONS.contains(&found.section) && found.name.starts_with(|first: char| first.is_ascii_uppercase())
    };
    assignments(text).iter().any(is_setting)
}
