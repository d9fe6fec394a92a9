//! What one server decides about its clients.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use stagger_core::admission::{Admit, Reservation, ReservationToken};

use super::settings::AdmissionLimits;
use super::shares::{ShareClaim, ShareLease, WHOLE};

const SECOND: u64 = 1_000_000_000;

/// The time of the capacity that is kept for reservations in addition to the burst: a balancer does not divide clients
/// evenly.
const KEPT: u64 = SECOND;
/// How much earlier than its time a client is admitted: servers agree on the time up to a round trip to the store.
const EARLY: u64 = SECOND / 4;
/// How much later than its time a client is admitted.
const LATE: u64 = 10 * SECOND;
/// The lower bits of a position, which tell servers apart.
const SERVER: u64 = (1 << 10) - 1;
/// How many positions are remembered: 512 KiB.
const REMEMBERED: usize = 1 << 16;

/// The admission of one server: its part of a virtual queue that all servers share.
///
/// Capacity is a line of instants, in which each admission takes an interval; the interval is that of the rate times
/// the share. A client without a token is admitted if the line is at most the burst ahead of the time, and one that has
/// come at its reserved time if it is at most a second more ahead. So `share · (rate · (T + 1 s) + burst)` bounds all
/// admissions, whatever tokens are shown.
///
/// Reservations are another line. Any server honors those of any other: their times are of a clock that all servers
/// share.
///
/// Times are nanoseconds of the server's monotonic clock. `offset` is what to add for the time of the fleet.
/// Thread-safe and lock-free.
#[derive(Debug)]
pub struct Queue {
    limits: AdmissionLimits,
    /// The lower bits of the positions that this server reserves.
    server: u64,
    share: AtomicU64,
    is_leased: AtomicBool,
    /// The time of one admission: that of the rate, divided by the share.
    interval: AtomicU64,
    /// Up to when capacity is used.
    used: AtomicU64,
    /// The next time that this server reserves.
    line: AtomicU64,
    /// How far the reservations of all servers reach, by the last reply.
    horizon: AtomicU64,
    redeemed: Redeemed,
    admitted: AtomicU64,
    reserved: AtomicU64,
    deferred: AtomicU64,
}

/// What a queue has done since it was created, and its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// The share, in millionths of the rate.
    pub share: u64,
    /// Clients that were admitted.
    pub admitted: u64,
    /// Clients that were given a time to return.
    pub reserved: u64,
    /// Clients that came at their time, and for whom there was no capacity.
    pub deferred: u64,
    /// How long until the next time that would be reserved, in nanoseconds.
    pub next_in: u64,
}

impl Queue {
    /// Creates the queue of one of so many servers at `now`: it has that part of the rate until there is a lease, and
    /// begins without a burst. `server` is a number that tells it apart from the others.
    #[must_use]
    pub fn new(limits: AdmissionLimits, processes: u64, server: u64, now: u64) -> Self {
        let share = local_share(&limits, processes);
        let interval = interval(&limits, share);
        Self {
            limits,
            server: server & SERVER,
            share: AtomicU64::new(share),
            is_leased: AtomicBool::new(false),
            interval: AtomicU64::new(interval),
            used: AtomicU64::new(now.saturating_add(limits.burst.max(interval))),
            line: AtomicU64::new(0),
            horizon: AtomicU64::new(0),
            redeemed: Redeemed::new(),
            admitted: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            deferred: AtomicU64::new(0),
        }
    }

    /// Returns the limits that the queue was created with.
    #[must_use]
    pub const fn limits(&self) -> &AdmissionLimits {
        &self.limits
    }

    /// Admits a client without a token, or reserves a time for it.
    pub fn try_admit(&self, offset: i64, now: u64) -> Admit {
        if self.has_room(now) { Admit::Now } else { self.reserve(offset, now) }
    }

    /// Reserves a time for a client, which is never now.
    pub fn reserve(&self, offset: i64, now: u64) -> Admit {
        let interval = self.interval();
        // While more is used than the burst, time pays for that first.
        let paid = self.used.load(Ordering::Relaxed).saturating_sub(self.burst(interval));
        let from = now.saturating_add(interval).max(paid);
        let reserved = self.line.fetch_update(Ordering::AcqRel, Ordering::Acquire, |line| {
            let position = line.max(from);
            if position - now <= self.limits.max_wait { Some(position.saturating_add(interval)) } else { None }
        });
        let Ok(line) = reserved else { return Admit::Full(Duration::from_nanos(self.limits.max_wait)) };
        self.reserved.fetch_add(1, Ordering::Relaxed);
        let position = line.max(from);
        let token = self.limits.seal(moved(position, offset) & !SERVER | self.server);
        Admit::At(Reservation { after: Duration::from_nanos(position - now), token })
    }

    /// Admits a client with a token of any server, once. A client that is too early gets the time to wait, for the same
    /// reservation. If there is no capacity, it gets another reservation for this one. A token that is not valid counts
    /// as none, and gets no new reservation.
    pub fn admit_reserved(&self, token: &ReservationToken, offset: i64, now: u64) -> Admit {
        let at = |wait: u64| Admit::At(Reservation { after: Duration::from_nanos(wait), token: *token });
        let invalid = || {
            if self.has_room(now) {
                Admit::Now
            } else {
                Admit::Full(Duration::from_nanos(self.interval().min(self.limits.max_wait)))
            }
        };
        let Some(position) = self.limits.position(token) else { return invalid() };
        let due = moved(position, offset.saturating_neg());
        let wait = due.saturating_sub(now);
        if wait > EARLY {
            // A longer wait was never granted.
            return if wait <= self.limits.max_wait.saturating_add(EARLY) { at(wait) } else { invalid() };
        }
        if now > due.saturating_add(LATE) || !self.redeemed.claim(position) {
            return invalid();
        }
        let interval = self.interval();
        if self.take(interval, self.burst(interval).saturating_add(KEPT), now) {
            return Admit::Now;
        }
        // At the end of the line, so that it returns once more and not again and again.
        let answer = self.reserve(offset, now);
        if let Admit::At(_) = answer {
            self.deferred.fetch_add(1, Ordering::Relaxed);
        } else {
            self.redeemed.forget(position);
        }
        answer
    }

    /// Returns the claim for the next report.
    #[must_use]
    pub fn claim(&self, now: u64) -> ShareClaim {
        let line = self.line.load(Ordering::Acquire).saturating_sub(now) / 1_000;
        ShareClaim {
            held: self.share.load(Ordering::Acquire),
            weight: self.limits.weight,
            most: self.limits.most,
            line: Some(line),
        }
    }

    /// Takes over what the store replied. A share that grows begins behind the reservations of all servers, which fill
    /// the rate.
    pub fn on_lease(&self, lease: &ShareLease, now: u64) {
        let horizon = now.saturating_add(lease.horizon.saturating_mul(1_000).min(self.limits.max_wait));
        self.horizon.store(horizon, Ordering::Relaxed);
        let share = lease.share.clamp(1, self.limits.most);
        let was_leased = self.is_leased.swap(true, Ordering::Relaxed);
        if !was_leased || share > self.share.load(Ordering::Relaxed) {
            self.line.fetch_max(horizon, Ordering::AcqRel);
        }
        self.set_share(share, now);
    }

    /// Uses the part of the rate of one of so many servers, without the store.
    pub fn use_local_share(&self, processes: u64, now: u64) {
        self.is_leased.store(false, Ordering::Relaxed);
        self.set_share(local_share(&self.limits, processes), now);
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self, now: u64) -> QueueSnapshot {
        QueueSnapshot {
            share: self.share.load(Ordering::Relaxed),
            admitted: self.admitted.load(Ordering::Relaxed),
            reserved: self.reserved.load(Ordering::Relaxed),
            deferred: self.deferred.load(Ordering::Relaxed),
            next_in: self.line.load(Ordering::Relaxed).saturating_sub(now),
        }
    }

    fn set_share(&self, share: u64, now: u64) {
        let old = self.share.swap(share, Ordering::AcqRel);
        if old == share {
            return;
        }
        let interval = interval(&self.limits, share);
        if share > old {
            // What is left is a number of clients, and a length of time only by the share.
            let limit = now.saturating_add(self.burst(interval)).saturating_add(KEPT);
            let scaled = |used: u64| {
                let left = limit.saturating_sub(used.max(now));
                limit - u64::try_from(u128::from(left) * u128::from(old) / u128::from(share)).unwrap_or(left)
            };
            let _ = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| Some(scaled(used).max(used)));
        }
        self.interval.store(interval, Ordering::Release);
    }

    /// Takes the capacity of one admission for a client without a reservation.
    fn has_room(&self, now: u64) -> bool {
        let interval = self.interval();
        // While reservations are pending, capacity is theirs, unless nobody has come for the time of a burst.
        let last = self.line.load(Ordering::Acquire).max(self.horizon.load(Ordering::Relaxed));
        let ahead = if last > now { interval } else { self.burst(interval) };
        self.take(interval, ahead, now)
    }

    /// Takes the capacity of one admission if it is at most `ahead` of the time.
    fn take(&self, interval: u64, ahead: u64, now: u64) -> bool {
        let limit = now.saturating_add(ahead);
        let taken = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            let next = used.max(now).saturating_add(interval);
            if next <= limit { Some(next) } else { None }
        });
        if taken.is_ok() {
            self.admitted.fetch_add(1, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    /// Returns the time of the burst, which is at least one client.
    fn burst(&self, interval: u64) -> u64 {
        self.limits.burst.max(interval)
    }

    fn interval(&self) -> u64 {
        self.interval.load(Ordering::Acquire)
    }
}

/// The reserved positions that this server has redeemed lately: a table of fixed size, in which a newer one replaces an
/// older one.
struct Redeemed {
    entries: Box<[AtomicU64]>,
}

impl Redeemed {
    fn new() -> Self {
        Self { entries: (0..REMEMBERED).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Notes that a position is redeemed. Returns whether it was not before.
    fn claim(&self, position: u64) -> bool {
        self.entry(position).swap(position, Ordering::AcqRel) != position
    }

    /// Forgets a position that was not redeemed after all.
    fn forget(&self, position: u64) {
        // If it fails, another one has replaced it.
        let _ = self.entry(position).compare_exchange(position, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn entry(&self, position: u64) -> &AtomicU64 {
        // Fibonacci hashing: the upper bits depend on all of the lower ones.
        let hash = position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
        &self.entries[hash as usize % REMEMBERED]
    }
}

impl fmt::Debug for Redeemed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redeemed").finish_non_exhaustive()
    }
}

/// Returns the share of one of so many servers.
fn local_share(limits: &AdmissionLimits, processes: u64) -> u64 {
    (WHOLE / processes.max(1)).clamp(1, limits.most)
}

/// Returns the time of one admission with a share of the rate.
const fn interval(limits: &AdmissionLimits, share: u64) -> u64 {
    // Both factors are at most 1e15.
    (SECOND * WHOLE).div_ceil(limits.rate * share)
}

/// Returns a time by another clock.
const fn moved(time: u64, offset: i64) -> u64 {
    time.saturating_add_signed(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::settings::AdmissionSettings;
    use stagger_core::admission::Secret;

    const START: u64 = 100 * SECOND;
    const BEHIND: Duration = Duration::from_millis(1_490);

    fn queue(rate: u32, burst: u32, processes: u64) -> Queue {
        let settings = AdmissionSettings { burst: Some(burst), ..AdmissionSettings::new(rate, Secret::new([7; 16])) };
        Queue::new(settings.limits().unwrap(), processes, 3, START)
    }

    fn reservation(admit: Admit) -> Reservation {
        let Admit::At(reservation) = admit else { panic!("{admit:?}") };
        reservation
    }

    /// Returns how many clients without tokens are admitted at once.
    fn at_once(queue: &Queue, now: u64) -> usize {
        (0..1_000).take_while(|_| queue.try_admit(0, now) == Admit::Now).count()
    }

    #[test]
    fn a_server_admits_its_share_of_the_burst_and_then_of_the_rate() {
        let queue = queue(400, 40, 4);
        assert_eq!(at_once(&queue, START), 0, "it begins without a burst");
        let queue = self::queue(400, 40, 4);
        let now = START + SECOND;
        assert_eq!(at_once(&queue, now), 10);
        // The first reservation was given to the client that was rejected.
        let after: Vec<_> = (0..3).map(|_| reservation(queue.try_admit(0, now)).after.as_millis()).collect();
        assert_eq!(after, [20, 30, 40]);
    }

    #[test]
    fn a_reservation_is_honored_by_another_server_once_and_within_its_capacity() {
        let (one, other) = (queue(400, 4, 4), queue(400, 4, 4));
        let now = START + SECOND;
        let offset = 5_000 * SECOND as i64;
        let _ = at_once(&one, now);
        let held: Vec<_> = (0..200).map(|_| reservation(one.try_admit(offset, now)).token).collect();
        // The other server has another clock: what it adds for the time of the fleet is less by the difference.
        let (later, other_offset) = (now + 2 * SECOND, offset - 1_000 * SECOND as i64);
        let there = later + 1_000 * SECOND;
        let before = reservation(other.admit_reserved(&held[199], other_offset, there - SECOND));
        assert!((900..=1_100).contains(&before.after.as_millis()), "{before:?}");
        let shown = |queue: &Queue| {
            held[..150].iter().filter(|token| queue.admit_reserved(token, other_offset, there) == Admit::Now).count()
        };
        // A second of its share, and the burst of one.
        assert_eq!(shown(&other), 101, "what is kept for reservations and the burst");
        assert_eq!(shown(&other), 0);
        assert!(matches!(other.admit_reserved(&held[0], other_offset, there), Admit::Full(_)), "it was redeemed");
        // Behind the 49 before it, which come when the second is paid for.
        let deferred = reservation(other.admit_reserved(&held[199], other_offset, there));
        assert!(deferred.after <= BEHIND, "{deferred:?}");
        assert!(matches!(other.admit_reserved(&held[199], other_offset, there), Admit::Full(_)), "it was exchanged");
        assert_eq!(other.admit_reserved(&deferred.token, other_offset, there + 2 * SECOND), Admit::Now);
    }

    #[test]
    fn servers_of_adjacent_steps_of_a_change_of_the_secret_honor_each_other() {
        let [old, new] = [7, 9].map(|byte| Secret::new([byte; 16]));
        let steps = [(old, None), (old, Some(new)), (new, Some(old)), (new, None)];
        let queue = |(secret, accepted)| {
            let settings = AdmissionSettings { burst: Some(1), accepted, ..AdmissionSettings::new(100, secret) };
            Queue::new(settings.limits().unwrap(), 1, 3, START)
        };
        for (one, step) in steps.into_iter().enumerate() {
            for (other, there) in steps.into_iter().enumerate() {
                let (queue, there, now) = (queue(step), queue(there), START + SECOND);
                let _ = at_once(&queue, now);
                let Reservation { token, after } = reservation(queue.try_admit(0, now));
                let later = now + after.as_nanos() as u64;
                // Without room for clients that have no reservation.
                let _ = at_once(&there, later);
                let is_honored = there.admit_reserved(&token, 0, later) == Admit::Now;
                assert_eq!(is_honored, !matches!((one, other), (0 | 1, 3) | (2 | 3, 0)), "of step {one} in {other}");
            }
        }
    }

    #[test]
    fn a_token_of_another_secret_too_late_or_from_a_jumped_clock_reserves_nothing() {
        let queue = queue(100, 1, 1);
        let now = START + SECOND;
        let _ = at_once(&queue, now);
        let token = reservation(queue.try_admit(0, now)).token;
        let forged = ReservationToken::seal(now, Secret::new([8; 16]));
        let line = queue.snapshot(now).next_in;
        for (token, offset) in [(forged, 0), (token, 400 * SECOND as i64), (token, -400 * SECOND as i64)] {
            assert!(matches!(queue.admit_reserved(&token, offset, now), Admit::Full(_)), "{offset}");
        }
        assert_eq!(queue.snapshot(now).next_in, line);
        let late = now + 11 * SECOND;
        while queue.try_admit(0, late) == Admit::Now {}
        assert!(matches!(queue.admit_reserved(&token, 0, late), Admit::Full(_)));
    }

    #[test]
    fn clients_without_tokens_get_the_capacity_that_nobody_comes_for() {
        let queue = queue(100, 10, 1);
        let now = START + SECOND;
        assert_eq!(at_once(&queue, now), 10);
        for _ in 0..500 {
            let _ = queue.try_admit(0, now);
        }
        // While reservations are pending, the time of a burst passes before capacity counts as unused.
        let admitted = (1..=1_000_u64).filter(|ms| queue.try_admit(0, now + ms * 1_000_000) == Admit::Now).count();
        assert!((88..=91).contains(&admitted), "{admitted}");
    }

    #[test]
    fn a_share_that_grows_begins_behind_the_reservations_of_all_and_adds_no_burst() {
        let queue = queue(1_000, 100, 4);
        let now = START + 2 * SECOND;
        queue.on_lease(&ShareLease { share: WHOLE / 4, horizon: 0, processes: 4 }, now);
        assert_eq!(at_once(&queue, now), 25);
        queue.on_lease(&ShareLease { share: WHOLE / 2, horizon: 3_000_000, processes: 2 }, now);
        assert_eq!(at_once(&queue, now), 0);
        let after = reservation(queue.try_admit(0, now)).after;
        assert!(after >= Duration::from_secs(3), "{after:?}");
        let next = reservation(queue.try_admit(0, now)).after;
        assert_eq!(next - after, Duration::from_millis(2));
        // What is kept for reservations is as many clients as before.
        let seal = |n: u64| queue.limits.seal(now - SECOND + (n << 10));
        let redeemed = (0..600).filter(|n| queue.admit_reserved(&seal(*n), 0, now) == Admit::Now).count();
        assert!((248..=250).contains(&redeemed), "{redeemed}");
        let next = reservation(queue.try_admit(0, now)).after;
        // A share that shrinks goes on where it is.
        queue.on_lease(&ShareLease { share: WHOLE / 4, horizon: 9_000_000, processes: 4 }, now);
        assert_eq!(reservation(queue.try_admit(0, now)).after - next, Duration::from_millis(2));
    }

    #[test]
    fn a_queue_that_is_full_says_so() {
        let settings = AdmissionSettings {
            max_wait: Duration::from_secs(1),
            burst: Some(1),
            ..AdmissionSettings::new(10, Secret::new([7; 16]))
        };
        let queue = Queue::new(settings.limits().unwrap(), 1, 0, START);
        let answers: Vec<_> = (0..12).map(|_| queue.try_admit(0, START)).collect();
        assert_eq!(answers.iter().filter(|answer| matches!(answer, Admit::At(_))).count(), 10);
        assert_eq!(answers[11], Admit::Full(Duration::from_secs(1)));
    }

    #[test]
    fn no_number_overflows() {
        for (rate, processes) in [(1, u64::MAX), (1_000_000_000, 1), (1_000_000_000, u64::MAX)] {
            let queue = queue(rate, u32::MAX, processes);
            for now in [0, START, u64::MAX] {
                for offset in [i64::MIN, 0, i64::MAX] {
                    let answer = queue.try_admit(offset, now);
                    if let Admit::At(reservation) = answer {
                        let _ = queue.admit_reserved(&reservation.token, offset, now);
                    }
                    queue.on_lease(&ShareLease { share: u64::MAX, horizon: u64::MAX, processes: u64::MAX }, now);
                    queue.use_local_share(u64::MAX, now);
                    let _ = (queue.claim(now), queue.snapshot(now));
                }
            }
        }
    }

    #[test]
    fn a_position_is_redeemed_once_while_it_is_remembered() {
        let redeemed = Redeemed::new();
        assert!((1..=5_000_u64).all(|n| redeemed.claim(n * 2_000_000 + 7)));
        let again = (1..=5_000_u64).filter(|n| redeemed.claim(n * 2_000_000 + 7)).count();
        // A few have replaced each other.
        assert!(again < 500, "{again} of 5,000");
        redeemed.forget(2_000_007);
        assert!(redeemed.claim(2_000_007));
    }
}
