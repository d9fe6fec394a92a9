//! Tests of the decision tree, answer by answer.

use core::time::Duration;

use stagger_core::{Jitter, Policy, Seed, profile};
use stagger_lint::advise::{Advice, Answers, Prediction, Question, Recommendation, advise};
use stagger_lint::{Budgeted, DeploymentContext, Purpose, Severity, check};
use stagger_sim::Progress;

/// Returns the advice for answers as text: `clients=10k capacity=500/s`.
#[track_caller]
fn after(answers: &str) -> Advice {
    advise(&read(answers), Seed::new(1), &Progress::new()).unwrap()
}

fn read(answers: &str) -> Answers {
    answers.split_whitespace().fold(Answers::default(), |known, pair| {
        let (name, text) = pair.split_once('=').unwrap();
        let question = Question::ALL.into_iter().find(|question| question.name() == name).unwrap();
        known.answer(question, text).unwrap()
    })
}

#[track_caller]
fn policy(answers: &str) -> Policy {
    *after(answers).policy().unwrap()
}

#[test]
fn without_retries_there_is_no_policy_and_one_reason() {
    for (answers, recommendation, question) in [
        ("transient=no", Recommendation::DoNotRetry, Question::Transient),
        ("idempotent=no clients=10k capacity=500/s", Recommendation::DoNotRetry, Question::Idempotent),
        ("for=interactive deadline=99ms", Recommendation::Hedge, Question::Deadline),
        ("deadline=20ms", Recommendation::Hedge, Question::Deadline),
    ] {
        let advice = after(answers);
        assert_eq!(
            (advice.recommendation(), advice.policy(), advice.front()),
            (recommendation, None, None),
            "{answers}"
        );
        let [reason] = advice.reasons() else { panic!("{answers}: {:?}", advice.reasons()) };
        assert_eq!(reason.question, question);
        assert!(reason.answer.is_some());
    }
}

#[test]
fn retryable_operations_get_a_policy() {
    for answers in
        ["", "transient=yes", "idempotent=yes", "idempotent=key", "deadline=100ms", "for=reconnecting deadline=50ms"]
    {
        assert_eq!(after(answers).recommendation(), Recommendation::Retry, "{answers}");
    }
}

#[test]
fn each_purpose_gets_its_profile() {
    for (purpose, want) in [
        ("interactive", profile::INTERACTIVE),
        ("serverless", profile::SERVERLESS),
        ("background", profile::BACKGROUND_JOB),
        ("reconnecting", profile::WEB_SOCKET),
        ("near", profile::DEFAULT),
    ] {
        assert_eq!(policy(&format!("for={purpose}")), want.policy(), "{purpose}");
    }
    assert_eq!(policy(""), Policy::DEFAULT);
}

#[test]
fn jitter_is_optional_for_a_few_clients_only() {
    for (clients, optional) in [("9", true), ("10", false), ("1001", false)] {
        let advice = after(&format!("clients={clients}"));
        let reason = advice.reasons().iter().find(|reason| reason.question == Question::Clients).unwrap();
        assert_eq!(reason.conclusion.contains("jitter is optional"), optional, "{clients}");
        assert_ne!(advice.policy().unwrap().jitter(), Jitter::None, "jitter does no harm");
    }
}

#[test]
fn the_min_delay_is_a_floor_and_the_deadline_limits_calls() {
    let kept = policy("for=interactive min-delay=200ms");
    assert_eq!(kept.floor(), Duration::from_millis(200));
    assert!(
        (1..=kept.max_attempts().unwrap().get()).all(|n| kept.bounds(n).is_none_or(|(least, _)| least >= kept.floor()))
    );
    assert_eq!(policy("for=far deadline=5s").max_elapsed(), Some(Duration::from_secs(5)));
    assert_eq!(policy("for=reconnecting deadline=5s").max_elapsed(), None, "connections are long-lived");
}

#[test]
fn figures_require_clients_and_capacity() {
    assert!(after("clients=100 capacity=50/s").front().is_some());
    for answers in ["clients=100", "capacity=50/s", "clients=9 capacity=50/s"] {
        assert_eq!(after(answers).front(), None, "{answers}");
    }
}

#[test]
fn the_min_recovery_time_is_clients_by_capacity_after_any_outage() {
    let least = |answers: &str| after(answers).front().unwrap().min_recovery_time;
    assert_eq!(least("for=reconnecting clients=1k capacity=100/s outage=0s"), Duration::from_secs(10));
    assert_eq!(least("for=reconnecting clients=1k capacity=100/s outage=5s"), Duration::from_secs(10));
}

#[test]
fn the_front_is_sorted_and_its_best_policy_is_recommended() {
    let advice = after("for=reconnecting clients=2k capacity=100/s deadline=45s outage=0s");
    let front = advice.front().unwrap();
    assert_eq!(Some(&front.best().policy), advice.policy());
    assert!(front.best().predicted.recovery.is_some_and(|recovery| recovery <= Duration::from_secs(45)));
    assert!(front.candidates.len() > 3);
    for pair in front.candidates.windows(2) {
        let [low, high] = [pair[0].predicted, pair[1].predicted];
        // None would be less than any time.
        let [slow, fast] = [low, high].map(|predicted| predicted.recovery.unwrap_or(Duration::MAX));
        let is_better = fast < slow || high.attempts_per_client < low.attempts_per_client;
        assert!(low.peak_second <= high.peak_second && is_better, "{low:?} {high:?}");
    }
}

/// Returns whether one of the figures differs by 5 %.
fn differ(one: &Prediction, other: &Prediction) -> bool {
    let by_five = |one: f64, other: f64| (one - other).abs() > 0.049 * one.max(other);
    let recovery = |it: &Prediction| it.recovery.map_or(f64::INFINITY, |recovery| recovery.as_secs_f64());
    by_five(one.peak_second, other.peak_second)
        || by_five(one.attempts_per_client, other.attempts_per_client)
        || by_five(recovery(one), recovery(other))
        || (one.recovered_ratio - other.recovered_ratio).abs() >= 0.05
}

#[test]
fn policies_shown_for_comparison_differ_visibly() {
    let advice = after("for=reconnecting clients=10k capacity=500/s outage=10s");
    let candidates = &advice.front().unwrap().candidates;
    let close =
        candidates.iter().enumerate().flat_map(|(at, one)| candidates[..at].iter().map(move |other| (one, other)));
    let close = close.filter(|(one, other)| !differ(&one.predicted, &other.predicted)).count();
    // The best, the one that serves the most, and the ends of the front are shown in any case.
    assert!(candidates.len() >= 4 && close <= 2, "{close} of {} pairs look the same", candidates.len());
}

#[test]
fn an_unreachable_deadline_is_reported_and_ignored() {
    let hasty = after("for=reconnecting clients=2k capacity=100/s outage=0s deadline=15s");
    let reason = hasty.reasons().iter().find(|reason| reason.question == Question::Deadline).unwrap();
    assert!(reason.conclusion.contains("no evaluated policy"), "{reason:?}");
    assert_eq!(hasty.policy(), after("for=reconnecting clients=2k capacity=100/s outage=0s").policy());
    let patient = after("for=reconnecting clients=2k capacity=100/s outage=0s deadline=30s");
    assert!(!patient.reasons().iter().any(|reason| reason.conclusion.contains("no evaluated policy")));
}

#[test]
fn figures_of_a_large_fleet_are_scaled_in_proportion() {
    let of = |answers: &str| after(answers).front().unwrap().best().clone();
    let small = of("for=reconnecting clients=50k capacity=25k/s outage=0s");
    let large = of("for=reconnecting clients=50M capacity=25M/s outage=0s");
    assert_eq!(small.policy, large.policy);
    assert!((large.predicted.peak_second / small.predicted.peak_second / 1e3 - 1.0).abs() < 1e-9);
    assert_eq!(small.predicted.recovery, large.predicted.recovery);
}

#[test]
fn recommended_policies_have_no_lint_warnings() {
    for purpose in ["interactive", "serverless", "background", "reconnecting", "near", "far"] {
        for fleet in ["", "clients=5 capacity=1/s", "clients=60 capacity=3/s", "clients=60 capacity=3/s outage=5s"] {
            let answers = format!("for={purpose} {fleet}");
            let advised = policy(&answers);
            let purpose: Purpose = purpose.parse().unwrap();
            let mut context = DeploymentContext::default().purpose(purpose).budget(Budgeted::Yes);
            if fleet.contains("60") {
                context = context.clients(60.try_into().unwrap()).capacity("3/s".parse().unwrap());
            }
            let warnings: Vec<_> = check(&advised, &context)
                .into_iter()
                .filter(|finding| finding.rule().severity() == Severity::Warning)
                .collect();
            assert!(warnings.is_empty(), "{answers}: {advised}: {warnings:#?}");
        }
    }
}

/// Two of 14 questions were answered with what `check` warns of: jobs of more than 1,000 clients without a guard.
#[test]
fn check_does_not_warn_of_the_advice_or_the_advice_says_so() {
    for answers in [
        "for=background clients=1500 capacity=300/s deadline=60s",
        "for=background clients=2k capacity=100/s outage=5s",
        "for=interactive clients=1001 capacity=500/s deadline=30s",
        "for=near clients=300 capacity=60/s deadline=2s",
    ] {
        let advice = after(answers);
        let (mut facts, guards) = (DeploymentContext::default(), advice.guards());
        for pair in answers.split_whitespace() {
            facts = match pair.split_once('=').unwrap() {
                ("for", text) => facts.purpose(text.parse().unwrap()),
                ("clients", text) => facts.clients(stagger_core::text::parse_count(text).unwrap()),
                ("capacity", text) => facts.capacity(text.parse().unwrap()),
                ("deadline", text) => facts.deadline(stagger_core::text::parse_duration(text).unwrap().unwrap()),
                _ => facts,
            };
        }
        if guards != stagger_sim::outage::DefaultGuards::None {
            facts = facts.budget(Budgeted::With(guards));
        }
        let warns = check(advice.policy().unwrap(), &facts);
        let warns = warns.iter().any(|finding| finding.rule().severity() == Severity::Warning);
        assert!(!warns && advice.warnings().is_empty(), "{answers}: {}", advice.policy().unwrap());
    }
}

#[test]
fn no_jitter_is_below_a_twentieth() {
    for answers in ["for=far clients=100 capacity=50/s outage=25s", "for=background clients=60 capacity=3/s outage=5s"]
    {
        for candidate in &after(answers).front().unwrap().candidates {
            let (least, most) = candidate.policy.bounds(1).unwrap();
            let (width, middle) = ((most - least).as_secs_f64(), (most + least).as_secs_f64());
            assert!(width >= 0.0499 * middle, "{answers}: {}", candidate.policy);
        }
    }
}

#[test]
fn cancelled_advice_is_based_on_the_answers_alone() {
    let progress = Progress::new();
    progress.cancel_token().cancel();
    let answers = read("for=reconnecting clients=2k capacity=100/s");
    let advice = advise(&answers, Seed::new(1), &progress).unwrap();
    assert_eq!((advice.policy(), advice.front()), (Some(&profile::WEB_SOCKET.policy()), None));
}

#[test]
fn the_same_seed_gives_the_same_advice() {
    let answers = "for=background clients=500 capacity=50/s outage=3s";
    assert_eq!(after(answers), after(answers));
}

#[test]
fn a_fleet_that_cannot_be_simulated_is_an_error_with_a_fix() {
    let error = advise(&read("clients=100 capacity=1/s outage=100h"), Seed::new(1), &Progress::new()).unwrap_err();
    assert!(error.to_string().contains("raise the horizon"), "{error}");
}
