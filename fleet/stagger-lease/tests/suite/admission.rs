//! Servers behind a balancer in virtual time: the queue and the protocol of each, the model of the store, and clients.

use std::collections::{BTreeMap, BinaryHeap};

use core::cmp::Reverse;

use stagger_core::Seed;
use stagger_core::admission::{Admit, ReservationToken, Secret};

use stagger_lease::admission::queue::Queue;
use stagger_lease::admission::settings::AdmissionSettings;
use stagger_lease::admission::shares::{Shares, WHOLE};
use stagger_lease::claim::{SECOND, Timing};
use stagger_lease::process::Process;

const RATE: u32 = 500;

/// How the balancer chooses a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Balancer {
    RoundRobin,
    Random,
}

struct Server {
    queue: Queue,
    process: Process,
    /// What its clock is ahead of that of the test, in microseconds.
    ahead: u64,
    /// What to add to its clock for the time of the fleet, in microseconds.
    offset: i64,
    /// When each client was admitted, in microseconds.
    admitted: Vec<u64>,
    is_alive: bool,
    /// Since when it has had leases.
    leased_since: Option<u64>,
}

impl Server {
    fn clock(&self, now: u64) -> u64 {
        (now + self.ahead) * 1_000
    }
}

/// A fleet. Times are microseconds.
struct Fleet {
    servers: Vec<Server>,
    shares: Shares,
    /// What the store's clock is ahead.
    store_ahead: u64,
    is_reachable: bool,
    /// Of so many requests, and of so many replies, one is lost.
    lost: u64,
    draws: u64,
    seed: Seed,
    rejected: usize,
}

impl Fleet {
    fn new(servers: u64, seed: u64) -> Self {
        let settings = AdmissionSettings::new(RATE, Secret::new([7; 16]));
        let server = |id: u64| {
            let ahead = 1_000 * SECOND * (id + 1);
            Server {
                queue: Queue::new(settings.limits().unwrap(), servers, id, ahead * 1_000),
                process: Process::new(Timing::DEFAULT, servers, ahead),
                ahead,
                // Before the first reply the clocks of the machines differ by up to 20 ms.
                offset: (5_000 * SECOND) as i64 - ahead as i64 + (id as i64 - 1) * 20_000,
                admitted: Vec::new(),
                is_alive: true,
                leased_since: None,
            }
        };
        Self {
            servers: (0..servers).map(server).collect(),
            shares: Shares::default(),
            store_ahead: 5_000 * SECOND,
            is_reachable: true,
            lost: u64::MAX,
            draws: 0,
            seed: Seed::new(seed),
            rejected: 0,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.draws += 1;
        self.seed.draw(self.draws) % n
    }

    /// Lets each server report if it is due.
    fn tick(&mut self, now: u64) {
        for id in 0..self.servers.len() {
            let [is_sent, is_answered] = [(); 2].map(|()| self.below(self.lost) > 0);
            let late = self.below(3_000);
            let server = &mut self.servers[id];
            let here = now + server.ahead;
            if !server.is_alive {
                continue;
            }
            let _ = server.process.tick(here);
            if server.process.is_local() {
                server.leased_since = None;
                server.queue.use_local_share(server.process.processes(), server.clock(now));
            }
            if !server.process.is_due(false, here) {
                continue;
            }
            if !self.is_reachable || !is_sent && here > server.ahead + SECOND {
                let _ = server.process.report(0, here);
                server.process.on_failure(SECOND / 2, here);
                continue;
            }
            let report = server.process.report(0, here);
            let claim = server.queue.claim(server.clock(now));
            let store = now + self.store_ahead;
            let lease = self.shares.report(id as u64, &report, &claim, &Timing::DEFAULT, store);
            if !is_answered {
                server.process.on_failure(SECOND / 4, here);
                continue;
            }
            let Some(lease) = lease else { continue };
            let _ = server.process.on_reply(store, lease.processes, here, here + late);
            server.offset = store as i64 - (here + late) as i64;
            let _ = server.leased_since.get_or_insert(now);
            server.queue.on_lease(&lease, server.clock(now));
        }
    }

    /// Returns the answer of a server to a client.
    fn ask(&mut self, id: usize, token: Option<&ReservationToken>, now: u64) -> Admit {
        let server = &mut self.servers[id];
        let (clock, offset) = (server.clock(now), server.offset * 1_000);
        let answer = token.map_or_else(
            || server.queue.try_admit(offset, clock),
            |token| server.queue.admit_reserved(token, offset, clock),
        );
        if answer == Admit::Now {
            server.admitted.push(now);
        }
        answer
    }

    /// Lets so many clients connect within 300 ms of `from`, and return up to 20 ms late. `each` is called every 10 ms.
    /// Returns how many attempts each made.
    fn herd(&mut self, clients: u64, balancer: Balancer, from: u64, mut each: impl FnMut(&mut Self, u64)) -> Vec<u32> {
        let mut attempts = vec![0; clients as usize];
        let mut tokens: BTreeMap<u64, ReservationToken> = BTreeMap::new();
        let mut arrivals: BinaryHeap<_> = (0..clients).map(|id| Reverse((from + self.below(300_000), id))).collect();
        let (mut tick, mut next) = (from, 0);
        while let Some(Reverse((now, client))) = arrivals.pop() {
            while tick <= now {
                self.tick(tick);
                each(self, tick);
                tick += 10_000;
            }
            attempts[client as usize] += 1;
            let alive: Vec<_> = (0..self.servers.len()).filter(|id| self.servers[*id].is_alive).collect();
            next += 1;
            let chosen = match balancer {
                Balancer::RoundRobin => next % alive.len(),
                Balancer::Random => self.below(alive.len() as u64) as usize,
            };
            let late = self.below(20_000);
            match self.ask(alive[chosen], tokens.get(&client), now) {
                Admit::Now => {}
                Admit::At(reservation) => {
                    tokens.insert(client, reservation.token);
                    arrivals.push(Reverse((now + reservation.after.as_micros() as u64 + late, client)));
                }
                answer => {
                    self.rejected += 1;
                    let Admit::Full(delay) = answer else { panic!("{answer:?}") };
                    tokens.remove(&client);
                    arrivals.push(Reverse((now + delay.as_micros() as u64 + late, client)));
                }
            }
        }
        attempts
    }

    fn warmed_up(servers: u64, seed: u64) -> Self {
        let mut fleet = Self::new(servers, seed);
        (0..1_000).for_each(|step| fleet.tick(step * 10_000));
        fleet
    }

    /// Returns the most admissions within a second.
    fn busiest(times: &[u64]) -> usize {
        let within = |first: usize| times[first..].partition_point(|at| *at < times[first] + SECOND);
        (0..times.len()).map(within).max().unwrap_or(0)
    }

    fn admitted(&self) -> Vec<u64> {
        let mut all: Vec<_> = self.servers.iter().flat_map(|server| server.admitted.iter().copied()).collect();
        all.sort_unstable();
        all
    }

    fn sum(&self, counts: impl Fn(&Server) -> bool) -> u64 {
        self.servers.iter().filter(|server| counts(server)).map(|server| server.queue.snapshot(0).share).sum()
    }

    /// Returns the sum of the shares in force.
    fn in_force(&self) -> u64 {
        self.sum(|server| server.is_alive)
    }

    /// Returns the sum of the shares that are not granted by the store, or that it has known of for less than a lease:
    /// until then the others may not have heard of them.
    fn local(&self, now: u64) -> u64 {
        let is_known = |server: &Server| server.leased_since.is_some_and(|since| now >= since + Timing::DEFAULT.lease);
        self.sum(|server| server.is_alive && !is_known(server))
    }
}

const FROM: u64 = 10 * SECOND;

#[test]
fn ten_thousand_clients_are_admitted_by_three_servers_at_their_second_attempt_in_n_over_c_seconds() {
    for balancer in [Balancer::RoundRobin, Balancer::Random] {
        let mut fleet = Fleet::warmed_up(3, 1);
        let attempts = fleet.herd(10_000, balancer, FROM, |_, _| {});
        assert!(attempts.iter().all(|attempts| *attempts <= 2), "{balancer:?}: {:?}", attempts.iter().max());
        let all = fleet.admitted();
        assert_eq!((all.len(), fleet.rejected), (10_000, 0));
        let last = (all[9_999] - FROM) as f64 / 1e6;
        // 10,000 at 500 a second are 20 s; a random balancer gives one server a few more.
        let limit = if balancer == Balancer::Random { 20.6 } else { 20.2 };
        assert!((19.5..=limit).contains(&last), "{balancer:?}: {last} s");
        // The burst, and the clients that 20 ms of delay move into the next second.
        let busiest = Fleet::busiest(&all);
        assert!(busiest <= 575, "{balancer:?}: {busiest} within a second");
        for server in &fleet.servers {
            let (count, busiest) = (server.admitted.len(), Fleet::busiest(&server.admitted));
            let most = if balancer == Balancer::Random { 240 } else { 195 };
            assert!(
                (3_200..=3_470).contains(&count) && busiest <= most,
                "{balancer:?}: {count}, {busiest} in a second"
            );
        }
    }
}

#[test]
fn tokens_that_are_replayed_at_every_server_take_capacity_and_add_none() {
    let mut fleet = Fleet::warmed_up(3, 2);
    let mut tokens = Vec::new();
    for id in 0..3 {
        while tokens.len() < 2_000 * (id + 1) {
            if let Admit::At(reservation) = fleet.ask(id, None, FROM) {
                tokens.push(reservation.token);
            }
        }
    }
    for step in 0..1_500 {
        let now = FROM + step * 10_000;
        fleet.tick(now);
        for id in 0..3 {
            for token in &tokens[(step as usize * 7 % 5_000)..][..100] {
                let _ = fleet.ask(id, Some(token), now);
            }
        }
    }
    let all = fleet.admitted();
    // In every window: the rate, the burst, and the second that is kept for reservations.
    for first in (0..all.len()).step_by(50) {
        for last in (first..all.len()).step_by(50) {
            let length = (all[last] - all[first]) as f64 / 1e6;
            let bound = 500.0 * (length + 1.0) + 50.0;
            assert!((last - first) as f64 <= bound, "{} in {length} s", last - first);
        }
    }
    assert!(all.len() > 5_000, "the replays reach the bound: {}", all.len());
}

#[test]
fn a_server_that_dies_in_a_herd_leaves_its_share_and_its_reservations_to_the_others() {
    let mut fleet = Fleet::warmed_up(3, 3);
    let attempts = fleet.herd(10_000, Balancer::RoundRobin, FROM, |fleet, now| {
        if now >= FROM + 5 * SECOND {
            fleet.servers[2].is_alive = false;
        }
    });
    let all = fleet.admitted();
    let last = (all[9_999] - FROM) as f64 / 1e6;
    // Until its lease has ended, a third of the clients return for nothing.
    assert!(last < 25.0, "{last} s");
    assert!(attempts.iter().all(|attempts| *attempts <= 4), "{:?}", attempts.iter().max());
    let more = attempts.iter().filter(|attempts| **attempts > 2).count();
    assert!(more < 900, "{more}");
    assert!(Fleet::busiest(&all) <= 700, "{}", Fleet::busiest(&all));
    assert!(fleet.in_force() > WHOLE - 10, "{}", fleet.in_force());
}

#[test]
fn without_the_store_each_server_admits_its_part_and_honors_the_reservations_of_all() {
    let mut fleet = Fleet::warmed_up(3, 4);
    let attempts = fleet.herd(5_000, Balancer::RoundRobin, FROM, |fleet, now| {
        fleet.is_reachable = now < FROM + SECOND;
    });
    assert!(attempts.iter().all(|attempts| *attempts <= 2), "{:?}", attempts.iter().max());
    let last = (fleet.admitted()[4_999] - FROM) as f64 / 1e6;
    assert!((9.5..=10.3).contains(&last), "{last} s");
    assert!(fleet.servers.iter().all(|server| server.process.is_local()));
    // Never a store: the clocks of the machines agree up to 20 ms.
    let mut fleet = Fleet::new(3, 5);
    fleet.is_reachable = false;
    let attempts = fleet.herd(3_000, Balancer::RoundRobin, FROM, |_, _| {});
    assert!(attempts.iter().all(|attempts| *attempts <= 2), "{:?}", attempts.iter().max());
}

#[test]
fn the_shares_in_force_never_exceed_the_rate_whatever_is_lost() {
    for seed in 0..200 {
        let mut fleet = Fleet::new(4, seed);
        // Messages are lost, or the store is away for all.
        let loses = seed % 2 == 0;
        if loses {
            fleet.lost = 2 + fleet.below(6);
        }
        // Each server begins with its part of the expected number, so the sum is the whole.
        for step in 0..6_000_u64 {
            let now = step * 10_000;
            fleet.tick(now);
            if fleet.below(500) == 0 {
                // A server hangs: it neither reports nor admits, and its lease may end.
                let id = fleet.below(4) as usize;
                let is_alive = fleet.servers[id].is_alive;
                // One that continues begins again with its part: what it had may have been given to others.
                if !is_alive {
                    continue;
                }
                fleet.servers[id].is_alive = fleet.servers.iter().filter(|server| server.is_alive).count() < 2;
            }
            // For five seconds.
            if step % 500 == 0 && !loses {
                fleet.is_reachable = fleet.below(6) > 0;
            }
            // A server whose messages are lost for the length of a lease uses its part, whatever the others have.
            let in_force = fleet.in_force() - if loses { fleet.local(now) } else { 0 };
            assert!(in_force <= WHOLE, "seed {seed}, {now}: {in_force}");
        }
        (fleet.lost, fleet.is_reachable) = (u64::MAX, true);
        (6_000..7_000).for_each(|step| fleet.tick(step * 10_000));
        assert!(fleet.in_force() > WHOLE - 10, "seed {seed}: {}", fleet.in_force());
    }
}

#[test]
fn a_server_that_joins_gets_its_share_within_two_periods() {
    let mut fleet = Fleet::warmed_up(4, 6);
    fleet.servers[3].is_alive = false;
    (1_000..1_600).for_each(|step| fleet.tick(step * 10_000));
    let shares = |fleet: &Fleet| fleet.servers.iter().map(|server| server.queue.snapshot(0).share).collect::<Vec<_>>();
    assert_eq!(shares(&fleet)[..3], [333_333; 3]);
    fleet.servers[3].is_alive = true;
    let settings = AdmissionSettings::new(RATE, Secret::new([7; 16]));
    fleet.servers[3].queue = Queue::new(settings.limits().unwrap(), 4, 3, fleet.servers[3].clock(16 * SECOND));
    (1_600..1_850).for_each(|step| fleet.tick(step * 10_000));
    assert_eq!(shares(&fleet), [250_000; 4]);
}
