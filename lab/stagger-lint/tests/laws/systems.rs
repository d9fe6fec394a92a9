//! Systems of services: verdicts agree with what is served in the end, loop gains with whether a stall is survived, and
//! `check` with whether a system serves its requests at all.

use core::time::Duration;

use stagger::budget::Tokens;
use stagger::{Policy, Ratio, Seed};
use stagger_lint::system::check as check_system;
use stagger_sim::outage::ProcessGuards;
use stagger_sim::outage::Verdict::{NeverFell, NotDecided};
use stagger_sim::system::{
    CallOrder, Edge, NestedCalls, Service, ServiceTimes, StaleWork, System, SystemError, SystemFigures, SystemFile,
    Trigger,
};

use super::draws::Draws;
use super::law::{Law, Verdict};

pub(crate) const VERDICTS: Law = Law {
    name: "verdicts",
    statement: "a system that serves its requests in the end is said to be up, and one that does not is said to be \
                down",
    share: 60,
    case: verdict,
};

pub(crate) const GAINS: Law = Law {
    name: "gains",
    statement: "a stall is survived if every loop gain is well below 1, and not if that of the stalled service is well \
                above",
    share: 30,
    case: gain,
};

pub(crate) const SILENT: Law = Law {
    name: "silent_systems",
    statement: "a system about which `check` says nothing is up when all is well",
    share: 100,
    case: |seed| silent(seed, false),
};

pub(crate) const STALLED: Law = Law {
    name: "stalled_systems",
    statement: "a system about which `check` says nothing, and which never falls when all is well, survives a stall",
    share: 100,
    case: |seed| silent(seed, true),
};

const STALL: Duration = Duration::from_secs(10);
const START: Duration = Duration::from_secs(10);

/// Draws a chain of one to three services, whose last one stalls.
fn draw(draws: &mut Draws, stale: &[StaleWork]) -> Result<System, SystemError> {
    let tiers = draws.one_of(&[1, 1, 2, 2, 3]).unwrap_or(1);
    let name = |tier: usize| format!("tier {tier}");
    let mut system = System::builder(1.0);
    for tier in 0..tiers {
        let (workers, capacity) = (draws.one_of(&[1, 1, 4]).unwrap_or(1), draws.between(50.0, 200.0));
        let seconds = f64::from(workers) / capacity;
        // Without a bound, much longer than the time limits, and shorter: between them, some answers are in time.
        let backlog = draws.one_of(&[Service::MAX_BACKLOG, (4.0 * capacity) as u32, (0.25 * capacity) as u32]);
        let stale = draws.one_of(stale);
        let times = draws.one_of(&[ServiceTimes::Fixed, ServiceTimes::Exponential]);
        let service = Service::new(name(tier)).workers(workers).service_time(Duration::from_secs_f64(seconds));
        let service = service.backlog(backlog.unwrap_or(1_000)).stale_work(stale.unwrap_or_default());
        system = system.service(service.service_times(times.unwrap_or_default()));
        let edge = if tier == 0 { Edge::from_users(name(0)) } else { Edge::between(name(tier - 1), name(tier)) };
        let attempts = draws.one_of(&[1, 2, 3, 4]).unwrap_or(1);
        let policy = if draws.is(0.7) {
            Policy::zero().max_attempts(attempts).build()
        } else {
            Policy::exponential(draws.duration(0.05, 1.0), Duration::from_secs(2)).max_attempts(attempts).build()
        };
        let nested = draws.one_of(&[NestedCalls::Multiply, NestedCalls::StandDown, NestedCalls::FirstOnly]);
        let edge = edge.policy(policy.unwrap_or(Policy::DEFAULT)).timeout(draws.duration(0.4, 2.0));
        let edge = edge.nested(nested.unwrap_or_default());
        let edge = if tier > 0 && draws.is(0.3) { edge.calls(2) } else { edge };
        let edge = if draws.is(0.5) { edge.order(CallOrder::Parallel) } else { edge };
        system = system.edge(if draws.is(0.2) { budgeted(edge) } else { edge });
    }
    // The load is set by the gain, as far as all services can serve it when all is well.
    let gains = system.clone().build()?.loop_gains();
    let wanted = draws.between(0.3, 3.0);
    let healthy = (0..tiers).map(|tier| 2_f64.powi(tier as i32)).zip(system.clone().build()?.services().to_vec());
    let most = healthy.map(|(calls, service)| 0.8 * service.capacity() / calls).fold(f64::INFINITY, f64::min);
    let rate = gains.last().map_or(1.0, |gain| wanted / gain.gain).min(most);
    let system = system.rate(rate).trigger(Trigger::stall().at(START).lasting(STALL));
    // A window has a hundred expected requests.
    let windows = Duration::from_secs_f64(20.0 * (100.0 / rate).max(1.0));
    system.horizon(START + STALL + Duration::from_secs(120) + windows).build()
}

/// Gives an edge the budgets of a tenth: ten tokens for each process.
fn budgeted(edge: Edge) -> Edge {
    edge.guards(|_| {
        let tokens = Tokens::builder().capacity(10).cost(1).fractional_reward(Ratio::percent(10)).build();
        tokens.map_or(ProcessGuards::none(), |tokens| ProcessGuards::none().budget(tokens))
    })
}

/// Returns the requests that were served in the last windows before the horizon, by the time at which they were, as a
/// share of those that arrived in that time: another count than that of the verdict.
fn served_at_the_end(figures: &SystemFigures, windows: u32) -> f64 {
    let bins = (figures.window().as_millis() / 100) as usize * windows as usize;
    let end = (figures.horizon.as_millis() / 100) as usize;
    let sum =
        |counts: &[u32]| counts.iter().take(end).skip(end.saturating_sub(bins)).map(|&n| f64::from(n)).sum::<f64>();
    sum(figures.goodput.counts()) / sum(figures.requests.counts()).max(1.0)
}

fn verdict(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    let stale = [StaleWork::Done, StaleWork::Done, StaleWork::DropExpired, StaleWork::DropHopeless];
    let Ok(system) = draw(&mut draws, &stale) else { return Verdict::Silent("not a valid system") };
    let figures = system.run(draws.seed());
    if figures.verdict() == NotDecided {
        return Verdict::Silent("not decided at the horizon");
    }
    let (late, last) = (served_at_the_end(&figures, 10), served_at_the_end(&figures, 5));
    let broken = |what: &str| {
        Verdict::Broken(format!("{what}: {late:.3} and {last:.3} are served at the end, {:?}", figures.verdict()))
    };
    // A queue that is worked off serves more requests than arrive.
    match figures.is_metastable() {
        true if (0.99..1.01).contains(&late) && (0.99..1.01).contains(&last) => broken("healthy, and said to be down"),
        false if last < 0.5 => broken("collapsed, and said to be up"),
        true if last < 0.5 => Verdict::Held("down"),
        false if late > 0.9 => Verdict::Held("up"),
        _ => Verdict::Silent("partly served, or changing at the horizon"),
    }
}

/// Up to this gain a stall is survived, and from this gain it is not.
const SURVIVED: f64 = 0.6;
const SUSTAINED: f64 = 1.4;
const RUNS: usize = 3;

fn gain(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    // A service that drops stale work may be swept clean by a long stall, whatever its gain is.
    let drops = draws.is(0.5);
    let stale = [StaleWork::DropExpired, StaleWork::DropHopeless, StaleWork::Done];
    let Ok(system) = draw(&mut draws, if drops { &stale } else { &stale[2..] }) else {
        return Verdict::Silent("not a valid system");
    };
    let gains = system.loop_gains();
    let Some(&last) = gains.last() else { return Verdict::Silent("no services") };
    let largest = gains.iter().map(|gain| gain.gain).fold(0.0, f64::max);
    let survives = largest < SURVIVED;
    if !survives && (drops || last.gain < SUSTAINED || !last.is_closed) {
        return Verdict::Silent("a gain near 1, stale work that is dropped, or an open cycle");
    }
    let runs = [(); RUNS].map(|()| system.run_until_decided(draws.seed()));
    let down = runs.iter().filter(|run| run.is_metastable()).count();
    match (survives, 2 * down > RUNS) {
        (true, false) => Verdict::Held("survived, all gains are below 1"),
        (false, true) => Verdict::Held("down, the gain is above 1"),
        (_, is_down) => {
            let word = if is_down { "down" } else { "survived" };
            let gains: Vec<_> = gains.iter().map(|gain| gain.gain).collect();
            let (services, edges) = (system.services(), system.edges());
            Verdict::Broken(format!(
                "{word}, with gains {gains:.2?} at {:.2}/s: {services:?}, {edges:?}",
                system.rate()
            ))
        }
    }
}

/// Draws the file of a system: one to four services, each called by an earlier one or by the users.
fn draw_file(draws: &mut Draws) -> String {
    let tiers = draws.one_of(&[1, 2, 2, 3, 3, 4]).unwrap_or(1);
    let mut text = format!("users.rate = {:.1}\n", draws.between(5.0, 100.0));
    for tier in 0..tiers {
        let (workers, service) = (draws.one_of(&[1, 2, 4, 16]).unwrap_or(1), draws.between(1.0, 40.0));
        let times = draws.one_of(&["", "service-times = \"exponential\"", "service-cv = 0.5", "service-cv = 2"]);
        // A full queue is worked off within a fraction of the usual time limits, or in a few seconds.
        let seconds = draws.one_of(&[0.3, 0.3, 3.0]).unwrap_or(0.3);
        let backlog = (seconds * 1e3 * f64::from(workers) / service).ceil() as u32;
        let stale = draws.one_of(&["done", "expired", "hopeless", "hopeless"]).unwrap_or("done");
        let waits = draws.is(0.5);
        text += &format!(
            "[tier.t{tier}]\nworkers = {workers}\nservice = \"{service:.2}ms\"\n{}\nbacklog = {backlog}\nstale = \
             \"{stale}\"\nwaits = {waits}\n",
            times.unwrap_or_default()
        );
    }
    for tier in 0..tiers {
        let from =
            if tier == 0 { "users".to_owned() } else { format!("t{}", (draws.share() * f64::from(tier)) as u32) };
        let timeout = draws.one_of(&[0.1, 0.3, 1.0, 3.0]).unwrap_or(1.0) * 0.8_f64.powi(tier);
        text += &format!("[[edge]]\nfrom = \"{from}\"\nto = \"t{tier}\"\ntimeout = \"{timeout:.3}s\"\n");
        if tier > 0 {
            let (calls, order) = (draws.one_of(&[1, 1, 2, 3]), draws.one_of(&["sequence", "parallel"]));
            text += &format!("calls = {}\norder = \"{}\"\n", calls.unwrap_or(1), order.unwrap_or("sequence"));
            text += if draws.is(0.7) { "nested = \"stand-down\"\n" } else { "" };
        }
        text += draws.one_of(&["policy = \"stop\"\n", RETRIED, RETRIED]).unwrap_or_default();
    }
    text
}

const RETRIED: &str =
    "policy = \"exponential base=50ms cap=1s max-attempts=3\"\nbudget = { tokens = 10, refund = 0.1 }\n";

fn silent(seed: Seed, is_stalled: bool) -> Verdict {
    let mut draws = Draws::new(seed);
    let text = draw_file(&mut draws);
    let file = match SystemFile::parse(&text) {
        Ok(file) => file,
        Err(error) => return Verdict::Broken(format!("{error}\n{text}")),
    };
    if !check_system(&file).is_empty() {
        return Verdict::Silent("check warns");
    }
    let alone = file.system().run_until_decided(draws.seed()).verdict();
    if !is_stalled {
        return match alone {
            verdict if verdict.is_down() => Verdict::Broken(format!("{verdict}\n{text}")),
            verdict if verdict.is_up() => Verdict::Held("up"),
            _ => Verdict::Held("not decided"),
        };
    }
    // Else it goes down by itself after the stall, too.
    if alone != NeverFell || file.system().run_until_decided(draws.seed()).verdict() != NeverFell {
        return Verdict::Silent("falls when all is well");
    }
    let services = file.system().services();
    let stalled = services[(draws.share() * services.len() as f64) as usize].name().to_owned();
    let stall = Trigger::stall().on(stalled).at(START).lasting(STALL);
    let Ok(system) = file.system().to_builder().trigger(stall).build() else {
        return Verdict::Broken(format!("a stall is not valid\n{text}"));
    };
    match system.run_until_decided(draws.seed()).verdict() {
        verdict if verdict.is_down() => Verdict::Broken(format!("{verdict}\n{text}")),
        verdict if verdict.is_up() => Verdict::Held("survived"),
        _ => Verdict::Held("not decided"),
    }
}
