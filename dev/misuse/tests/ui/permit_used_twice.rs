use stagger::guard::Permits;
use stagger::machine::{RetryMachine, RetryState};
use stagger::{Guards, Instant, Outcome, Policy, Seed};

fn main() {
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
    let (now, guards) = (|| Instant::ZERO, Guards::none());
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let _ = retry.decide(Outcome::TRANSIENT, permit, now, &guards);
    let _ = retry.decide(Outcome::Success, permit, now, &guards);
}
