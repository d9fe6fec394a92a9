use regex::bytes::Regex;

use super::ended::Ended;
use super::pattern::Watch;
use super::set::Set;

/// Decides what the result of an attempt means: what was wanted, worth another attempt, or beyond help.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) until: Set,
    pub(super) retry_on: Set,
    pub(super) stop_on: Option<Set>,
    /// [`NEVER_BY_DEFAULT`]; it yields to what `retry_on` names.
    pub(super) never: Set,
    pub(super) stdout: Patterns,
    pub(super) stderr: Patterns,
}

/// What one stream of the command is searched for.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    pub(super) retry_if: Vec<Regex>,
    pub(super) stop_if: Vec<Regex>,
}

/// What an attempt has shown.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) ended: Ended,
    pub(super) stdout: &'a Watch<'a>,
    pub(super) stderr: &'a Watch<'a>,
    /// The command wrote `stop` into its advice file.
    pub(super) advised_to_stop: bool,
    /// Whoever read standard output has gone, and that is what killed the command.
    pub(super) reader_is_gone: bool,
}

/// What the result means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is what `--until` asks for.
    Reached,
    /// Another attempt may help.
    Retry,
    /// No further attempt would help.
    Stop(Why),
}

/// Why a failure is not worth another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is in the given `--stop-on`, or in its default.
    StopOn,
    /// It is not in `--retry-on`.
    NotRetryOn,
    /// `--stop-if-…` was found.
    StopIf,
    /// `--retry-if-…` was not found.
    NotRetryIf,
    /// The command said so.
    Advice,
    /// Nobody reads standard output any more.
    ReaderGone,
}

/// A missing program stays missing, and whoever typed ^C or ^\ means it.
pub(super) const NEVER_BY_DEFAULT: &str = "126,127,SIGINT,SIGQUIT";

impl Judge {
    pub(super) fn verdict(&self, evidence: &Evidence<'_>) -> Verdict {
        let ended = evidence.ended;
        let ran = !matches!(ended, Ended::NotRun(_));
        let told = matches!(ended, Ended::Exit(_));
        let retry_if = self.any_found(evidence, |patterns| &patterns.retry_if);
        let stop_if = self.any_found(evidence, |patterns| &patterns.stop_if) == Some(true);

        // A command that says "not ready" and exits 0 has not done what was wanted.
        let belied = told && retry_if == Some(true) && !stop_if;
        if ran && !belied && self.until.contains(ended) {
            return Verdict::Reached;
        }
        if evidence.advised_to_stop {
            return Verdict::Stop(Why::Advice);
        }
        if evidence.reader_is_gone {
            return Verdict::Stop(Why::ReaderGone);
        }
        if stop_if {
            return Verdict::Stop(Why::StopIf);
        }
        if self.stops_on(ended) {
            return Verdict::Stop(Why::StopOn);
        }
        if belied {
            return Verdict::Retry;
        }
        if !self.retry_on.contains(ended) {
            return Verdict::Stop(Why::NotRetryOn);
        }
        // What was killed or timed out may not have come to its point; only a command that exited is held to it.
        if told && retry_if == Some(false) {
            return Verdict::Stop(Why::NotRetryIf);
        }
        Verdict::Retry
    }

    fn stops_on(&self, ended: Ended) -> bool {
        let asked = self.stop_on.as_ref().is_some_and(|set| set.contains(ended));
        asked || (self.never.contains(ended) && !self.retry_on.names(ended))
    }

    /// Whether one of these patterns was found; `None` if there are none.
    fn any_found(&self, evidence: &Evidence<'_>, of: impl Fn(&Patterns) -> &Vec<Regex>) -> Option<bool> {
        let streams = [(&self.stdout, evidence.stdout), (&self.stderr, evidence.stderr)];
        let mut found =
            streams.iter().flat_map(|(patterns, watch)| of(patterns).iter().map(|regex| watch.found(regex)));
        let first = found.next()?;
        Some(first || found.any(|found| found))
    }
}

impl Patterns {
    pub(super) fn all(&self) -> impl Iterator<Item = &Regex> {
        self.retry_if.iter().chain(&self.stop_if)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ended::NotRun;
    use super::*;

    fn judge(until: &str, retry_on: &str, stop_on: Option<&str>) -> Judge {
        Judge {
            until: until.parse().unwrap(),
            retry_on: retry_on.parse().unwrap(),
            stop_on: stop_on.map(|set| set.parse().unwrap()),
            never: NEVER_BY_DEFAULT.parse().unwrap(),
            stdout: Patterns::default(),
            stderr: Patterns::default(),
        }
    }

    fn verdict(judge: &Judge, ended: Ended, stderr: &str) -> Verdict {
        let silent = Watch::new([]);
        let mut watch = Watch::new(judge.stderr.all());
        watch.see(stderr.as_bytes());
        watch.finish();
        judge.verdict(&Evidence {
            ended,
            stdout: &silent,
            stderr: &watch,
            advised_to_stop: false,
            reader_is_gone: false,
        })
    }

    const DEFAULT: &str = "fail,timeout,signal";
    const SIGINT: i32 = 2;

    #[test]
    fn results_mean_what_the_sets_say() {
        use Verdict::{Reached, Retry, Stop};
        let missing = Ended::NotRun(NotRun::Missing);
        for (until, retry_on, stop_on, ended, want) in [
            ("success", DEFAULT, None, Ended::Exit(0), Reached),
            ("success", DEFAULT, None, Ended::Exit(1), Retry),
            ("success", DEFAULT, None, Ended::Timeout, Retry),
            ("success", DEFAULT, None, Ended::Signal(9), Retry),
            ("success", DEFAULT, None, Ended::Signal(SIGINT), Stop(Why::StopOn)),
            ("success", DEFAULT, None, missing, Stop(Why::StopOn)),
            ("success", DEFAULT, None, Ended::Exit(127), Stop(Why::StopOn)),
            ("success", "any", None, Ended::Exit(127), Stop(Why::StopOn)),
            ("success", "127", None, missing, Retry),
            ("success", "fail,SIGINT", None, Ended::Signal(SIGINT), Retry),
            ("success", "1,7", None, Ended::Exit(2), Stop(Why::NotRetryOn)),
            ("success", "1,7", None, Ended::Timeout, Stop(Why::NotRetryOn)),
            ("success", DEFAULT, Some("3"), Ended::Exit(3), Stop(Why::StopOn)),
            ("success", DEFAULT, Some("3"), missing, Stop(Why::StopOn)),
            ("success", "3", Some("3"), Ended::Exit(3), Stop(Why::StopOn)),
            ("fail", "any", None, Ended::Exit(0), Retry),
            ("fail", "any", None, Ended::Exit(1), Reached),
            ("fail", "any", None, missing, Stop(Why::StopOn)),
            ("none", "any", None, Ended::Exit(0), Retry),
        ] {
            assert_eq!(
                verdict(&judge(until, retry_on, stop_on), ended, ""),
                want,
                "{until} {retry_on} {stop_on:?} {ended:?}"
            );
        }
    }

    #[test]
    fn output_narrows_what_is_retried_and_can_belie_an_exit_code() {
        use Verdict::{Reached, Retry, Stop};
        let mut judge = judge("success", DEFAULT, None);
        judge.stderr.retry_if.push(Regex::new("timed out").unwrap());
        judge.stderr.stop_if.push(Regex::new("denied").unwrap());
        for (ended, stderr, want) in [
            (Ended::Exit(1), "timed out", Retry),
            (Ended::Exit(1), "no such host", Stop(Why::NotRetryIf)),
            (Ended::Exit(1), "timed out\ndenied", Stop(Why::StopIf)),
            (Ended::Exit(0), "", Reached),
            (Ended::Exit(0), "timed out", Retry),
            (Ended::Exit(0), "denied", Reached),
            (Ended::Timeout, "", Retry),
            (Ended::Signal(9), "", Retry),
            (Ended::Timeout, "denied", Stop(Why::StopIf)),
        ] {
            assert_eq!(verdict(&judge, ended, stderr), want, "{ended:?} {stderr:?}");
        }
    }
}
