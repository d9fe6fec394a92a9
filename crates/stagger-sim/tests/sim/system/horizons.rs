//! Verdicts know the horizon: at every one, a run has the verdict of a long run, or none.

use core::mem::discriminant;
use core::time::Duration;

use stagger_core::budget::Tokens;
use stagger_core::{Policy, Ratio, Seed, policy};
use stagger_sim::outage::{ProcessGuards, Verdict};
use stagger_sim::system::{
    Arrivals, Cache, Edge, NestedCalls, Service, ServiceTimes, StaleWork, System, SystemBuilder, Trigger,
};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn ms(length: u64) -> Duration {
    Duration::from_millis(length)
}

/// A server of 100 requests per second, whose stall of ten seconds begins at 10 s.
fn server(rate: f64, service: Service, edge: Edge) -> SystemBuilder {
    System::builder(rate).service(service).edge(edge).trigger(Trigger::stall().at(secs(10)))
}

fn hundred(backlog: u32) -> Service {
    Service::new("server").service_time(ms(10)).backlog(backlog)
}

fn users() -> Edge {
    Edge::from_users("server")
}

fn budgeted(edge: Edge, tokens: u32) -> Edge {
    edge.guards(move |_| {
        let budget = Tokens::builder().capacity(tokens).cost(1).fractional_reward(Ratio::percent(10)).build();
        ProcessGuards::none().budget(budget.unwrap())
    })
}

fn attempts(count: u32) -> Policy {
    Policy::zero().max_attempts(count).build().unwrap()
}

fn chain(rate: f64, attempts: Policy, nested: NestedCalls) -> SystemBuilder {
    let service = |name: &str| Service::new(name).service_time(ms(2)).backlog(1_500);
    System::builder(rate)
        .service(service("gateway"))
        .service(service("orders"))
        .service(service("database"))
        .edge(Edge::from_users("gateway").policy(attempts))
        .edge(Edge::between("gateway", "orders").policy(attempts).nested(nested))
        .edge(Edge::between("orders", "database").policy(attempts).nested(nested))
        .trigger(Trigger::stall())
}

/// Systems of which the outcome is known, with whether they come back, and how long a run shows it.
fn systems() -> Vec<(&'static str, bool, u64, SystemBuilder)> {
    let none = Service::MAX_BACKLOG;
    let cold = |rate, keys| {
        let edge = Edge::from_users("server").cache(Cache::new(0.9, keys));
        let service = Service::new("server").service_time(ms(10)).backlog(1_000);
        System::builder(rate).service(service).edge(edge).trigger(Trigger::cold())
    };
    let held = Service::new("front").workers(4).service_time(ms(10)).backlog(2_000).hold_workers();
    let held = |rate, attempts: Policy| {
        System::builder(rate)
            .service(held.clone())
            .service(hundred(none))
            .edge(Edge::from_users("front").policy(attempts))
            .edge(Edge::between("front", "server"))
            .trigger(Trigger::stall().on("server"))
    };
    vec![
        ("a long queue that drains at 10/s", true, 2_000, server(90.0, hundred(none), users())),
        ("a long queue that drains at 5/s", true, 2_000, server(95.0, hundred(none), users())),
        ("a long queue that drains at 2/s", true, 3_000, server(98.0, hundred(none), users())),
        ("a queue that is full, and drains at 10/s", true, 2_000, server(90.0, hundred(800), users())),
        ("exponential service times", true, 3_000, {
            server(90.0, hundred(none).service_times(ServiceTimes::Exponential), users())
        }),
        ("a long stall", true, 3_000, {
            server(90.0, hundred(none), users()).without_triggers().trigger(Trigger::stall().lasting(secs(60)))
        }),
        ("one request per second", true, 6_000, {
            System::builder(1.0).service(Service::new("server")).edge(users()).trigger(Trigger::stall())
        }),
        ("two attempts below half of the capacity", true, 3_000, {
            server(48.0, hundred(1_000), users().policy(attempts(2)))
        }),
        ("two attempts above half of the capacity", false, 3_000, {
            server(52.0, hundred(1_000), users().policy(attempts(2)))
        }),
        ("three attempts", false, 2_000, server(60.0, hundred(600), users().policy(attempts(3)))),
        ("a budget of a tenth", true, 3_000, { server(88.0, hundred(600), budgeted(users().policy(attempts(3)), 10)) }),
        ("a budget that lasts for a minute", true, 3_000, {
            server(60.0, hundred(300), budgeted(users().policy(attempts(3)), 700))
        }),
        ("a budget that lasts for minutes", true, 3_000, {
            server(60.0, hundred(300), budgeted(users().policy(attempts(3)), 2_500))
        }),
        ("a cache that fills", true, 4_000, cold(130.0, 2_000)),
        ("a cache that does not fill", false, 4_000, cold(600.0, 10_000_000)),
        ("a slow backoff", false, 3_000, {
            let slow = Policy::exponential(secs(20), secs(120)).max_attempts(3).build().unwrap();
            server(60.0, hundred(1_000), users().policy(slow))
        }),
        ("three tiers that stand down", true, 2_000, chain(50.0, attempts(3), NestedCalls::StandDown)),
        ("three tiers that multiply", false, 2_000, chain(50.0, attempts(3), NestedCalls::Multiply)),
        ("three tiers with a low load", true, 2_000, chain(10.0, attempts(3), NestedCalls::Multiply)),
        ("three tiers at two thirds of the border", true, 2_000, chain(18.0, attempts(3), NestedCalls::Multiply)),
        ("work that is dropped when it has expired", false, 2_000, {
            let system = server(95.0, hundred(300).stale_work(StaleWork::DropExpired), users().policy(attempts(3)));
            system.without_triggers().trigger(Trigger::stall().at(secs(10)).lasting(secs(2)))
        }),
        ("workers that are held", true, 2_000, held(80.0, attempts(1))),
        ("workers that are held, and retries", false, 2_000, held(80.0, attempts(3))),
        ("more requests than the capacity", false, 2_000, server(120.0, hundred(none), users())),
        ("more requests than the capacity, and patience", false, 4_000, {
            server(105.0, hundred(none), users().timeout(secs(60))).without_triggers()
        }),
        ("requests at equal intervals", true, 2_000, server(95.0, hundred(none), users()).arrivals(Arrivals::Fixed)),
        ("an hour of patience", true, 3_000, server(90.0, hundred(none), users().timeout(secs(3_600)))),
    ]
}

/// The horizons as shares of the long run.
const SHARES: [f64; 11] = [0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.13, 0.21, 0.34, 0.55];

#[test]
fn no_verdict_is_wrong_at_any_horizon() {
    let seeds = std::env::var("STAGGER_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    let mut wrong = Vec::new();
    let mut decided = 0;
    for (name, comes_back, long, builder) in systems() {
        let long = secs(long);
        let system = builder.horizon(long).build().unwrap();
        for seed in (1..=seeds).map(Seed::new) {
            let want = system.run(seed).verdict();
            if want.is_up() != comes_back || want.is_down() == comes_back {
                wrong.push(format!("{name}, seed {}: after a long run, it {want}", seed.get()));
            }
            let end = system.fault().1;
            for share in SHARES {
                let horizon = end + (long - end).mul_f64(share);
                let Ok(short) = system.to_builder().horizon(horizon).build() else { continue };
                let got = short.run(seed).verdict();
                decided += u32::from(got != Verdict::NotDecided);
                if got != Verdict::NotDecided && discriminant(&got) != discriminant(&want) {
                    wrong.push(format!("{name}, seed {}, horizon {horizon:?}: {got}, but it {want}", seed.get()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A judge that never decides is never wrong.
    let all = systems().len() * SHARES.len() * seeds as usize;
    assert!(decided as usize > all / 3, "{decided} of {all} are decided");
}

/// Without a word about the horizon, a run is long enough for its windows, and one that recovers slowly goes on.
#[test]
fn a_run_goes_on_until_it_is_decided() {
    let slow = System::builder(1.0).service(Service::new("server")).edge(users()).trigger(Trigger::stall());
    let slow = slow.build().unwrap();
    assert_eq!(slow.horizon(), secs(630));
    for seed in (1..=8).map(Seed::new) {
        let figures = slow.run_until_decided(seed);
        assert!(figures.verdict().is_up(), "seed {}: {}", seed.get(), figures.verdict());
    }
    let draining = server(98.0, hundred(Service::MAX_BACKLOG), users()).arrivals(Arrivals::Fixed).horizon(secs(120));
    let draining = draining.build().unwrap();
    let figures = draining.run_until_decided(Seed::new(1));
    assert!(matches!(figures.verdict(), Verdict::Recovered { .. }), "{}", figures.verdict());
    assert_eq!(figures, draining.to_builder().horizon(figures.horizon).build().unwrap().run(Seed::new(1)));
    // At the limit it ends all the same, and says so.
    let endless = server(99.5, hundred(Service::MAX_BACKLOG), users()).arrivals(Arrivals::Fixed).horizon(secs(40));
    let figures = endless.build().unwrap().run_until_decided(Seed::new(1));
    assert_eq!((figures.verdict(), figures.horizon), (Verdict::NotDecided, secs(16 * 40)));
    assert!(!figures.is_metastable());
}

/// Three tiers survive 18/s and fall at 50/s, although the horizon of the file is shorter than six windows at 10/s.
#[test]
fn a_search_with_a_short_horizon_finds_the_border_of_a_long_one() {
    use stagger_sim::Progress;
    use stagger_sim::system::Search;

    let at = |rate| chain(rate, policy!(zero().max_attempts(3)), NestedCalls::Multiply).horizon(secs(60)).build();
    let search = Search::between(10.0, 50.0).intervals(4).precision(0.05).seeds(6);
    let found = search.run(at, &Progress::new()).unwrap().unwrap();
    assert_eq!(found.borders.len(), 1, "{found:?}");
    let half = found.borders[0].half;
    assert!(half.low < 27.9 && 27.9 < half.high && half.high < 32.0, "{half:?}");
}
