//! Published cells of a cache before a database of 300 requests per second that starts cold at 20 s.

use core::time::Duration;

use stagger_sim::system::{Arrivals, Cache, Edge, Service, StaleWork, System, Trigger};

use super::one_server::{at_once, budgeted};
use super::table::{Row, check};

const CELLS: [Row; 13] = [
    (121, "16 never fell", "-", "0.993 (5.8e-05)", "1", "1"),
    (123, "16 down", "-", "1.000 (5.9e-06)", "0.0049 (0.00011)", "0.000 (2.8e-05)"),
    (125, "16 down", "-", "1.000 (1e-06)", "0.0003 (1.2e-06)", "0.000 (6.3e-06)"),
    (127, "16 down", "-", "1.000 (5.3e-06)", "0.0050 (5.2e-06)", "0.000 (4.6e-05)"),
    (129, "16 down", "-", "0.762 (0.0021)", "0.2383 (0.0021)", "0.238 (0.0023)"),
    (131, "16 down", "-", "0.966 (0.00027)", "0.0348 (0.00028)", "0.035 (0.00047)"),
    (133, "8 never fell, 2 recovered, 6 down", "114.5 (74)", "0.705 (0.053)", "0.6281 (0.12)", "0.638 (0.12)"),
    (135, "16 down", "-", "2.896 (0.00082)", "0.0348 (0.00028)", "0.035 (0.00047)"),
    (137, "7 recovered, 9 relapsed", "295.3 (1.2)", "0.259 (0.00012)", "0.9120 (9.9e-05)", "1"),
    (139, "16 recovered", "29.9 (0.22)", "0.133 (0.00011)", "0.9824 (5.3e-05)", "1"),
    (141, "16 recovered", "384.7 (0.27)", "0.262 (0.0001)", "0.8159 (8.6e-05)", "1"),
    (143, "16 recovered", "3.4 (0.13)", "0.100 (9.5e-05)", "0.9978 (2.1e-05)", "1"),
    (145, "16 down", "-", "0.966 (0.00027)", "0.0348 (0.00028)", "0.035 (0.00047)"),
];
pub(super) fn system(cell: u32) -> System {
    let (keys, rate) = match cell {
        121 => (10_000_000, 295.0),
        123 | 127 => (10_000_000, 400.0),
        125 => (10_000_000, 2_500.0),
        129 => (1_000, 2_500.0),
        133 => (100_000, 320.0),
        137 | 141 => (100_000, 1_000.0),
        _ => (10_000, 1_000.0),
    };
    let service = Service::new("database").service_time(Duration::from_secs_f64(1.0 / 300.0)).backlog(3_000);
    let service = if matches!(cell, 137 | 139) { service.stale_work(StaleWork::DropHopeless) } else { service };
    let cache = Cache::new(0.9, keys);
    let edge = Edge::from_users("database").cache(if cell == 141 { cache.fill_from_late_answers() } else { cache });
    let edge = match cell {
        135 => edge.policy(at_once(3)),
        145 => budgeted(edge.policy(at_once(3))),
        _ => edge,
    };
    let trigger = if cell == 143 { Trigger::stall() } else { Trigger::cold() };
    let system = System::builder(rate).service(service).edge(edge).trigger(trigger);
    let system = system.arrivals(if cell == 127 { Arrivals::Fixed } else { Arrivals::Poisson });
    system.horizon(Duration::from_secs(if matches!(cell, 137 | 141) { 1_220 } else { 620 })).build().unwrap()
}

#[test]
fn caches_match_every_reference_cell() {
    check(&CELLS, 8, system);
}
