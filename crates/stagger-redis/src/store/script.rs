use redis::{Script, ScriptInvocation};

use crate::store::keys::Keys;
use stagger_lease::claim::{Claim, Lease, Reply, Report, Timing};

/// The store's side of the protocol. It is called by its digest, so two releases with different scripts run side by side.
pub(crate) const SOURCE: &str = include_str!("lease.lua");

/// How long a key outlives its last report, in milliseconds: one hour.
const TIME_TO_LIVE: u64 = 3_600_000;

/// Returns the call of `script` that reports on these targets.
pub(crate) fn invocation<'a>(
    script: &'a Script,
    id: u64,
    report: &Report,
    timing: &Timing,
    claims: &[(&Keys, Claim)],
) -> ScriptInvocation<'a> {
    let mut call = script.prepare_invoke();
    for (keys, _) in claims {
        for key in *keys {
            call.key(key);
        }
    }
    // All ids have one length, so that the store orders them as numbers.
    call.arg(format!("{id:016x}")).arg(report.number).arg(signed(report.expected));
    call.arg(u8::from(report.resync)).arg(timing.lease).arg(timing.period).arg(TIME_TO_LIVE);
    for (_, Claim { epoch, spent, earned, held, want, limits }) in claims {
        call.arg(*epoch).arg(*spent).arg(*earned).arg(*held).arg(signed(*want));
        call.arg(limits.capacity).arg(limits.refill).arg(limits.initial).arg(limits.cost);
    }
    call
}

/// Returns the number, or -1 for none.
fn signed(number: Option<u64>) -> i64 {
    number.map_or(-1, |number| i64::try_from(number).unwrap_or(i64::MAX))
}

/// Reads the reply to a report on so many targets; `None` if it is not one.
pub(crate) fn reply(values: &[i64], targets: usize) -> Option<Reply> {
    let (&[status, now], leases) = values.split_first_chunk::<2>()?;
    if status == 0 {
        return Some(Reply::Again);
    }
    let (leases, []) = leases.as_chunks::<4>() else { return None };
    if status != 1 || leases.len() != targets {
        return None;
    }
    let lease = |&[epoch, tokens, processes, left]: &[i64; 4]| {
        let number = |value: i64| u64::try_from(value).ok();
        let lease = Lease { epoch: number(epoch)?, tokens: number(tokens)?, processes: number(processes)?, left };
        Some((lease.epoch > 0).then_some(lease))
    };
    Some(Reply::Done { now: u64::try_from(now).ok()?, leases: leases.iter().map(lease).collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_is_not_of_the_script_is_rejected() {
        let lease = Lease { epoch: 7, tokens: 5, processes: 2, left: -3 };
        let done = |leases| Some(Reply::Done { now: 9, leases });
        for (values, targets, want) in [
            (&[0, 9][..], 1, Some(Reply::Again)),
            (&[1, 9], 0, done(vec![])),
            (&[1, 9, 7, 5, 2, -3], 1, done(vec![Some(lease)])),
            (&[1, 9, 0, 0, 0, 0, 7, 5, 2, -3], 2, done(vec![None, Some(lease)])),
            (&[], 0, None),
            (&[1], 0, None),
            (&[2, 9], 0, None),
            (&[1, 9], 1, None),
            (&[1, 9, 7, 5, 2], 1, None),
            (&[1, 9, 7, 5, 2, -3], 2, None),
            (&[1, 9, 7, -5, 2, -3], 1, None),
            (&[1, -9, 7, 5, 2, -3], 1, None),
        ] {
            assert_eq!(reply(values, targets), want, "{values:?}");
        }
    }
}
