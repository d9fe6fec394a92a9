use core::error::Error;
use core::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use stagger::queue::{QueueFull, Wheel};
use stagger::{Instant, Seed};

use super::super::support::{ms, nanos};
use super::model::{CheckedWheel, Step};

fn at(length: Duration) -> Instant {
    Instant::ZERO.saturating_add(length)
}

fn wheel<T>() -> Wheel<T> {
    Wheel::new(ms(1), Instant::ZERO)
}

const YEAR: Duration = Duration::from_secs(365 * 86_400);

proptest! {
    #[test]
    fn a_wheel_behaves_like_a_sorted_map(
        steps in vec((any::<u8>(), any::<u64>(), any::<u64>()), 0..200),
        resolution in prop_oneof![Just(0_u64), Just(7), Just(1_000_000), 1..u64::MAX],
        capacity in prop_oneof![Just(usize::MAX), 0..20_usize],
        now in prop_oneof![Just(0_u64), Just(u64::MAX / 4), any::<u64>()],
    ) {
        let mut checked = CheckedWheel::new(Duration::from_nanos(resolution), capacity, now);
        for (operation, index, time) in steps {
            checked.step(Step { operation, index, time });
        }
        checked.finish();
    }
}

/// The run is long enough to fill the wheel and reuse every entry many times.
#[test]
fn a_wheel_behaves_like_a_sorted_map_in_a_long_run() {
    let steps = if cfg!(debug_assertions) { 40_000 } else { 1_000_000 };
    for (n, resolution) in [1, 1_000, 1_000_000, 1_000_000_000].into_iter().enumerate() {
        let seed = Seed::new(n as u64);
        let mut checked = CheckedWheel::new(nanos(resolution), 5_000, u64::MAX / 4);
        for step in 0..steps {
            checked.step(Step::random(seed, step));
        }
        checked.finish();
    }
}

#[test]
fn an_entry_is_due_at_the_first_tick_not_before_its_time() {
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
fn entries_of_one_tick_are_popped_in_insertion_order() {
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
fn a_partly_consumed_pop_due_keeps_the_remaining_entries() {
    let mut wheel = wheel();
    for item in 0..5 {
        wheel.insert(item, at(ms(item))).unwrap();
    }
    assert_eq!(wheel.pop_due(at(ms(3))).take(2).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((wheel.len(), wheel.next_due()), (3, Some(at(ms(2)))));
}

#[test]
fn delays_of_years_and_the_maximum_instant_are_supported() {
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
    // The wheel can still be used at the maximum instant.
    wheel.insert("at once", Instant::ZERO).unwrap();
    assert_eq!(wheel.pop(last), Some("at once"));
}

#[test]
fn a_full_wheel_returns_the_item_and_accepts_it_later() {
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
fn a_stale_key_does_not_refer_to_a_later_entry() {
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
fn items_are_dropped_exactly_once() {
    let shared = std::rc::Rc::new(());
    let mut wheel = wheel();
    let keys: Vec<_> = (0..10).map(|n| wheel.insert(shared.clone(), at(ms(n))).unwrap()).collect();
    wheel.cancel(keys[9]);
    drop(wheel.pop_due(at(ms(3))).collect::<Vec<_>>());
    assert_eq!(std::rc::Rc::strong_count(&shared), 1 + 5);
    drop(wheel);
    assert_eq!(std::rc::Rc::strong_count(&shared), 1);
}

#[test]
fn a_reserved_wheel_does_not_allocate() {
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
fn an_entry_takes_24_bytes_besides_the_item() {
    let info = allocation_counter::measure(|| {
        let mut wheel = wheel::<u64>();
        wheel.reserve(100_000);
        core::hint::black_box(&wheel);
    });
    let fixed = 16 * 1024 + 1024;
    assert!(info.bytes_max <= 100_000 * (8 + 24) + fixed, "{}", info.bytes_max);
}
