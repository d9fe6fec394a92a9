use stagger::Seed;
use stagger_lease::claim::{Report, SECOND, Timing};
use stagger_lease::window::claim::{Counts, SLOTS, WindowClaim, WindowLimits};
use stagger_lease::window::pool::Pool;

use super::parity::{Draws, answer, assert_expires, done, exchange, script, store};
use crate::store::keys::window_keys;
use crate::store::script::{Exchange, Replies};

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
