//! Measures the speed of the simulator of systems: `cargo run --profile dist -p stagger-sim --example three_tiers`.

use core::time::Duration;
use std::time::Instant;

use stagger_core::{Seed, policy};
use stagger_sim::system::{Edge, Service, System, SystemError, Trigger};

fn main() -> Result<(), SystemError> {
    let attempts = policy!(zero().max_attempts(3));
    let service = |name: &str| Service::new(name).service_time(Duration::from_millis(2)).backlog(1_500);
    for (rate, trigger) in [(50.0, Trigger::reject()), (50.0, Trigger::stall()), (400.0, Trigger::reject())] {
        let system = System::builder(rate)
            .service(service("gateway"))
            .service(service("orders"))
            .service(service("database"))
            .edge(Edge::from_users("gateway").policy(attempts))
            .edge(Edge::between("gateway", "orders").policy(attempts))
            .edge(Edge::between("orders", "database").policy(attempts))
            .trigger(trigger.on("database").lasting(Duration::from_secs(1)))
            .horizon(Duration::from_secs(7_200))
            .build()?;
        let start = Instant::now();
        let figures = system.run(Seed::new(1));
        let seconds = start.elapsed().as_secs_f64();
        let completed: u64 = figures.services.iter().map(|service| service.completed).sum();
        let rate_text = format!("{rate} requests/s, {}", figures.verdict());
        println!("{rate_text}: {completed} completions in {seconds:.2} s, {:.1} M/s", completed as f64 / seconds / 1e6);
    }
    Ok(())
}
