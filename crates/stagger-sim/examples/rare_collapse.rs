//! How long a healthy server lasts at several loads until random variation alone takes it down: `cargo run --release -p
//! stagger-sim --example rare_collapse`.

use core::time::Duration;
use std::time::Instant;

use stagger_core::{Seed, policy};
use stagger_sim::Progress;
use stagger_sim::system::{Edge, RareCollapse, Service, System, SystemError};

fn main() -> Result<(), SystemError> {
    // Ten requests per second can be served; callers give up after 3 s, and make five attempts.
    let service = Service::new("server").service_time(Duration::from_millis(100)).backlog(100);
    let edge = Edge::from_users("server").timeout(Duration::from_secs(3)).policy(policy!(zero().max_attempts(5)));
    for load in [70, 75, 80, 85, 90, 95] {
        let rate = 0.1 * f64::from(load);
        let system = System::builder(rate).service(service.clone()).edge(edge.clone()).build()?;
        let start = Instant::now();
        if let Some(time) = RareCollapse::new().run(&system, Seed::new(1), &Progress::new())? {
            let seconds = start.elapsed().as_secs_f64();
            println!("{load} % load: {time}; {} levels, computed in {seconds:.1} s", time.levels);
        }
    }
    Ok(())
}
