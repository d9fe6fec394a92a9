use stagger::Policy;

fn main() {
    let mut calls = 0;
    let _ = stagger::retry(&Policy::DEFAULT, async || {
        calls += 1;
        Err::<(), _>("no")
    });
}
