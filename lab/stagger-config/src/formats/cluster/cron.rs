//! The schedule of a Kubernetes `CronJob`, whose runs may overlap.
//!
//! Read on kubernetes.io: `CronJob`, and in robfig/cron, whose syntax Kubernetes has.

use core::time::Duration;

use stagger_core::text::Compact;

use super::object::Object;
use crate::entry::{Limit, Remark, RemarkKind, Settings};
use crate::fields::Fields;

/// Returns a remark if runs that fail begin faster than they end: if several may run at once, which is the default, and
/// the delays before the retries of one take longer than the schedule waits for the next.
pub(super) fn overlap(object: &Object<'_>, settings: &Settings) -> Option<Remark> {
    let mut fields = Fields::of(object.node.get("spec")?, format!("{} spec", object.path()));
    let policy = fields.take("concurrencyPolicy");
    let schedule = fields.take("schedule")?;
    if policy.as_ref().and_then(|field| field.text()).is_some_and(|text| text != "Allow") {
        return None;
    }
    let period = shortest(schedule.text()?)?;
    let delays = waits(settings)?;
    let deadline = settings.timeout.and_then(|timeout| timeout.value.at());
    let lasts = deadline.map_or(delays, |deadline| deadline.min(delays));
    (lasts > period).then(|| {
        let text = format!(
            "Allow lets runs overlap: one begins every {}, and one that fails is retried for {}, and longer by what its \
             attempts take",
            Compact(period),
            Compact(lasts)
        );
        policy.unwrap_or(schedule).remark(RemarkKind::Hazard, text)
    })
}

/// Returns how long the delays before all retries are together.
fn waits(settings: &Settings) -> Option<Duration> {
    let Limit::At(attempts) = settings.attempts?.value else { return Some(Duration::MAX) };
    let cap = settings.cap.and_then(|cap| cap.value.at()).unwrap_or(Duration::MAX);
    let mut delay = settings.base?.value.min(cap);
    let mut sum = Duration::ZERO;
    for retry in 1..attempts {
        if delay == cap {
            return Some(sum.saturating_add(cap.saturating_mul(attempts - retry)));
        }
        sum = sum.saturating_add(delay);
        delay = delay.saturating_mul(2).min(cap);
    }
    Some(sum)
}

/// Returns the shortest time between two runs of a schedule, if that is less than an hour.
fn shortest(schedule: &str) -> Option<Duration> {
    const HOUR: u32 = 60;
    let every = schedule.strip_prefix("@every ").and_then(crate::units::go);
    if every.is_some() {
        return every;
    }
    // The time zone may stand before the fields.
    let mut fields = schedule.split_whitespace().skip_while(|field| field.contains("TZ="));
    let minutes = fields.next()?;
    if fields.count() != 4 {
        return None;
    }
    let mut chosen = [false; HOUR as usize];
    for part in minutes.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step: u32 = step.map_or(Some(1), |step| step.parse().ok())?.max(1);
        let (first, last) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (0, HOUR - 1),
            Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
            // `5/10` is from the fifth minute on.
            None if part.contains('/') => (range.parse().ok()?, HOUR - 1),
            None => (range.parse().ok()?, range.parse().ok()?),
        };
        let minutes = (first..=last.min(HOUR - 1)).step_by(step as usize);
        minutes.filter_map(|minute| usize::try_from(minute).ok()).for_each(|minute| chosen[minute] = true);
    }
    let minutes: Vec<_> = (0_u64..).zip(chosen).filter(|(_, is_chosen)| *is_chosen).map(|(minute, _)| minute).collect();
    let gaps = minutes.windows(2).map(|pair| pair[1] - pair[0]);
    // The last of an hour and the first of the next.
    let around = minutes.last().zip(minutes.first()).map(|(last, first)| 60 - last + first);
    let least = gaps.chain(around.filter(|gap| *gap < 60)).min()?;
    Some(Duration::from_secs(60 * least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_between_two_runs_is_found() {
        for (schedule, minutes) in [
            ("* * * * *", Some(1)),
            ("*/5 * * * *", Some(5)),
            ("?/20 0 * * *", Some(20)),
            ("0,10,40 * * * *", Some(10)),
            ("5/25 * * * *", Some(10)),
            ("0-10/5,58 * * * *", Some(2)),
            ("CRON_TZ=UTC */7 1-3 * * 1", Some(4)),
            ("@every 90s", Some(1)),
            ("0 * * * *", None),
            ("@daily", None),
            ("61 * * * *", None),
            ("x * * * *", None),
            ("*/5 * * *", None),
        ] {
            let found = shortest(schedule).map(|length| length.as_secs() / 60);
            assert_eq!(found, minutes, "{schedule}");
        }
    }
}
