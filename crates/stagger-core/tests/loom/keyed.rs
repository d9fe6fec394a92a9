//! Guards by key. The collection belongs to `stagger`, whose dependencies cannot be built for loom, so its file is
//! compiled here.

use core::num::NonZeroUsize;

use ::loom::sync::Arc;
use ::loom::thread;
use stagger_core::Instant;
use stagger_core::guard::Now;

use super::support::{NOW, model};

#[expect(dead_code, unreachable_pub, reason = "the file is that of a library, and has more than the models use")]
#[path = "../../../stagger/src/control/keyed.rs"]
mod collection;

use collection::Keyed;

/// Not empty, so that each guard has an address of its own.
struct Guard(#[expect(dead_code, reason = "only its address matters")] u8);

fn guards(max_keys: usize) -> Arc<Keyed<u32, Guard>> {
    let at_rest = |_: &Guard, _: &dyn Now| true;
    Arc::new(Keyed::new(|| Guard(0), at_rest).max_keys(NonZeroUsize::new(max_keys).unwrap()))
}

#[test]
fn loom_threads_that_create_one_key_share_its_guard() {
    model(|| {
        let keyed = guards(2);
        let other = {
            let keyed = Arc::clone(&keyed);
            thread::spawn(move || keyed.of(&1, NOW))
        };
        let here = keyed.of(&1, NOW);
        assert!(std::sync::Arc::ptr_eq(&here, &other.join().unwrap()));
        assert_eq!(keyed.len(), 1);
    });
}

#[test]
fn loom_a_guard_in_use_is_not_replaced() {
    model(|| {
        let keyed = guards(1);
        let other = {
            let keyed = Arc::clone(&keyed);
            thread::spawn(move || {
                let guard = keyed.of(&2, NOW);
                (std::ptr::eq(&*guard, keyed.overflow()), keyed.of(&2, NOW))
            })
        };
        let borrowed = keyed.of(&1, NOW);
        // Whoever came first has the place, as long as it holds the guard, and the same one each time.
        let is_overflow = std::ptr::eq(&*borrowed, keyed.overflow());
        assert!(is_overflow || std::sync::Arc::ptr_eq(&borrowed, &keyed.of(&1, NOW)), "replaced while it was in use");
        let (other_is_overflow, _) = other.join().unwrap();
        assert!(is_overflow || other_is_overflow, "two keys, one place");
        assert_eq!(keyed.len(), 1);
    });
}

#[test]
fn loom_a_guard_in_use_is_not_swept_away() {
    model(|| {
        let keyed = guards(2);
        let other = {
            let keyed = Arc::clone(&keyed);
            thread::spawn(move || keyed.sweep(NOW))
        };
        let guard = keyed.of(&1, NOW);
        let found = keyed.find(&1, NOW).expect("swept away while it was in use");
        assert!(std::sync::Arc::ptr_eq(&guard, &found));
        other.join().unwrap();
        assert_eq!(keyed.len(), 1);
        drop((guard, found));
        keyed.sweep(NOW);
        assert_eq!((keyed.len(), keyed.find(&1, NOW).is_some()), (0, false));
    });
}

/// Otherwise two calls to one target would have a budget each.
#[test]
fn loom_threads_that_use_and_sweep_agree_on_the_guard_of_a_key() {
    model(|| {
        let keyed = guards(1);
        let other = {
            let keyed = Arc::clone(&keyed);
            thread::spawn(move || {
                drop(keyed.of(&1, NOW));
                keyed.sweep(NOW);
            })
        };
        let guard = keyed.of(&1, NOW);
        other.join().unwrap();
        assert!(std::sync::Arc::ptr_eq(&guard, &keyed.of(&1, NOW)));
        assert_eq!(keyed.len(), 1);
    });
}

#[test]
fn loom_there_are_never_more_keys_than_allowed() {
    model(|| {
        let keyed = guards(1);
        let threads: Vec<_> = [1, 2]
            .map(|key| {
                let keyed = Arc::clone(&keyed);
                thread::spawn(move || {
                    drop(keyed.of(&key, NOW.saturating_add(core::time::Duration::from_secs(u64::from(key)))));
                    keyed.len()
                })
            })
            .into_iter()
            .collect();
        drop(keyed.of(&3, Instant::ZERO));
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 1);
        }
        let mut found = 0;
        keyed.for_each(|_, _| found += 1);
        assert_eq!(found, 1);
    });
}
