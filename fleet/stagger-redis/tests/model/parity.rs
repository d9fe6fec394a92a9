use core::time::Duration;

use redis::{Connection, Script};
use stagger::Seed;
use stagger_kit::{Port, Program, Ready, Server, User};

use super::quiet::{self, Processes, StoredPause};
use crate::guards::pause::{Calls, PauseClaim};
use crate::keys::{Keys, window_keys};
use crate::script::{self, Exchange, Replies, Reply};
use stagger_lease::admission::shares::{ShareClaim, Shares, WHOLE};
use stagger_lease::bucket::Bucket;
use stagger_lease::claim::{self, Claim, Limits, Report, SECOND, Timing, WRAP};
use stagger_lease::window::claim::{Counts, SLOTS, WindowClaim, WindowLimits};
use stagger_lease::window::pool::Pool;

const LIMITS: Limits =
    Limits { capacity: 500_000_000, refill: 50_000_000, initial: 500_000_000, cost: 5_000_000, reward: 1_000_000 };

/// The script with a clock of the test, which comes as the last two arguments.
pub(super) fn script() -> Script {
    const CLOCK: &str = "redis.call('TIME')";
    assert_eq!(script::SOURCE.matches(CLOCK).count(), 1);
    Script::new(&script::SOURCE.replace(CLOCK, "{ARGV[#ARGV - 1], ARGV[#ARGV]}"))
}

/// Returns the reply to a report that is on token buckets alone.
fn only_leases(reply: claim::Reply) -> Reply {
    match reply {
        claim::Reply::Again => Reply::Again,
        claim::Reply::Done { now, leases } => done(now, Replies { leases, ..Replies::default() }),
    }
}

/// Returns a reply at `now`.
pub(super) fn done(now: u64, replies: Replies) -> Reply {
    Reply::Done(Box::new(Replies { now, ..replies }))
}

/// Returns a report on nothing.
pub(super) fn exchange(id: u64, report: &Report) -> Exchange<'_> {
    Exchange {
        id,
        report,
        timing: &Timing::DEFAULT,
        is_leaving: false,
        tokens: &[],
        windows: &[],
        pauses: &[],
        processes: "",
        breakers: &[],
        admissions: &[],
        controls: None,
    }
}

/// Draws numbers in sequence.
pub(super) struct Draws(pub(super) Seed, pub(super) u64);

impl Draws {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.1 += 1;
        self.0.draw(self.1) % n
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Starts a store, and returns a connection to it.
pub(super) fn store() -> (Server, Connection) {
    let (port, data) = (Port::reserve().unwrap(), User::current().directory().unwrap());
    let program = Program::find("redis-server").unwrap().directory(data.path());
    let program = program.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.number().to_string()]);
    let server = Server::start(program, Ready::Port(port.address()), Duration::from_secs(10)).unwrap();
    let connection = redis::Client::open(format!("redis://{}", port.address())).unwrap().get_connection().unwrap();
    (server, connection)
}

/// Returns what the script answers to a report at `now`.
pub(super) fn answer(script: &Script, exchange: &Exchange<'_>, now: u64, connection: &mut Connection) -> Option<Reply> {
    let mut call = script::invocation(script, exchange);
    let (values, texts): (Vec<i64>, Vec<Vec<u8>>) =
        call.arg(now / SECOND).arg(now % SECOND).invoke(connection).unwrap();
    script::reply(&values, exchange, texts)
}

/// Checks that a key expires an hour after the last report.
pub(super) fn assert_expires(key: &str, connection: &mut Connection) {
    let ttl: i64 = redis::cmd("PTTL").arg(key).query(connection).unwrap();
    assert!((3_500_000..=3_600_000).contains(&ttl), "{ttl}");
}

#[test]
fn the_script_does_what_its_model_does() {
    let (_server, mut connection) = store();
    let script = script();
    let (mut agains, mut stale, mut granted, mut debts) = (0, 0, 0, 0);
    for history in 0..60 {
        let mut draws = Draws(Seed::new(history), 0);
        let keys: Keys = ["tokens", "leases", "demand", "gone"].map(|kind| format!("{{{history}}}:{kind}"));
        let mut bucket = Bucket::default();
        let mut now = 1_700_000_000 * SECOND;
        // The largest numbers that the settings allow, in some histories.
        let scale = if draws.one_in(4) { 2_000_000 } else { 1 };
        let mut limits = Limits { capacity: LIMITS.capacity * scale, cost: LIMITS.cost * scale, ..LIMITS };
        let mut epoch = 0;
        let mut spent = [WRAP - 7_000_000; 5];
        let mut numbers = [0; 5];
        for step in 0..60 {
            now += match draws.below(30) {
                0 => 4 * SECOND + draws.below(10 * SECOND),
                1 => 700 * SECOND,
                _ => draws.below(SECOND / 2),
            };
            if draws.one_in(25) {
                now -= draws.below(20 * SECOND);
            }
            if draws.one_in(40) {
                bucket = Bucket::default();
                redis::cmd("DEL").arg(&keys).exec(&mut connection).unwrap();
            }
            if draws.one_in(40) {
                bucket.evict_leases();
                redis::cmd("DEL").arg(&keys[1]).exec(&mut connection).unwrap();
            }
            if draws.one_in(30) {
                limits.refill = [0, 277, 50_000_000, 1_000_000_000_000_000][draws.below(4) as usize];
                limits.initial = draws.below(limits.capacity + 1);
            }
            let id = draws.below(5) as usize;
            numbers[id] += if draws.one_in(15) { 0 } else { 1 };
            let used = draws.below(6) * 5_000_000;
            spent[id] = if draws.one_in(10) { spent[id].wrapping_sub(used) } else { spent[id] + used } % WRAP;
            let report = Report {
                number: numbers[id],
                expected: draws.one_in(3).then(|| now - SECOND * 6 / 5 + draws.below(SECOND * 12 / 5)),
                resync: draws.one_in(10),
            };
            let claim = Claim {
                epoch: if draws.one_in(10) { draws.below(3) } else { epoch },
                spent: spent[id],
                earned: draws.below(2) * 1_000_000 * step % WRAP,
                held: draws.below(12) * limits.cost,
                want: (!draws.one_in(20)).then(|| draws.below(40) * limits.cost / 2),
                limits,
            };
            let want = only_leases(bucket.report(id as u64, &report, &claim, &Timing::DEFAULT, now));
            let report_on = Exchange { tokens: &[(&keys, claim)], ..exchange(id as u64, &report) };
            let got = answer(&script, &report_on, now, &mut connection);
            assert_eq!(got.as_ref(), Some(&want), "history {history}, step {step}: {report:?} {claim:?}");
            match &want {
                Reply::Again => agains += 1,
                Reply::Done(replies) => match replies.leases[0] {
                    None => stale += 1,
                    Some(lease) => {
                        epoch = lease.epoch;
                        granted += u32::from(lease.tokens > claim.held);
                        debts += u32::from(lease.left < 0);
                    }
                },
            }
        }
        assert_expires(&keys[0], &mut connection);
    }
    // The histories reach what there is.
    let reached = [agains, stale, granted, debts];
    assert!(reached.iter().all(|times| *times > 50), "{reached:?}");
}

#[test]
fn the_script_pauses_as_its_model_does() {
    let (_server, mut connection) = store();
    let script = script();
    let (mut begun, mut probes, mut held, mut ended) = (0, 0, 0, 0);
    for history in 0..24 {
        let mut draws = Draws(Seed::new(1_000 + history), 0);
        let keys = ["quiet", "votes", "asked"].map(|kind| format!("{{{history}}}:{kind}"));
        let key = format!("{{{history}}}:processes");
        let (mut pause, mut processes) = (StoredPause::default(), Processes::default());
        let fleet = if draws.one_in(3) { 40 } else { 4 };
        let mut now = 1_700_000_000 * SECOND;
        for step in 0..120 {
            now += match draws.below(40) {
                0 => draws.below(40 * SECOND),
                _ => draws.below(SECOND / 2),
            };
            if draws.one_in(40) {
                now -= draws.below(20 * SECOND);
            }
            if draws.one_in(50) {
                pause = StoredPause::default();
                redis::cmd("DEL").arg(&keys).exec(&mut connection).unwrap();
            }
            let (id, is_leaving) = (draws.below(fleet), draws.one_in(30));
            let claim = PauseClaim {
                told: if draws.one_in(20) { draws.below(20 * SECOND) } else { 0 },
                decided: if draws.one_in(6) { draws.below(3 * SECOND) } else { 0 },
                longest: [10 * SECOND, 300 * SECOND][draws.below(2) as usize],
                calls: [Calls::Held, Calls::Probing, Calls::Starting][draws.below(3) as usize],
                is_wanted: draws.one_in(2),
            };
            let timing = Timing::DEFAULT;
            let count = processes.count(id, is_leaving, &timing, now as i64);
            let want = pause.report(id, &claim, (count, is_leaving), &timing, now as i64, quiet::Fault::None);
            let report = Report { number: step + 1, expected: None, resync: false };
            let report_on =
                Exchange { is_leaving, pauses: &[(&keys, claim)], processes: &key, ..exchange(id, &report) };
            let got = answer(&script, &report_on, now, &mut connection);
            let want_all = done(now, Replies { processes: count, pauses: vec![want], ..Replies::default() });
            assert_eq!(got, Some(want_all), "history {history}, step {step}: {id} {claim:?}");
            begun += u32::from(want.left > 0);
            probes += u32::from(want.left == 0 && want.wait == 0);
            held += u32::from(want.wait > want.left);
            let is_there: bool = redis::cmd("EXISTS").arg(&keys[0]).query(&mut connection).unwrap();
            ended += u32::from(!is_there);
        }
        assert_expires(&key, &mut connection);
    }
    let reached = [begun, probes, held, ended];
    assert!(reached.iter().all(|times| *times > 100), "{reached:?}");
}

#[test]
fn the_script_shares_an_admission_as_its_model_does() {
    let (_server, mut connection) = store();
    let script = script();
    let (mut stale, mut grown, mut shrunk, mut settling, mut left) = (0, 0, 0, 0, 0);
    for history in 0..24 {
        let mut draws = Draws(Seed::new(2_000 + history), 0);
        let keys = ["admission", "servers"].map(|kind| format!("{{{history}}}:{kind}"));
        let mut shares = Shares::default();
        let (mut held, mut numbers) = ([WHOLE / 4; 6], [0; 6]);
        let mut now = 1_700_000_000 * SECOND;
        for step in 0..120 {
            now += match draws.below(40) {
                0 => draws.below(10 * SECOND),
                _ => draws.below(SECOND / 2),
            };
            if draws.one_in(40) {
                now -= draws.below(20 * SECOND);
            }
            if draws.one_in(60) {
                shares = Shares::default();
                redis::cmd("DEL").arg(&keys).exec(&mut connection).unwrap();
            }
            let id = draws.below(6) as usize;
            numbers[id] += if draws.one_in(15) { 0 } else { 1 };
            let claim = ShareClaim {
                held: if draws.one_in(20) { 0 } else { held[id] },
                weight: [1, 1, 1, 7, 1_000_000][draws.below(5) as usize],
                most: [WHOLE, WHOLE, 100_000][draws.below(3) as usize],
                line: (!draws.one_in(20))
                    .then(|| [0, draws.below(300 * SECOND), u64::MAX >> 12][draws.below(3) as usize]),
            };
            let report = Report { number: numbers[id], expected: None, resync: false };
            let want = shares.report(id as u64, &report, &claim, &Timing::DEFAULT, now);
            let report_on = Exchange { admissions: &[(&keys, claim)], ..exchange(id as u64, &report) };
            let got = answer(&script, &report_on, now, &mut connection);
            let shares = vec![want];
            let all = done(now, Replies { shares, ..Replies::default() });
            assert_eq!(got, Some(all), "history {history}, step {step}: {id} {report:?} {claim:?}");
            let Some(lease) = want else {
                stale += 1;
                continue;
            };
            left += u32::from(claim.line.is_none());
            grown += u32::from(lease.share > claim.held);
            shrunk += u32::from(lease.share < claim.held);
            settling += u32::from(lease.share == claim.held);
            // Some replies are lost.
            if !draws.one_in(5) {
                held[id] = lease.share;
            }
        }
        assert_expires(&keys[0], &mut connection);
    }
    let reached = [stale, grown, shrunk, settling, left];
    assert!(reached.iter().all(|times| *times > 50), "{reached:?}");
}

#[test]
fn the_script_shares_a_window_as_its_model_does() {
    let (_server, mut connection) = store();
    let script = script();
    let (mut stale, mut granted, mut cut, mut debts, mut settling) = (0, 0, 0, 0, 0);
    for history in 0..40 {
        let mut draws = Draws(Seed::new(3_000 + history), 0);
        let ttl = [5, 10, 60][draws.below(3) as usize] * SECOND;
        let keys = window_keys("parity", &history.to_string(), ttl / 1_000);
        // The largest numbers that the settings allow, in some histories.
        let scale = if draws.one_in(4) { 1_000_000 } else { 1 };
        let mut limits = WindowLimits { ttl, ratio: 200_000, min_per_second: 2 };
        let mut pool = Pool::default();
        let (mut held, mut numbers) = ([0; 4], [0; 4]);
        let mut counts = [Counts::default(); 4];
        let mut now = 1_700_000_000 * SECOND;
        for step in 0..80 {
            now += match draws.below(30) {
                0 => 4 * SECOND + draws.below(10 * SECOND),
                1 => 700 * SECOND,
                _ => draws.below(SECOND / 2),
            };
            if draws.one_in(30) {
                let most = if draws.one_in(2) { SECOND } else { 20 * SECOND };
                now -= draws.below(most);
            }
            if draws.one_in(40) {
                pool = Pool::default();
                redis::cmd("DEL").arg(&keys).exec(&mut connection).unwrap();
            }
            if draws.one_in(40) {
                pool.evict_leases();
                redis::cmd("DEL").arg(&keys[1]).exec(&mut connection).unwrap();
            }
            if draws.one_in(30) {
                limits.ratio = [0, 1, 333_333, 1_000_000][draws.below(4) as usize];
                limits.min_per_second = [0, 10, 1_000_000][draws.below(3) as usize];
            }
            let id = draws.below(4) as usize;
            numbers[id] += if draws.one_in(15) { 0 } else { 1 };
            if draws.one_in(2) {
                counts[id].calls.rotate_right(1);
                counts[id].retries.rotate_right(1);
            }
            counts[id].calls[0] = draws.below(200) * scale;
            let slot = draws.below(SLOTS as u64) as usize;
            counts[id].retries[slot] = draws.below(30) * scale;
            let report = Report { number: numbers[id], expected: None, resync: false };
            let want = (!draws.one_in(20)).then(|| draws.below(80) * scale);
            let claim = WindowClaim {
                held: want.map_or(0, |_| draws.below(held[id] + 1)),
                want,
                age: draws.below(limits.slot_length()),
                counts: counts[id],
                limits,
            };
            let want = pool.report(id as u64, &report, &claim, &Timing::DEFAULT, now);
            let report_on = Exchange { windows: &[(&keys, claim)], ..exchange(id as u64, &report) };
            let got = answer(&script, &report_on, now, &mut connection);
            let windows = vec![want];
            let all = done(now, Replies { windows, ..Replies::default() });
            assert_eq!(got, Some(all), "history {history}, step {step}: {id} {report:?} {claim:?}");
            let Some(lease) = want else {
                stale += 1;
                continue;
            };
            granted += u32::from(lease.retries > claim.held);
            cut += u32::from(lease.retries < claim.held);
            debts += u32::from(lease.left < 0);
            settling += u32::from(lease.retries == claim.held && lease.left > 0);
            held[id] = lease.retries;
        }
        assert_expires(&keys[0], &mut connection);
    }
    // The histories reach what there is.
    let reached = [stale, granted, cut, debts, settling];
    assert!(reached.iter().all(|times| *times > 50), "{reached:?}");
}
