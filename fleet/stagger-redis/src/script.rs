use redis::{Script, ScriptInvocation};

use crate::controls::ControlsReply;
use crate::guards::breaker::Advice;
use crate::guards::pause::{PauseClaim, PauseReply};
use crate::keys::{AdmissionKeys, Keys, QuietKeys};
use stagger_lease::admission::shares::{ShareClaim, ShareLease};
use stagger_lease::claim::{Claim, Lease, Report, Timing};
use stagger_lease::window::claim::{WindowClaim, WindowLease};

/// The store's side of the protocol. It is called by its digest, so two releases with different scripts run side by
/// side.
pub(crate) const SOURCE: &str = concat!(
    include_str!("script/head.lua"),
    include_str!("script/lease.lua"),
    include_str!("script/tokens.lua"),
    include_str!("script/window.lua"),
    include_str!("script/quiet.lua"),
    include_str!("script/breaker.lua"),
    include_str!("script/admission.lua"),
    include_str!("script/controls.lua"),
    include_str!("script/reply.lua")
);

/// How long a key outlives its last report, in milliseconds: one hour.
const TIME_TO_LIVE: u64 = 3_600_000;

/// Everything that a process reports with one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange<'a> {
    /// The process.
    pub(crate) id: u64,
    pub(crate) report: &'a Report,
    pub(crate) timing: &'a Timing,
    /// Whether this is the last report of the process.
    pub(crate) is_leaving: bool,
    pub(crate) tokens: &'a [(&'a Keys, Claim)],
    pub(crate) windows: &'a [(&'a Keys, WindowClaim)],
    pub(crate) pauses: &'a [(&'a QuietKeys, PauseClaim)],
    /// The key of the processes of the namespace.
    pub(crate) processes: &'a str,
    /// The key of each breaker, and whether that of the process is open.
    pub(crate) breakers: &'a [(&'a str, bool)],
    pub(crate) admissions: &'a [(&'a AdmissionKeys, ShareClaim)],
    /// The key of the operator controls, and the version that the process has.
    pub(crate) controls: Option<(&'a str, u64)>,
}

/// The reply to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The store's clock is not what the process expects: report again.
    Again,
    /// What the store says about each guard.
    Done(Box<Replies>),
}

/// The store's time, and what it says about each guard; no lease if the report was old. All lists are in the order of
/// the claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replies {
    /// The store's time, in microseconds.
    pub(crate) now: u64,
    pub(crate) leases: Vec<Option<Lease>>,
    pub(crate) windows: Vec<Option<WindowLease>>,
    /// The processes of the namespace, if there is a quiet period or a breaker.
    pub(crate) processes: u64,
    pub(crate) pauses: Vec<PauseReply>,
    pub(crate) advice: Vec<Advice>,
    pub(crate) shares: Vec<Option<ShareLease>>,
    pub(crate) controls: Option<ControlsReply>,
}

impl Replies {
    /// Returns the size of the fleet that each lease names; `None` for one whose report was old.
    pub(crate) fn sizes(&self) -> Vec<Option<u64>> {
        let leases = self.leases.iter().map(|lease| lease.map(|lease| lease.processes));
        let windows = self.windows.iter().map(|lease| lease.map(|lease| lease.processes));
        let shares = self.shares.iter().map(|lease| lease.map(|lease| lease.processes));
        leases.chain(windows).chain(shares).collect()
    }

    /// Returns whether a later report has overtaken this one.
    pub(crate) fn is_old(&self) -> bool {
        let sizes = self.sizes();
        !sizes.is_empty() && sizes.iter().all(Option::is_none)
    }
}

/// Returns the call of `script` that makes a report.
pub(crate) fn invocation<'a>(script: &'a Script, exchange: &Exchange<'_>) -> ScriptInvocation<'a> {
    let Exchange { id, report, timing, is_leaving, processes, controls, .. } = *exchange;
    let Exchange { tokens, windows, pauses, breakers, admissions, .. } = *exchange;
    let mut call = script.prepare_invoke();
    for (keys, _) in tokens {
        call.key(*keys);
    }
    for (keys, _) in windows {
        call.key(*keys);
    }
    for (keys, _) in pauses {
        call.key(*keys);
    }
    if !pauses.is_empty() || !breakers.is_empty() {
        call.key(processes);
    }
    for (key, _) in breakers {
        call.key(*key);
    }
    for (keys, _) in admissions {
        call.key(*keys);
    }
    if let Some((key, _)) = controls {
        call.key(key);
    }
    // All ids have one length, so that the store orders them as numbers.
    call.arg(format!("{id:016x}")).arg(report.number).arg(signed(report.expected));
    call.arg(u8::from(report.resync)).arg(timing.lease).arg(timing.period).arg(TIME_TO_LIVE);
    call.arg(u8::from(is_leaving)).arg(tokens.len()).arg(windows.len()).arg(pauses.len());
    call.arg(breakers.len()).arg(admissions.len()).arg(u8::from(controls.is_some()));
    for (_, Claim { epoch, spent, earned, held, want, limits }) in tokens {
        call.arg(*epoch).arg(*spent).arg(*earned).arg(*held).arg(signed(*want));
        call.arg(limits.capacity).arg(limits.refill).arg(limits.initial).arg(limits.cost);
    }
    for (_, WindowClaim { held, want, age, counts, limits }) in windows {
        call.arg(*held).arg(signed(*want)).arg(limits.ratio).arg(limits.minimum()).arg(limits.slot_length()).arg(*age);
        call.arg(list(&counts.calls)).arg(list(&counts.retries));
    }
    for (_, PauseClaim { told, decided, longest, calls, is_wanted }) in pauses {
        call.arg(*told).arg(*decided).arg(*longest).arg(*calls as u8).arg(u8::from(*is_wanted));
    }
    for (_, is_open) in breakers {
        call.arg(u8::from(*is_open));
    }
    for (_, ShareClaim { held, weight, most, line }) in admissions {
        call.arg(*held).arg(*weight).arg(*most).arg(signed(*line));
    }
    if let Some((_, version)) = controls {
        call.arg(version);
    }
    call
}

/// Returns the number, or -1 for none.
fn signed(number: Option<u64>) -> i64 {
    number.map_or(-1, |number| i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns counts as a list, without the zeros at its end.
fn list(counts: &[u64]) -> String {
    let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    let texts: Vec<_> = counts.iter().take(last + 1).map(u64::to_string).collect();
    texts.join(",")
}

/// Reads the reply to a report; `None` if it is not one.
pub(crate) fn reply(values: &[i64], exchange: &Exchange<'_>, texts: Vec<Vec<u8>>) -> Option<Reply> {
    let (tokens, pauses, admissions) = (exchange.tokens.len(), exchange.pauses.len(), exchange.admissions.len());
    let breakers = exchange.breakers.len();
    let number = |value: i64| u64::try_from(value).ok();
    let (&[status, now], values) = values.split_first_chunk::<2>()?;
    if status == 0 {
        return Some(Reply::Again);
    }
    let (leases, values) = values.split_at_checked(tokens * 4)?;
    let (windows, values) = values.split_at_checked(exchange.windows.len() * 4)?;
    let (mut processes, mut values) = (0, values);
    if pauses + breakers > 0 {
        let (first, rest) = values.split_first()?;
        (processes, values) = (*first, rest);
    }
    let mut controls = None;
    if exchange.controls.is_some() {
        let (rest, &[version, age, left]) = values.split_last_chunk::<3>()?;
        values = rest;
        let mut texts = texts.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned());
        let news = texts.next().map(|text| (text, texts.next().unwrap_or_default()));
        controls = Some(ControlsReply { version: number(version)?, age: number(age)?, left: number(left), news });
    }
    let (replies, values) = values.split_at_checked(pauses * 2)?;
    let (advice, shares) = values.split_at_checked(breakers * 2)?;
    let ((leases, []), (windows, []), (replies, []), (advice, []), (shares, [])) = (
        leases.as_chunks::<4>(),
        windows.as_chunks::<4>(),
        replies.as_chunks::<2>(),
        advice.as_chunks::<2>(),
        shares.as_chunks::<3>(),
    ) else {
        return None;
    };
    if status != 1 || shares.len() != admissions {
        return None;
    }
    let lease = |&[epoch, tokens, processes, left]: &[i64; 4]| {
        let lease = Lease { epoch: number(epoch)?, tokens: number(tokens)?, processes: number(processes)?, left };
        // 0 says that the report was old.
        Some(if lease.epoch > 0 { Some(lease) } else { None })
    };
    let window = |&[retries, processes, allowed, left]: &[i64; 4]| {
        let (processes, allowed) = (number(processes)?, number(allowed)?);
        Some(number(retries).map(|retries| WindowLease { retries, processes, allowed, left }))
    };
    let pause = |&[left, wait]: &[i64; 2]| Some(PauseReply { left: number(left)?, wait: number(wait)? });
    let advise = |&[open, is_enough]: &[i64; 2]| Some(Advice { open: number(open)?, is_enough: is_enough == 1 });
    let share = |&[share, horizon, processes]: &[i64; 3]| {
        let (horizon, processes) = (number(horizon)?, number(processes)?);
        Some(number(share).map(|share| ShareLease { share, horizon, processes }))
    };
    let replies = Replies {
        now: number(now)?,
        leases: leases.iter().map(lease).collect::<Option<_>>()?,
        windows: windows.iter().map(window).collect::<Option<_>>()?,
        processes: number(processes)?,
        pauses: replies.iter().map(pause).collect::<Option<_>>()?,
        advice: advice.iter().map(advise).collect::<Option<_>>()?,
        shares: shares.iter().map(share).collect::<Option<_>>()?,
        controls,
    };
    Some(Reply::Done(Box::new(replies)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guards::pause::Calls;
    use stagger_lease::claim::Limits;
    use stagger_lease::window::claim::{Counts, WindowLimits};

    /// Calls `f` with an exchange on so many guards.
    fn with(
        [tokens, windows, pauses, breakers, admissions]: [usize; 5],
        controls: Option<(&str, u64)>,
        f: impl FnOnce(&Exchange<'_>),
    ) {
        let (keys, quiet_keys, admission_keys) = (Keys::default(), QuietKeys::default(), AdmissionKeys::default());
        let limits = Limits { capacity: 0, refill: 0, initial: 0, cost: 0, reward: 0 };
        let claim = Claim { epoch: 0, spent: 0, earned: 0, held: 0, want: None, limits };
        let window = WindowClaim {
            held: 0,
            want: None,
            age: 0,
            counts: Counts::default(),
            limits: WindowLimits { ttl: 0, ratio: 0, min_per_second: 0 },
        };
        let pause = PauseClaim { told: 0, decided: 0, longest: 0, calls: Calls::Held, is_wanted: false };
        let share = ShareClaim { held: 0, weight: 1, most: 0, line: None };
        f(&Exchange {
            id: 0,
            report: &Report { number: 1, expected: None, resync: false },
            timing: &Timing::DEFAULT,
            is_leaving: false,
            tokens: &vec![(&keys, claim); tokens],
            windows: &vec![(&keys, window); windows],
            pauses: &vec![(&quiet_keys, pause); pauses],
            processes: "",
            breakers: &vec![("open", false); breakers],
            admissions: &vec![(&admission_keys, share); admissions],
            controls,
        });
    }

    fn done(replies: Replies) -> Reply {
        Reply::Done(Box::new(Replies { now: 9, ..replies }))
    }

    #[test]
    fn controls_are_read_with_their_text_if_it_is_new() {
        let texts = || vec![b"*=off".to_vec(), b"why\xff".to_vec()];
        let news = Some(("*=off".to_owned(), "why\u{fffd}".to_owned()));
        for (values, texts, want) in [
            (&[1, 9, 0, 0, -1][..], vec![], Some(ControlsReply { version: 0, age: 0, left: None, news: None })),
            (&[1, 9, 7, 3, -1], texts(), Some(ControlsReply { version: 7, age: 3, left: None, news })),
            (&[1, 9, 7, 3, 0], vec![], Some(ControlsReply { version: 7, age: 3, left: Some(0), news: None })),
            (&[1, 9, 7, 3], vec![], None),
            (&[1, 9, -7, 3, 0], vec![], None),
        ] {
            let want = want.map(|controls| done(Replies { controls: Some(controls), ..Replies::default() }));
            with([0; 5], Some(("key", 1)), |exchange| assert_eq!(reply(values, exchange, texts), want, "{values:?}"));
        }
    }

    #[test]
    fn a_reply_that_is_not_of_the_script_is_rejected() {
        let lease = Lease { epoch: 7, tokens: 5, processes: 2, left: -3 };
        let all = |leases, processes, pauses, shares| {
            Some(done(Replies { leases, processes, pauses, shares, ..Replies::default() }))
        };
        let leased = |leases| all(leases, 0, vec![], vec![]);
        let pauses = || vec![PauseReply { left: 30, wait: 40 }];
        let paused = |leases| all(leases, 8, pauses(), vec![]);
        let share = Some(ShareLease { share: 500, horizon: 60, processes: 2 });
        for (values, tokens, pauses, want) in [
            (&[0, 9][..], 1, 0, Some(Reply::Again)),
            (&[1, 9], 0, 0, leased(vec![])),
            (&[1, 9, 7, 5, 2, -3], 1, 0, leased(vec![Some(lease)])),
            (&[1, 9, 0, 0, 0, 0, 7, 5, 2, -3], 2, 0, leased(vec![None, Some(lease)])),
            (&[1, 9, 8, 30, 40], 0, 1, paused(vec![])),
            (&[1, 9, 7, 5, 2, -3, 8, 30, 40], 1, 1, paused(vec![Some(lease)])),
            (&[], 0, 0, None),
            (&[1], 0, 0, None),
            (&[2, 9], 0, 0, None),
            (&[1, 9], 1, 0, None),
            (&[1, 9], 0, 1, None),
            (&[1, 9, 7, 5, 2], 1, 0, None),
            (&[1, 9, 7, 5, 2, -3], 2, 0, None),
            (&[1, 9, 7, 5, 2, -3], 0, 0, None),
            (&[1, 9, 7, -5, 2, -3], 1, 0, None),
            (&[1, -9, 7, 5, 2, -3], 1, 0, None),
            (&[1, 9, 8, 30], 0, 1, None),
            (&[1, 9, 8, -30, 40], 0, 1, None),
            (&[1, 9, 8, 30, 40, 50, 60], 0, 1, None),
        ] {
            with([tokens, 0, pauses, 0, 0], None, |exchange| {
                assert_eq!(reply(values, exchange, vec![]), want, "{values:?}")
            });
        }
        for (values, counts, want) in [
            (&[1, 9, 500, 60, 2][..], [0, 0, 0, 0, 1], all(vec![], 0, vec![], vec![share])),
            (&[1, 9, -1, 0, 0, 500, 60, 2], [0, 0, 0, 0, 2], all(vec![], 0, vec![], vec![None, share])),
            (
                &[1, 9, 7, 5, 2, -3, 8, 30, 40, 500, 60, 2],
                [1, 0, 1, 0, 1],
                all(vec![Some(lease)], 8, pauses(), vec![share]),
            ),
            (&[1, 9, 500, 60], [0, 0, 0, 0, 1], None),
            (&[1, 9, 500, 60, 2], [0, 0, 0, 0, 2], None),
            (&[1, 9, 500, 60, 2, 1], [0, 0, 0, 0, 1], None),
            (&[1, 9, 500, -60, 2], [0, 0, 0, 0, 1], None),
        ] {
            with(counts, None, |exchange| assert_eq!(reply(values, exchange, vec![]), want, "{values:?}"));
        }
    }

    #[test]
    fn windows_are_between_the_buckets_and_the_pauses_and_advice_after_these() {
        let lease = Lease { epoch: 7, tokens: 5, processes: 2, left: -3 };
        let window = WindowLease { retries: 6, processes: 2, allowed: 40, left: -1 };
        let all = |windows| {
            let pauses = vec![PauseReply { left: 30, wait: 40 }];
            let advice = vec![Advice { open: 3, is_enough: true }];
            done(Replies { leases: vec![Some(lease)], windows, processes: 8, pauses, advice, ..Replies::default() })
        };
        for (values, want) in [
            (&[1, 9, 7, 5, 2, -3, 6, 2, 40, -1, 8, 30, 40, 3, 1][..], Some(all(vec![Some(window)]))),
            (&[1, 9, 7, 5, 2, -3, -1, 0, 0, 0, 8, 30, 40, 3, 1], Some(all(vec![None]))),
            (&[1, 9, 7, 5, 2, -3, 6, 2, -40, -1, 8, 30, 40, 3, 1], None),
            (&[1, 9, 7, 5, 2, -3, 6, 2, 40, 8, 30, 40, 3, 1], None),
            (&[1, 9, 7, 5, 2, -3, 6, 2, 40, -1, 8, 30, 40, -3, 1], None),
        ] {
            with([1, 1, 1, 1, 0], None, |exchange| assert_eq!(reply(values, exchange, vec![]), want, "{values:?}"));
        }
    }

    #[test]
    fn lists_end_with_their_last_count() {
        for (counts, want) in [([0, 0, 0], "0"), ([0, 7, 0], "0,7"), ([1, 0, 3], "1,0,3")] {
            assert_eq!(list(&counts), want);
        }
    }
}
