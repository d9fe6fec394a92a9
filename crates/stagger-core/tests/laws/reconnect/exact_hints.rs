//! A server that closes each connection, and asks for the client back at once, gets no tight loop.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::machine::ReconnectStep;
use stagger_core::{DelaySource, FailureKind, Jitter, Outcome, Policy, ServerHint, profile};

use super::link::{Link, waits};
use crate::laws::support::{any_policy, cases, length, ms, secs};

const NOW: Outcome = Outcome::throttled(Some(ServerHint::Reserved(Duration::ZERO)));

/// Lets a server that accepts every connection close it in the same instant, and returns the wait that follows.
fn closed_with(link: &mut Link<'_>, outcome: Outcome) -> Duration {
    let (after, source) = waits(link.ended(outcome));
    assert!(source == DelaySource::Hint || outcome != NOW);
    link.reopen();
    after
}

/// Returns how many attempts are made in `length` by a client of a server that closes each connection with this
/// outcome, if an attempt and its connection last 1 s / 85 together: the most that chromium's handshakes allow.
fn attempts_within(length: Duration, seed: u64, outcome: Outcome) -> u32 {
    let mut link = Link::new(profile::WEB_SOCKET.policy()).seed(seed).up();
    let (end, mut attempts) = (link.now + length, 1);
    loop {
        link.advance(secs(1) / 85);
        let _ = closed_with(&mut link, outcome);
        if link.now > end {
            return attempts;
        }
        attempts += 1;
    }
}

#[test]
fn hints_of_zero_bring_a_client_back_at_most_four_times_as_often_as_plain_closes() {
    let hour = secs(3_600);
    let average = |outcome| (0..100).map(|seed| attempts_within(hour, seed, outcome)).sum::<u32>() / 100;
    let (hinted, plain) = (average(NOW), average(Outcome::TRANSIENT));
    // A delay of the profile is 15 to 30 s from the second on, and 22.5 s on average: 161 in an hour.
    assert!((155..=167).contains(&plain), "{plain}");
    assert!((plain * 39 / 10..=plain * 41 / 10).contains(&hinted), "{hinted} and {plain} in an hour");
    for seed in 0..100 {
        // The shortest delays, 15 s, three hints before each, and those before the first.
        assert!(attempts_within(hour, seed, NOW) <= 4 * (3_600 / 15 + 1), "seed {seed}");
    }
}

#[test]
fn the_fourth_wait_is_the_larger_of_spread_and_backoff() {
    let policy = Policy::exponential(secs(2), secs(2)).jitter(Jitter::None).spread(secs(10)).unlimited_attempts();
    let policy = policy.build().unwrap();
    for seed in 0..20 {
        let [mut hinted, mut plain] = [(); 2].map(|()| Link::new(policy).seed(seed).up());
        let [hinted, plain] = [(&mut hinted, NOW), (&mut plain, Outcome::TRANSIENT)]
            .map(|(link, outcome)| [(); 8].map(|()| closed_with(link, outcome)));
        let wanted = [[Duration::ZERO; 3].as_slice(), &plain[3..4], &[Duration::ZERO; 3], &plain[7..]].concat();
        assert_eq!(hinted, *wanted, "seed {seed}");
    }
}

/// An opened connection proves nothing: a hostile server opens all of them.
#[test]
fn only_a_connection_that_was_stable_restarts_the_count() {
    let policy = profile::WEB_SOCKET.policy();
    for (uptime, is_distrusted, is_shortened) in
        [(ms(9_999), false, false), (secs(10), false, true), (secs(10), true, false)]
    {
        let mut link = Link::new(policy).up();
        for _ in 0..3 {
            assert_eq!(closed_with(&mut link, NOW), Duration::ZERO);
        }
        link.advance(uptime);
        if is_distrusted {
            link.machine.distrust(link.machine.generation());
        }
        assert_eq!(closed_with(&mut link, NOW).is_zero(), is_shortened, "after {uptime:?}, {is_distrusted}");
    }
    let mut link = Link::new(policy).up();
    for _ in 0..3 {
        let _ = closed_with(&mut link, NOW);
    }
    let generation = super::link::connects(link.reconnect_now());
    assert_eq!(link.opened(generation), ReconnectStep::Rest);
    assert_eq!(closed_with(&mut link, NOW), Duration::ZERO);
}

/// What a server does with an attempt.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// Refuses it, or accepts and closes at once.
    End {
        is_opened: bool,
        hint: Option<Duration>,
    },
    Distrusted,
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let hint = prop_oneof![1 => Just(None), 3 => Just(Some(Duration::ZERO)), 1 => length().prop_map(Some)];
    let end = (any::<bool>(), hint).prop_map(|(is_opened, hint)| Answer::End { is_opened, hint });
    prop::collection::vec(prop_oneof![8 => end, 1 => Just(Answer::Distrusted)], 1..40)
}

/// Returns the waits of a client whose server answers like this, with the hints or without them.
fn run(policy: Policy, seed: u64, answers: &[Answer], with_hints: bool) -> Vec<Duration> {
    let mut link = Link::new(policy).seed(seed);
    let mut generation = super::link::connects(link.reconnect_now());
    let mut all = Vec::new();
    for answer in answers {
        let hint = match *answer {
            Answer::End { is_opened, hint } => {
                if is_opened {
                    assert_eq!(link.opened(generation), ReconnectStep::Rest);
                }
                hint
            }
            Answer::Distrusted => {
                link.machine.distrust(generation);
                Some(Duration::ZERO)
            }
        };
        let hint = hint.filter(|_| with_hints).map(ServerHint::Reserved);
        match link.ended(Outcome::Failed { kind: FailureKind::Transient, hint }) {
            // The clock ends after 292 years.
            ReconnectStep::Wait { after, until, .. } if until.as_nanos() < 1 << 62 => all.push(after),
            _ => break,
        }
        generation = link.retry();
    }
    all
}

proptest! {
    #![proptest_config(cases(256))]

    /// Every connection is lost at once, so both clients have the same draws.
    #[test]
    fn of_four_waits_in_a_row_one_is_as_long_as_without_hints(policy in any_policy(), seed: u64, answers in answers()) {
        let builder = policy.to_builder().unlimited_attempts().unlimited_elapsed().unlimited_hint();
        let policy = builder.stable_after(ms(1)).build().unwrap();
        let [hinted, plain] = [true, false].map(|with_hints| run(policy, seed, &answers, with_hints));
        let mut in_a_row = 0;
        for (hinted, plain) in hinted.iter().zip(&plain) {
            in_a_row = if hinted < plain { in_a_row + 1 } else { 0 };
            prop_assert!(in_a_row <= 3, "{}: {:?} of {:?}", policy, hinted, plain);
        }
    }
}
