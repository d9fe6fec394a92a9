use regex::bytes::Regex;

use super::http::{Finding, Verdict};
use super::outcome_set::OutcomeSet;
use super::patterns::{LineMatcher, Patterns};
use super::status::{AttemptStatus, NoRetryReason};

/// Classifies the outcome of an attempt: the `--until` outcome, retryable, or final.
#[derive(Debug)]
pub(super) struct Classifier {
    pub(super) until: OutcomeSet,
    pub(super) retry_on: OutcomeSet,
    /// Whether `until` and `retry_on` are defaults, which yield to what HTTP says.
    pub(super) is_default: bool,
    pub(super) stop_on: Option<OutcomeSet>,
    /// [`NOT_RETRIED_BY_DEFAULT`]; elements that `retry_on` lists explicitly take precedence.
    pub(super) not_retried_by_default: OutcomeSet,
    pub(super) stdout: Patterns,
    pub(super) stderr: Patterns,
}

/// The observed result of an attempt.
#[derive(Debug)]
pub(super) struct Observation<'a> {
    pub(super) status: AttemptStatus,
    pub(super) stdout: &'a LineMatcher<'a>,
    pub(super) stderr: &'a LineMatcher<'a>,
    /// Whether the command wrote `stop` to its advice file.
    pub(super) stop_advised: bool,
    /// What is known from HTTP.
    pub(super) http: &'a Finding,
    /// Whether the reader of standard output has closed it, so that further attempts would be for nobody.
    pub(super) reader_gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Classification {
    /// The `--until` outcome was reached.
    Reached,
    Retry,
    Stop(NoRetryReason),
}

/// Outcomes that are not retried by default: a missing program stays missing, and ^C and ^\ are requests to stop.
pub(super) const NOT_RETRIED_BY_DEFAULT: &str = "126,127,SIGINT,SIGQUIT";

impl Classifier {
    /// Classifies an attempt. Whether another one can succeed and whether it is safe are two questions; the first may
    /// be answered by the user's sets and patterns, the second only by HTTP.
    pub(super) fn classify(&self, observation: &Observation<'_>) -> Classification {
        match self.classify_by_rules(observation) {
            Classification::Retry if !observation.http.is_safe => Classification::Stop(NoRetryReason::UnsafeToRetry),
            classification => classification,
        }
    }

    fn classify_by_rules(&self, observation: &Observation<'_>) -> Classification {
        let status = observation.status;
        let ran = !matches!(status, AttemptStatus::NotRun(_));
        let exited = matches!(status, AttemptStatus::Exit(_));
        let retry_if = self.any_matched(observation, |patterns| &patterns.retry_if);
        let stop_if = self.any_matched(observation, |patterns| &patterns.stop_if) == Some(true);

        // A command that prints "not ready" and exits with 0 has not succeeded.
        let success_contradicted = exited && retry_if == Some(true) && !stop_if;
        if ran && !success_contradicted && self.until.contains(status) {
            return Classification::Reached;
        }
        if observation.stop_advised {
            return Classification::Stop(NoRetryReason::Advice);
        }
        if observation.reader_gone {
            return Classification::Stop(NoRetryReason::ReaderGone);
        }
        if observation.http.forbids_retry {
            return Classification::Stop(NoRetryReason::Server);
        }
        if stop_if {
            return Classification::Stop(NoRetryReason::StopIf);
        }
        if self.is_in_stop_set(status) {
            return Classification::Stop(NoRetryReason::StopOn);
        }
        if success_contradicted {
            return Classification::Retry;
        }
        // Sets and patterns that the user has given take precedence over what HTTP says.
        let verdict = if self.is_default && retry_if.is_none() { observation.http.verdict } else { None };
        match verdict {
            Some(Verdict::Permanent(reason)) => return Classification::Stop(reason),
            Some(Verdict::Retryable(_)) => {}
            None if self.retry_on.contains(status) => {}
            None => return Classification::Stop(NoRetryReason::NotRetryOn),
        }
        // A command that was killed or timed out may not have printed the pattern yet, so this applies to exits only.
        if exited && retry_if == Some(false) {
            return Classification::Stop(NoRetryReason::NotRetryIf);
        }
        Classification::Retry
    }

    fn is_in_stop_set(&self, status: AttemptStatus) -> bool {
        let configured = self.stop_on.as_ref().is_some_and(|set| set.contains(status));
        configured || (self.not_retried_by_default.contains(status) && !self.retry_on.names_explicitly(status))
    }

    /// Returns whether any of these patterns matched; `None` if there are none.
    fn any_matched(&self, observation: &Observation<'_>, of: impl Fn(&Patterns) -> &Vec<Regex>) -> Option<bool> {
        let streams = [(&self.stdout, observation.stdout), (&self.stderr, observation.stderr)];
        let mut found =
            streams.iter().flat_map(|(patterns, matcher)| of(patterns).iter().map(|regex| matcher.matched(regex)));
        let first = found.next()?;
        Some(first || found.any(|found| found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::http::AnnouncedWaits;
    use crate::run::status::NotRun;

    fn classifier(until: &str, retry_on: &str, stop_on: Option<&str>) -> Classifier {
        Classifier {
            until: until.parse().unwrap(),
            retry_on: retry_on.parse().unwrap(),
            is_default: retry_on == DEFAULT,
            stop_on: stop_on.map(|set| set.parse().unwrap()),
            not_retried_by_default: NOT_RETRIED_BY_DEFAULT.parse().unwrap(),
            stdout: Patterns::default(),
            stderr: Patterns::default(),
        }
    }

    fn classify(classifier: &Classifier, status: AttemptStatus, stderr: &str) -> Classification {
        let silent = LineMatcher::new([]);
        let mut matcher = LineMatcher::new(classifier.stderr.all());
        matcher.feed(stderr.as_bytes());
        matcher.finish();
        classifier.classify(&Observation {
            status,
            stdout: &silent,
            stderr: &matcher,
            stop_advised: false,
            http: &Finding::new(None, AnnouncedWaits::Ignore, status, None),
            reader_gone: false,
        })
    }

    const DEFAULT: &str = "fail,timeout,signal";
    const SIGINT: i32 = 2;

    #[test]
    fn outcomes_are_classified_by_the_sets() {
        use Classification::{Reached, Retry, Stop};
        let missing = AttemptStatus::NotRun(NotRun::NotFound);
        for (until, retry_on, stop_on, status, want) in [
            ("success", DEFAULT, None, AttemptStatus::Exit(0), Reached),
            ("success", DEFAULT, None, AttemptStatus::Exit(1), Retry),
            ("success", DEFAULT, None, AttemptStatus::Timeout, Retry),
            ("success", DEFAULT, None, AttemptStatus::Signal(9), Retry),
            ("success", DEFAULT, None, AttemptStatus::Signal(SIGINT), Stop(NoRetryReason::StopOn)),
            ("success", DEFAULT, None, missing, Stop(NoRetryReason::StopOn)),
            ("success", DEFAULT, None, AttemptStatus::Exit(127), Stop(NoRetryReason::StopOn)),
            ("success", "any", None, AttemptStatus::Exit(127), Stop(NoRetryReason::StopOn)),
            ("success", "127", None, missing, Retry),
            ("success", "fail,SIGINT", None, AttemptStatus::Signal(SIGINT), Retry),
            ("success", "1,7", None, AttemptStatus::Exit(2), Stop(NoRetryReason::NotRetryOn)),
            ("success", "1,7", None, AttemptStatus::Timeout, Stop(NoRetryReason::NotRetryOn)),
            ("success", DEFAULT, Some("3"), AttemptStatus::Exit(3), Stop(NoRetryReason::StopOn)),
            ("success", DEFAULT, Some("3"), missing, Stop(NoRetryReason::StopOn)),
            ("success", "3", Some("3"), AttemptStatus::Exit(3), Stop(NoRetryReason::StopOn)),
            ("fail", "any", None, AttemptStatus::Exit(0), Retry),
            ("fail", "any", None, AttemptStatus::Exit(1), Reached),
            ("fail", "any", None, missing, Stop(NoRetryReason::StopOn)),
            ("none", "any", None, AttemptStatus::Exit(0), Retry),
        ] {
            assert_eq!(
                classify(&classifier(until, retry_on, stop_on), status, ""),
                want,
                "{until} {retry_on} {stop_on:?} {status:?}"
            );
        }
    }

    #[test]
    fn output_patterns_restrict_retries_and_can_override_exit_code_0() {
        use Classification::{Reached, Retry, Stop};
        let mut classifier = classifier("success", DEFAULT, None);
        classifier.stderr.retry_if.push(Regex::new("timed out").unwrap());
        classifier.stderr.stop_if.push(Regex::new("denied").unwrap());
        for (status, stderr, want) in [
            (AttemptStatus::Exit(1), "timed out", Retry),
            (AttemptStatus::Exit(1), "no such host", Stop(NoRetryReason::NotRetryIf)),
            (AttemptStatus::Exit(1), "timed out\ndenied", Stop(NoRetryReason::StopIf)),
            (AttemptStatus::Exit(0), "", Reached),
            (AttemptStatus::Exit(0), "timed out", Retry),
            (AttemptStatus::Exit(0), "denied", Reached),
            (AttemptStatus::Timeout, "", Retry),
            (AttemptStatus::Signal(9), "", Retry),
            (AttemptStatus::Timeout, "denied", Stop(NoRetryReason::StopIf)),
        ] {
            assert_eq!(classify(&classifier, status, stderr), want, "{status:?} {stderr:?}");
        }
    }
}
