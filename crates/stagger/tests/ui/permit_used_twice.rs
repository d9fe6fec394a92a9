use stagger::{Guards, Instant, Outcome, Permit, Policy, Retry, Seed, State};

fn main() {
    let mut state = State::new();
    let mut retry = Retry::new(&Policy::DEFAULT, &mut state, Seed::new(1));
    let (now, guards) = (|| Instant::ZERO, Guards::none());
    let permit = retry.begin(Permit::NONE, now, &guards).unwrap();
    let _ = retry.decide(Outcome::TRANSIENT, permit, now, &guards);
    let _ = retry.decide(Outcome::Success, permit, now, &guards);
}
