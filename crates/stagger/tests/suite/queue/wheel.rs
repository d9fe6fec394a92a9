use core::error::Error;
use core::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use stagger::queue::{QueueFull, Wheel};
use stagger::{Instant, Seed};

use super::super::support::{ms, nanos};
use super::model::{Checked, Step};

fn at(length: Duration) -> Instant {
    Instant::ZERO.saturating_add(length)
}

fn wheel<T>() -> Wheel<T> {
    Wheel::new(ms(1), Instant::ZERO)
}

const YEAR: Duration = Duration::from_secs(365 * 86_400);

proptest! {
    #[test]
    fn a_wheel_does_what_a_sorted_map_does(
        steps in vec((any::<u8>(), any::<u64>(), any::<u64>()), 0..200),
        resolution in prop_oneof![Just(0_u64), Just(7), Just(1_000_000), 1..u64::MAX],
        most in prop_oneof![Just(usize::MAX), 0..20_usize],
        now in prop_oneof![Just(0_u64), Just(u64::MAX / 4), any::<u64>()],
    ) {
        let mut checked = Checked::new(Duration::from_nanos(resolution), most, now);
        for (what, which, time) in steps {
            checked.step(Step { what, which, time });
        }
        checked.finish();
    }
}

/// Long enough to fill it, with every place used many times.
#[test]
fn a_wheel_does_what_a_sorted_map_does_for_long() {
    let steps = if cfg!(debug_assertions) { 40_000 } else { 1_000_000 };
    for (n, resolution) in [1, 1_000, 1_000_000, 1_000_000_000].into_iter().enumerate() {
        let seed = Seed::new(n as u64);
        let mut checked = Checked::new(nanos(resolution), 5_000, u64::MAX / 4);
        for step in 0..steps {
            checked.step(Step::random(seed, step));
        }
        checked.finish();
    }
}

#[test]
fn an_entry_comes_at_the_first_tick_that_is_not_before_its_time() {
    for (due, tick) in [(0, 0), (1, 1_000_000), (999_999, 1_000_000), (1_000_000, 1_000_000), (1_000_001, 2_000_000)] {
        let mut wheel = wheel();
        wheel.insert((), at(nanos(due))).unwrap();
        assert_eq!(wheel.next_due(), Some(at(nanos(tick))), "{due}");
        if tick > 0 {
            assert_eq!(wheel.pop(at(nanos(tick - 1))), None, "{due}");
        }
        assert_eq!(wheel.pop(at(nanos(tick))), Some(()), "{due}");
    }
}

#[test]
fn within_a_tick_the_first_in_is_the_first_out_however_far_away_it_was() {
    let mut wheel = wheel();
    let due = at(ms(100_000));
    wheel.insert(1, due).unwrap();
    let moved = wheel.insert(4, due).unwrap();
    assert_eq!(wheel.pop(at(ms(99_000))), None);
    wheel.insert(2, due).unwrap();
    assert_eq!(wheel.pop(at(ms(99_900))), None);
    wheel.insert(3, at(nanos(99_999_000_001))).unwrap();
    assert!(wheel.reschedule(moved, due));
    assert_eq!(wheel.pop_due(due).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn what_is_not_asked_for_stays() {
    let mut wheel = wheel();
    for item in 0..5 {
        wheel.insert(item, at(ms(item))).unwrap();
    }
    assert_eq!(wheel.pop_due(at(ms(3))).take(2).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((wheel.len(), wheel.next_due()), (3, Some(at(ms(2)))));
}

#[test]
fn years_and_the_last_instant_of_all_are_fine() {
    let last = Instant::from_nanos(u64::MAX);
    let mut wheel = wheel();
    let never = wheel.insert("never", last).unwrap();
    wheel.insert("in a hundred years", at(100 * YEAR)).unwrap();
    wheel.insert("in a year", at(YEAR)).unwrap();
    assert_eq!(wheel.pop_due(at(99 * YEAR)).collect::<Vec<_>>(), ["in a year"]);
    assert_eq!(wheel.pop(at(100 * YEAR - nanos(1))), None);
    assert_eq!(wheel.pop(at(100 * YEAR)), Some("in a hundred years"));
    assert_eq!((wheel.next_due(), wheel.pop(Instant::from_nanos(u64::MAX - 1))), (Some(last), None));
    assert_eq!(wheel.pop(last), Some("never"));
    assert_eq!(wheel.cancel(never), None);
    // And time may go on from there.
    wheel.insert("at once", Instant::ZERO).unwrap();
    assert_eq!(wheel.pop(last), Some("at once"));
}

#[test]
fn a_full_wheel_gives_the_item_back_and_takes_it_when_there_is_room() {
    let mut wheel = wheel().capacity(2);
    let first = wheel.insert("one".to_owned(), at(ms(1))).unwrap();
    wheel.insert("two".to_owned(), at(ms(2))).unwrap();
    let full = wheel.insert("three".to_owned(), at(ms(3))).unwrap_err();
    let text = "the queue is at capacity; raise its capacity, or push again when items have completed";
    assert_eq!((full.to_string().as_str(), format!("{full:?}").as_str()), (text, "QueueFull(..)"));
    assert!(full.source().is_none());
    wheel.cancel(first);
    let QueueFull(three) = full;
    wheel.insert(three, at(ms(3))).unwrap();
    assert_eq!(wheel.pop_due(at(ms(9))).collect::<Vec<_>>(), ["two", "three"]);
}

#[test]
fn a_key_never_names_the_next_entry_in_its_place() {
    let mut wheel = wheel();
    let before = wheel.insert("before", at(ms(1))).unwrap();
    assert_eq!(wheel.pop(at(ms(1))), Some("before"));
    let after = wheel.insert("after", at(ms(5))).unwrap();
    assert_ne!(before, after);
    assert_eq!(wheel.get(before), None);
    assert_eq!(wheel.get_mut(before), None);
    assert_eq!(wheel.cancel(before), None);
    assert!(!wheel.reschedule(before, at(ms(9))));
    assert_eq!((wheel.get(after), wheel.next_due()), (Some(&"after"), Some(at(ms(5)))));
}

#[test]
fn items_are_dropped_once_with_the_wheel_or_when_they_leave() {
    let counted = std::rc::Rc::new(());
    let mut wheel = wheel();
    let keys: Vec<_> = (0..10).map(|n| wheel.insert(counted.clone(), at(ms(n))).unwrap()).collect();
    wheel.cancel(keys[9]);
    drop(wheel.pop_due(at(ms(3))).collect::<Vec<_>>());
    assert_eq!(std::rc::Rc::strong_count(&counted), 1 + 5);
    drop(wheel);
    assert_eq!(std::rc::Rc::strong_count(&counted), 1);
}

#[test]
fn after_reserve_nothing_is_allocated() {
    const MANY: u64 = 10_000;
    let mut wheel = wheel();
    wheel.reserve(MANY as usize);
    let info = allocation_counter::measure(|| {
        for round in 0..3 {
            for n in 0..MANY {
                wheel.insert(n, at(ms(round * 1_000_000 + n * n % 100_000))).unwrap();
            }
            assert_eq!(wheel.pop_due(at(ms(round * 1_000_000 + 100_000))).count(), MANY as usize);
        }
    });
    assert_eq!(info.count_total, 0);
}

#[test]
fn the_memory_of_an_entry_is_24_bytes_beside_the_item() {
    let info = allocation_counter::measure(|| {
        let mut wheel = wheel::<u64>();
        wheel.reserve(100_000);
        core::hint::black_box(&wheel);
    });
    let fixed = 16 * 1024 + 1024;
    assert!(info.bytes_max <= 100_000 * (8 + 24) + fixed, "{}", info.bytes_max);
}
