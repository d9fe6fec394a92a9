//! What a server claims of the rate of an admission, what the store replies, and the store's side of it, in Rust.

use std::collections::BTreeMap;

use crate::claim::{Report, Timing};

/// The whole rate: shares are millionths of it.
pub const WHOLE: u64 = 1_000_000;

/// What a report says about one admission. Lengths are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShareClaim {
    /// The share that the server uses until the reply, in millionths of the rate.
    pub held: u64,
    /// The weight of the server: its share is its part of the weights of all.
    pub weight: u64,
    /// The largest share that it may have, in millionths.
    pub most: u64,
    /// How far its reservations reach; `None` if the server leaves.
    pub line: Option<u64>,
}

/// The store's reply about one admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShareLease {
    /// The share from now on, in millionths of the rate; 0 if the server has left.
    pub share: u64,
    /// How far the reservations of the fleet reach, in microseconds.
    pub horizon: u64,
    /// The servers that have a share.
    pub processes: u64,
}

/// The longest line that a claim may have, in microseconds.
const LONGEST: i64 = 3_600_000_000;
/// Leases that one report collects at most.
const MOST: usize = 100;

/// The store's side of one admission: which server has which share of the rate.
///
/// The shares in force never exceed the whole: a share grows only into what the others have given back in a report of
/// their own, or what was not renewed for a lease and a quarter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shares {
    state: Option<State>,
    servers: BTreeMap<u64, Server>,
    /// When leases end.
    ends: BTreeMap<u64, i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    at: i64,
    settle: i64,
    horizon: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Server {
    share: u64,
    weight: u64,
    number: u64,
}

impl Shares {
    /// Returns what one more share may have, in millionths.
    #[must_use]
    pub fn free(&self) -> u64 {
        WHOLE.saturating_sub(self.servers.values().map(|server| server.share).sum())
    }

    /// Handles a report on this admission at `now`, in microseconds. Returns nothing if the report is old.
    pub fn report(
        &mut self,
        id: u64,
        report: &Report,
        claim: &ShareClaim,
        timing: &Timing,
        now: u64,
    ) -> Option<ShareLease> {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let (lease, settling) = (timing.lease as i64, timing.period as i64 * 5 / 4);
        if self.servers.get(&id).is_some_and(|server| server.number >= report.number) {
            // Connections are not ordered: this report was overtaken.
            return None;
        }
        if self.ends.is_empty() {
            *self = Self::default();
        }
        // What the servers hold is not known yet, or nobody has reported for a whole lease.
        let State { at, mut settle, mut horizon } =
            self.state.unwrap_or(State { at: now, settle: now + settling, horizon: now });
        if now - at > lease {
            settle = now + settling;
        }
        // After a step back.
        settle = settle.min(now + settling);
        horizon = horizon.min(now + LONGEST);
        let last_end = now + lease * 5 / 4;
        self.end_leases(last_end, now);
        // The others decide how much is free: what the server holds is in its claim.
        self.servers.remove(&id);
        self.ends.remove(&id);

        let mut share = 0;
        if let Some(line) = claim.line {
            let weights: u64 = self.servers.values().map(|server| server.weight).sum();
            let target = (WHOLE * claim.weight / (weights + claim.weight)).clamp(1, claim.most);
            share = if target <= claim.held {
                target
            } else if now < settle {
                claim.held
            } else {
                claim.held.max(target.min(self.free()))
            };
            // A share that shrinks is in force until the server reports the smaller one.
            let server = Server { share: share.max(claim.held), weight: claim.weight, number: report.number };
            self.servers.insert(id, server);
            self.ends.insert(id, last_end);
            horizon = horizon.max(now + (line as i64).min(LONGEST));
        }
        self.state = Some(State { at: now, settle, horizon });
        let horizon = (horizon - now).max(0) as u64;
        Some(ShareLease { share, horizon, processes: self.ends.len() as u64 })
    }

    /// Ends the leases that were not renewed, the earliest first, as the store's sorted set has them.
    fn end_leases(&mut self, last_end: i64, now: i64) {
        // After a step of the clock backwards, no lease is longer than a new one.
        self.ends.values_mut().for_each(|end| *end = (*end).min(last_end));
        let mut ended: Vec<_> = self.ends.iter().filter(|(_, end)| **end <= now).map(|(id, end)| (*end, *id)).collect();
        ended.sort_unstable();
        for (_, id) in ended.into_iter().take(MOST) {
            self.ends.remove(&id);
            self.servers.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::SECOND;

    #[test]
    fn a_share_grows_into_what_others_have_reported_to_hold_no_longer() {
        let mut shares = Shares::default();
        let mut numbers = [0; 3];
        let mut report = |id: usize, held, now: u64| {
            numbers[id] += 1;
            let report = Report { number: numbers[id], expected: None, resync: false };
            let claim = ShareClaim { held, weight: 1, most: WHOLE, line: Some(0) };
            shares.report(id as u64, &report, &claim, &Timing::DEFAULT, now).unwrap()
        };
        for (now, id, held, want) in [
            (0, 0, 0, 0),
            (1, 1, 0, 0),
            // Until all have had the time to report nothing is granted.
            (2, 0, 0, 500_000),
            (2, 1, 0, 500_000),
            (3, 2, 0, 0),
            // The smaller share is in force when the server has the reply.
            (3, 0, 500_000, 333_333),
            (3, 2, 0, 0),
            (4, 0, 333_333, 333_333),
            (4, 2, 0, 166_667),
            (4, 1, 500_000, 333_333),
            (5, 1, 333_333, 333_333),
            (5, 2, 166_667, 333_333),
            // The reply with it was lost.
            (6, 2, 166_667, 333_333),
        ] {
            assert_eq!(report(id, held, (100 + now) * SECOND).share, want, "server {id} at {now} s");
        }
    }

    #[test]
    fn weights_divide_the_rate_and_a_server_has_no_more_than_it_may() {
        let mut shares = Shares::default();
        let mut granted = [0; 3];
        for round in 1..5_u64 {
            for (id, (weight, most)) in [(1, WHOLE), (4, WHOLE), (5, 300_000)].into_iter().enumerate() {
                let report = Report { number: round, expected: None, resync: false };
                let claim = ShareClaim { held: granted[id], weight, most, line: Some(0) };
                let now = round * 2 * SECOND;
                granted[id] = shares.report(id as u64, &report, &claim, &Timing::DEFAULT, now).unwrap().share;
            }
        }
        assert_eq!(granted, [100_000, 400_000, 300_000]);
        let report = Report { number: 4, expected: None, resync: false };
        let claim = ShareClaim { held: 0, weight: 1, most: WHOLE, line: None };
        assert_eq!(shares.report(0, &report, &claim, &Timing::DEFAULT, 9 * SECOND), None, "the report is old");
    }
}
