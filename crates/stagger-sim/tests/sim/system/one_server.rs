//! Published cells of one server: 100 requests per second, a service time of 5 ms, a backlog of 600, three attempts
//! without a delay, and a stall of two seconds, where nothing else is said.

use core::time::Duration;

use stagger_core::budget::Tokens;
use stagger_core::{Jitter, Policy, Ratio};
use stagger_sim::outage::ProcessGuards;
use stagger_sim::system::{Arrivals, Edge, Service, ServiceTimes, StaleWork, System, Trigger};

use super::table::{Row, check};

const CELLS: [Row; 46] = [
    (1, "64 never fell", "-", "1.009 (0.00026)", "1", "1"),
    (3, "28 never fell, 36 recovered", "8.6 (3.6)", "1.069 (0.021)", "0.9721 (0.011)", "1"),
    (5, "2 recovered, 62 down", "0.2 (0.25)", "2.938 (0.043)", "0.0311 (0.022)", "0.031 (0.022)"),
    (7, "64 down", "-", "3", "0", "0"),
    (9, "64 never fell", "-", "1.002 (7.5e-05)", "1", "1"),
    (11, "27 never fell, 2 recovered, 35 down", "0.0", "2.096 (0.12)", "0.4535 (0.063)", "0.453 (0.063)"),
    (13, "64 down", "-", "3", "0", "0"),
    (15, "64 recovered", "0.2 (0.052)", "1", "0.9899 (0.00017)", "1"),
    (17, "64 down", "-", "5", "0", "0"),
    (19, "64 recovered", "3.4 (0.23)", "1.030 (0.0013)", "0.9752 (0.0013)", "1"),
    (21, "64 down", "-", "3.000 (8.1e-05)", "0.0001 (7.1e-05)", "0"),
    (23, "24 never fell, 6 recovered, 34 down", "0.0", "2.067 (0.12)", "0.4699 (0.063)", "0.469 (0.063)"),
    (25, "64 recovered", "0.5 (0.063)", "1.000 (8.3e-06)", "0.9894 (0.00017)", "1"),
    (27, "64 recovered", "10.2 (0.051)", "1.050 (5.8e-05)", "0.9411 (0.00037)", "1"),
    (29, "64 recovered", "14.3 (0.27)", "1.003 (3.1e-05)", "0.9206 (0.0014)", "1"),
    (31, "64 down", "-", "3", "0", "0"),
    (33, "16 never fell, 1 recovered, 47 down", "0.0", "2.469 (0.11)", "0.2667 (0.056)", "0.266 (0.056)"),
    (35, "1 never fell, 2 recovered, 61 down", "0.0", "2.906 (0.053)", "0.0473 (0.027)", "0.047 (0.027)"),
    (37, "45 never fell, 19 recovered", "0.6 (0.32)", "1.017 (0.0016)", "0.9977 (0.00076)", "1"),
    (39, "64 recovered", "0.0", "1.020 (0.00016)", "0.9902 (8.8e-05)", "1"),
    (41, "64 recovered", "0.9 (0.03)", "1.024 (0.00016)", "0.9905 (9.2e-05)", "1"),
    (43, "64 down", "-", "3", "0", "0"),
    (45, "1 never fell, 63 down", "-", "2.967 (0.031)", "0.0168 (0.016)", "0.016 (0.016)"),
    (47, "64 down", "-", "2.994 (6.3e-05)", "0.0032 (3.1e-05)", "0"),
    (49, "45 never fell, 1 recovered, 18 down", "0.0", "1.561 (0.11)", "0.7207 (0.056)", "0.719 (0.057)"),
    (51, "64 down", "-", "2.960 (0.00099)", "0.0198 (0.00049)", "0"),
    (53, "55 never fell, 9 down", "-", "1.255 (0.08)", "0.8725 (0.04)", "0.859 (0.044)"),
    (55, "31 never fell, 33 recovered", "0.0", "1", "0.9942 (0.001)", "1"),
    (57, "56 never fell, 1 recovered, 7 down", "1.0", "1.215 (0.076)", "0.8938 (0.038)", "0.891 (0.039)"),
    (59, "64 down", "-", "2.944 (0.00057)", "0.0281 (0.00028)", "0"),
    (61, "64 down", "-", "2.968 (0.00023)", "0.0162 (0.00013)", "0"),
    (63, "64 never fell", "-", "1", "1", "1"),
    (65, "64 never fell", "-", "1", "1", "1"),
    (67, "63 never fell, 1 down", "-", "1.032 (0.031)", "0.9845 (0.015)", "0.984 (0.016)"),
    (69, "64 never fell", "-", "1.003 (9.4e-05)", "1", "1"),
    (71, "5 never fell, 59 down", "-", "2.826 (0.067)", "0.0869 (0.034)", "0.078 (0.034)"),
    (73, "64 recovered", "0.0", "1.447 (0.0018)", "0.9506 (0.0002)", "1"),
    (75, "64 never fell", "-", "1.033 (0.0002)", "0.9997 (1.5e-05)", "1"),
    (77, "64 down", "-", "2.990 (0.00013)", "0.0048 (6.3e-05)", "0"),
    (79, "47 never fell, 17 recovered", "0.0", "1.009 (0.00039)", "0.9996 (8.6e-05)", "1"),
    (81, "64 down", "-", "2.992 (0.00049)", "0.0074 (0.00032)", "0.006 (0.0004)"),
    (83, "64 recovered", "3.2 (0.11)", "1.229 (0.0011)", "0.8930 (0.00053)", "1"),
    (85, "64 never fell", "-", "1.006 (9.7e-05)", "1.0000 (1.5e-06)", "1"),
    (87, "64 recovered", "0.2 (0.046)", "1.020 (0.00035)", "0.9969 (7.9e-05)", "1"),
    (89, "64 recovered", "0.0", "1.132 (0.00062)", "0.9504 (0.00029)", "1"),
    (217, "64 recovered", "0.0", "1.100 (0.00022)", "0.9500 (0.00011)", "1"),
];

const MS: Duration = Duration::from_millis(1);

/// What a cell sets.
struct Setting {
    rate: f64,
    arrivals: Arrivals,
    processes: u32,
    service: Service,
    edge: Edge,
    trigger: Trigger,
}

pub(super) fn at_once(attempts: u32) -> Policy {
    Policy::zero().max_attempts(attempts).build().unwrap()
}

/// Returns the guards of the published cells: 10 tokens, of which a retry costs one and a success puts back a tenth.
pub(super) fn budgeted(edge: Edge) -> Edge {
    edge.guards(|_| {
        let tokens = Tokens::builder().capacity(10).cost(1).fractional_reward(Ratio::percent(10));
        ProcessGuards::none().budget(tokens.build().unwrap())
    })
}

pub(super) fn system(cell: u32) -> System {
    let mut set = Setting {
        rate: 100.0,
        arrivals: Arrivals::Poisson,
        processes: 10,
        service: Service::new("server").service_time(5 * MS).backlog(600),
        edge: Edge::from_users("server").policy(at_once(3)),
        trigger: Trigger::stall().lasting(2_000 * MS),
    };
    match cell {
        1..=7 => set.rate = [40.0, 66.0, 80.0, 150.0][(cell / 2) as usize],
        9..=13 => set.trigger = set.trigger.lasting(MS * [1_200, 1_500, 1_800][(cell as usize - 9) / 2]),
        _ => set = changed(cell, set),
    }
    let system = System::builder(set.rate).arrivals(set.arrivals).processes(set.processes);
    let system = system.service(set.service).edge(set.edge).trigger(set.trigger);
    system.horizon(Duration::from_secs(220)).build().unwrap()
}

fn changed(cell: u32, set: Setting) -> Setting {
    let (mut rate, mut processes, mut arrivals) = (set.rate, set.processes, set.arrivals);
    let second = 1_000 * MS;
    let (service, edge, stall) = (set.service, set.edge, set.trigger);
    let spike = |factor, seconds| Trigger::spike(factor).lasting(seconds * second);
    let share = |share, seconds| Trigger::share(share).lasting(seconds * second);
    let (service, edge, trigger) = match cell {
        15 => (service, edge.policy(at_once(1)), stall),
        17 => (service, edge.policy(at_once(5)), stall),
        19 => {
            rate = 90.0;
            (service, edge.policy(at_once(2)), stall)
        }
        21 => {
            let full = Policy::exponential(second, 20 * second).max_attempts(3).build().unwrap();
            (service, edge.policy(full), stall)
        }
        23 => {
            let fixed = Policy::constant(second).jitter(Jitter::None).max_attempts(3).build().unwrap();
            (service, edge.policy(fixed), stall)
        }
        25..=29 => {
            processes = [1, 100, 10][(cell as usize - 25) / 2];
            rate = if cell == 29 { 180.0 } else { rate };
            (service, budgeted(edge), stall)
        }
        31 => {
            arrivals = Arrivals::Fixed;
            (service, edge, stall.lasting(1_500 * MS))
        }
        33 => (service.service_times(ServiceTimes::Exponential), edge, stall.lasting(1_500 * MS)),
        35 => (service.workers(16).service_time(80 * MS), edge, stall.lasting(1_500 * MS)),
        37 => {
            rate = 60.0;
            let service = service.workers(4).service_time(20 * MS).service_times(ServiceTimes::Exponential);
            (service, edge, stall)
        }
        39 => (service.backlog(100), edge, stall),
        41 => (service.backlog(205), edge, stall),
        43 => (service.backlog(300), edge, stall),
        45 => (service, edge, share(0.1, 2)),
        47 => (service, edge, share(0.2, 3)),
        49 => (service, edge, share(0.3, 3)),
        51 => (service, edge, share(0.4, 10)),
        53 => (service, edge, share(0.5, 30)),
        55 => (service, edge.policy(at_once(1)), share(0.45, 10)),
        57 => (service, edge, spike(3.0, 2)),
        59 => (service, edge, spike(3.0, 5)),
        61 => (service, edge, spike(5.0, 1)),
        63 => {
            rate = 60.0;
            (service, edge, spike(3.0, 5))
        }
        65 => (service, edge, Trigger::slow_from_start(2.0).lasting(10 * second)),
        67 => (service, edge, Trigger::slow_from_start(3.0).lasting(3 * second)),
        69 => (service, edge, Trigger::slow_from_start(10.0).lasting(1_500 * MS)),
        71 => (service, edge, Trigger::slow_from_arrival(3.0).lasting(3 * second)),
        73 => (service, edge.policy(at_once(10)), Trigger::reject().lasting(10 * second)),
        75 => (service, edge, Trigger::error(0.1).lasting(60 * second)),
        77 => (service.workers(4).service_time(20 * MS), edge, Trigger::workers(1).lasting(5 * second)),
        79 | 81 | 217 => {
            rate = if cell == 79 { rate } else { 190.0 };
            let stall = stall.lasting(second * if cell == 217 { 10 } else { 2 });
            (service.stale_work(StaleWork::DropExpired), edge, stall)
        }
        83 => (service.stale_work(StaleWork::DropExpired), edge, spike(5.0, 5)),
        85 | 87 => {
            rate = if cell == 85 { rate } else { 190.0 };
            (service.stale_work(StaleWork::DropHopeless), edge, stall)
        }
        89 => (service.stale_work(StaleWork::DropHopeless), edge, spike(5.0, 5)),
        _ => panic!("no cell {cell}"),
    };
    Setting { rate, arrivals, processes, service, edge, trigger }
}

#[test]
fn one_server_matches_every_reference_cell() {
    check(&CELLS, 16, system);
}
