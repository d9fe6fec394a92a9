//! The burst invariant: however N failing calls and their retries come, in whatever order, with successes, refusals
//! and cancellations between them, a budget allows no more extra load than its documentation says.

use proptest::prelude::*;
use stagger_core::budget::{Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::{Budget, Instant, Kind, Loan, Outcome, Ratio};

use crate::laws::support::cases;

/// What happens next, among the calls that are under way.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A call begins.
    Begin,
    /// An attempt fails, its call asks for a retry.
    Fail(usize),
    /// An attempt succeeds.
    Succeed(usize),
    /// A call is dropped in its attempt.
    Abandon(usize),
    /// A call is dropped in its sleep.
    GiveUp(usize),
    /// A sleeper wakes up and makes its attempt.
    Wake(usize),
    /// Time passes, in milliseconds.
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Begin),
        8 => any::<usize>().prop_map(Step::Fail),
        1 => any::<usize>().prop_map(Step::Succeed),
        1 => any::<usize>().prop_map(Step::Abandon),
        1 => any::<usize>().prop_map(Step::GiveUp),
        6 => any::<usize>().prop_map(Step::Wake),
        2 => (0_u64..400).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..200)
}

/// What went on, counted.
#[derive(Debug, Default)]
struct Book {
    calls: u64,
    /// Retries that were lent and not given back.
    retries: u64,
    successes: u64,
    /// Calls in an attempt or in a sleep.
    active: u64,
    /// Of these, in a retry or in a sleep.
    retrying: u64,
    now: u64,
}

/// Plays the steps, and has `check` look at the book after each grant.
fn play(
    budget: &dyn Budget,
    steps: &[Step],
    mut check: impl FnMut(&Book) -> Result<(), TestCaseError>,
) -> Result<Book, TestCaseError> {
    let (mut book, mut attempting, mut sleeping) = (Book::default(), Vec::<(Loan, bool)>::new(), Vec::<Loan>::new());
    for &step in steps {
        let now = Instant::from_nanos(book.now);
        let pick = |len: usize, n: usize| (len > 0).then(|| n % len);
        match step {
            Step::Begin => {
                book.calls += 1;
                attempting.push((budget.first(&now), false));
            }
            Step::Fail(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                let (loan, _) = attempting.swap_remove(at);
                budget.settle(loan, &Outcome::TRANSIENT, &now);
                if let Some(loan) = budget.lend(Kind::Transient, &now) {
                    sleeping.push(loan);
                    book.retries += 1;
                    book.active = (attempting.len() + sleeping.len()) as u64;
                    book.retrying = (attempting.iter().filter(|attempt| attempt.1).count() + sleeping.len()) as u64;
                    check(&book)?;
                }
            }
            Step::Succeed(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                budget.settle(attempting.swap_remove(at).0, &Outcome::Success, &now);
                book.successes += 1;
            }
            Step::Abandon(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                budget.settle(attempting.swap_remove(at).0, &Outcome::Cancelled, &now);
            }
            Step::GiveUp(n) => {
                let Some(at) = pick(sleeping.len(), n) else { continue };
                match sleeping.swap_remove(at) {
                    // It gives nothing back, so it was lent for good.
                    Loan::NOTHING => {}
                    loan => {
                        budget.give_back(loan);
                        book.retries -= 1;
                    }
                }
            }
            Step::Wake(n) => {
                let Some(at) = pick(sleeping.len(), n) else { continue };
                attempting.push((sleeping.swap_remove(at), true));
            }
            Step::Pass(ms) => book.now += ms * 1_000_000,
        }
    }
    Ok(book)
}

fn ratio() -> impl Strategy<Value = Ratio> {
    (0_u32..=1_000_000).prop_map(Ratio::millionths)
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn bd_17_tokens(steps in steps(), capacity in 5_u32..60, reward in 0_u32..6, refill in 0_u32..4) {
        let second = core::time::Duration::from_secs(1);
        let tokens = Tokens::builder().capacity(capacity).reward(reward).refill(refill, second).build().unwrap();
        play(&tokens, &steps, |book| {
            let came = u64::from(capacity) * 1_000 + u64::from(reward) * book.successes * 1_000
                + u64::from(refill) * (book.now / 1_000_000);
            prop_assert!(book.retries * 5_000 <= came, "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_tokens_of_the_aws_sdks(steps in steps(), capacity in 14_u32..90) {
        let tokens = Tokens::AWS_2026.capacity(capacity).build().unwrap();
        play(&tokens, &steps, |book| {
            prop_assert!(book.retries * 14 <= u64::from(capacity) + 14 * book.successes, "{book:?}");
            Ok(())
        })?;
    }

    /// For ever, and not only in a window: a retry passes out of it no earlier than the calls that paid for it.
    #[test]
    fn bd_17_window(steps in steps(), ratio in ratio()) {
        let window = Window::builder().ttl(core::time::Duration::from_secs(1)).ratio(ratio).min_per_second(0);
        play(&window.build().unwrap(), &steps, |book| {
            prop_assert!(book.retries <= ratio.of(book.calls), "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_window_with_a_minimum(steps in steps(), ratio in ratio(), least in 0_u32..5) {
        let window = Window::builder().ttl(core::time::Duration::from_secs(1)).ratio(ratio).min_per_second(least);
        // Before the first slot has passed all of it is one window; afterwards each has its minimum.
        play(&window.build().unwrap(), &steps, |book| {
            let windows = book.now / 900_000_000 + 1;
            prop_assert!(book.retries <= ratio.of(book.calls) + u64::from(least) * windows, "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_lifetime(steps in steps(), ratio in (0_u32..1_000_000).prop_map(Ratio::millionths), bootstrap in 0_u32..50) {
        let lifetime = Lifetime::with(ratio, bootstrap).unwrap();
        play(&lifetime, &steps, |book| {
            let free = u64::from(bootstrap).saturating_sub(1);
            prop_assert!(book.retries <= free.max(ratio.of(book.calls + book.retries)), "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_throttle(steps in steps(), max in 1_u32..30, ratio in 1_u32..1_500) {
        let throttle = Throttle::new(max, Ratio::millionths(ratio * 1_000)).unwrap();
        play(&throttle, &steps, |book| {
            let half = u64::from(max) * 500;
            prop_assert!(book.retries * 1_000 < half + u64::from(ratio) * book.successes, "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_success_rate(steps in steps(), ratio in (1_u32..=1_000_000).prop_map(Ratio::millionths), last in 1_u32..=64) {
        let budget = SuccessRate::with(ratio, last).unwrap();
        play(&budget, &steps, |book| {
            let tolerated = Ratio::millionths(1_000_000 - ratio.as_millionths()).of(u64::from(last));
            let windows = 1 + book.successes / (u64::from(last) - tolerated);
            prop_assert!(book.retries <= tolerated * windows, "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_concurrent(steps in steps(), ratio in ratio(), floor in 0_u32..5) {
        let budget = Concurrent::with(ratio, floor).unwrap();
        let end = play(&budget, &steps, |book| {
            let grants = ratio.of(book.active).max(u64::from(floor));
            prop_assert!(book.retrying <= grants, "{book:?}");
            Ok(())
        })?;
        prop_assert!(budget.snapshot().firsts <= end.calls);
    }
}
