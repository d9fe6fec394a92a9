use std::cell::Cell;
use std::rc::Rc;

use stagger::{Policy, Retrier};

fn main() {
    let events = Rc::new(Cell::new(0));
    let _ = Retrier::new(Policy::DEFAULT).on_event(move |_| events.set(events.get() + 1));
}
