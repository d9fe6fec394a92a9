use stagger::Policy;
use stagger::time::ThreadSleep;

fn main() {
    let _ = stagger::retry(&Policy::DEFAULT, async || Err::<(), _>("no")).timer(ThreadSleep);
}
