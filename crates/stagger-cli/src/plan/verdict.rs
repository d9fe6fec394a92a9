use core::time::Duration;

use stagger_sim::lint::{Curve, Fit};

use super::brief::brief;
use super::clients::Client;
use super::forecast::{Distribution, Forecast, Row};

/// Whether drawn delays span their intervals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) checks: Vec<Check>,
    pub(crate) answer: Answer,
    /// How improbable draws must be to count as mismatch.
    pub(crate) threshold: f64,
    /// The answer and its grounds, in a sentence.
    pub(crate) text: String,
}

/// Do the delays span their intervals?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// They have no interval to span: clients stay in step, as the policy says.
    Synchronized,
    /// So few draws say nothing.
    TooFew,
    /// They contradict the forecast.
    No,
}

/// What became of the delays that were drawn for one retry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Check {
    pub(crate) retry: u32,
    /// The forecast's bounds.
    pub(crate) min: Duration,
    pub(crate) max: Duration,
    /// The least and the greatest delay drawn.
    pub(crate) drawn_min: Duration,
    pub(crate) drawn_max: Duration,
    /// `None` where the interval is a single length.
    pub(crate) fit: Option<Fit>,
}

/// Draws below which every verdict would be a guess.
const MIN_CLIENTS: u32 = 100;

/// How often draws that are as forecast may be called wrong, over all retries together.
const FALSE_ALARM_RATE: f64 = 0.001;

impl Verdict {
    /// Looks at what each client drew for each retry of the forecast.
    pub(crate) fn new(forecast: &Forecast, clients: &[Client]) -> Self {
        let mut checks = Vec::new();
        // Once the cap rules, one retry is like the one before it, and so is the curve, which costs.
        let mut known: Option<(Distribution, Curve)> = None;
        for (at, row) in forecast.rows.iter().enumerate() {
            let drawn = clients.iter().filter_map(|client| client.delays.get(at).copied()).collect();
            let curve = match known.take() {
                Some((distribution, curve)) if distribution == row.delay => Some(curve),
                _ => Curve::new(|shares| forecast.policy.quantiles(row.retry, shares)),
            };
            let Some(curve) = curve else {
                continue;
            };
            checks.extend(Check::new(row, &curve, drawn));
            known = Some((row.delay, curve));
        }
        Self::from_checks(checks, clients.len())
    }

    fn from_checks(checks: Vec<Check>, clients: usize) -> Self {
        let fits: Vec<(u32, &Fit)> =
            checks.iter().filter_map(|check| Some((check.retry, check.fit.as_ref()?))).collect();
        let threshold = FALSE_ALARM_RATE / (2 * fits.len()).max(1) as f64;
        let mismatch = fits.iter().find(|(_, fit)| fit.strays(threshold));
        let (answer, text) = if fits.is_empty() {
            (Answer::Synchronized, synchronized(&checks, clients))
        } else if clients < MIN_CLIENTS as usize {
            let text = format!("too few to tell: {clients} clients; --sample {MIN_CLIENTS} or more can");
            (Answer::TooFew, text)
        } else if let Some((retry, fit)) = mismatch {
            (Answer::No, contradiction(*retry, fit))
        } else {
            (Answer::Yes, agreement(&checks, &fits, clients))
        };
        Self { checks, answer, threshold, text }
    }
}

impl Check {
    /// `None` if nothing was drawn.
    fn new(row: &Row, curve: &Curve, mut drawn: Vec<Duration>) -> Option<Self> {
        drawn.sort_unstable();
        let (drawn_min, drawn_max) = (*drawn.first()?, *drawn.last()?);
        let (min, max) = (row.delay.min, row.delay.max);
        let fixed = min == max && drawn_min == min && drawn_max == max;
        let fit = (!fixed).then(|| Fit::new(curve, (min, max), &drawn));
        Some(Self { retry: row.retry, min, max, drawn_min, drawn_max, fit })
    }
}

fn synchronized(checks: &[Check], clients: usize) -> String {
    match checks {
        [] => "there is no retry, and so no delay to draw".to_owned(),
        _ if checks.iter().all(|check| check.max.is_zero()) => {
            format!("no: there is no delay, and all {clients} clients retry at once; give the policy a base")
        }
        [only] => format!("no: all {clients} clients wait the same {}; add --jitter full", brief(only.min)),
        _ => format!("no: all {clients} clients wait the same before each retry; add --jitter full"),
    }
}

fn contradiction(retry: u32, fit: &Fit) -> String {
    let (from, to) = fit.reach;
    format!(
        "no: before retry {retry} the delays do not fall as forecast. They reach from {} to {} of their \
         interval, {:.3} from the forecast at most (p {}): please report this as a fault",
        percent(from),
        percent(to),
        fit.distance,
        p_value(fit.p_value.min(fit.p_ends)),
    )
}

fn agreement(checks: &[Check], fits: &[(u32, &Fit)], clients: usize) -> String {
    let from = fits.iter().map(|(_, fit)| fit.reach.0).fold(0.0, f64::max);
    let to = fits.iter().map(|(_, fit)| fit.reach.1).fold(1.0, f64::min);
    let least = fits.iter().map(|(_, fit)| fit.p_value).fold(1.0, f64::min);
    let (whose, each) = match fits {
        [_] => ("their interval", ""),
        _ => ("their intervals", ", each"),
    };
    let still = match checks.len() - fits.len() {
        0 => String::new(),
        1 => "; before one retry all wait the same".to_owned(),
        still => format!("; before {still} retries all wait the same"),
    };
    format!(
        "yes: the delays of {clients} clients span {whose}{each} from {} or less to {} or more, and fall there as \
         forecast (least p {}){still}",
        percent(from),
        percent(to),
        p_value(least),
    )
}

/// A share as text, fine enough not to round 99.8 % up.
pub(crate) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).round() / 10.0;
    format!("{tenths}%")
}

/// A probability as text: what is too small to matter by how much is not spelt out.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};

    use super::*;
    use crate::plan::clients;

    fn forecast(policy: &str) -> Forecast {
        Forecast::new(policy.parse().unwrap(), None)
    }

    fn drawn(policy: &Policy, count: usize) -> Vec<Client> {
        clients::draw(policy, Seed::new(1), count, 8)
    }

    /// The verdict on the policy's own draws, each changed by `change`.
    fn verdict(policy: &str, count: usize, change: impl Fn(Duration) -> Duration) -> Verdict {
        let forecast = forecast(policy);
        let mut clients = drawn(&forecast.policy, count);
        for client in &mut clients {
            for delay in &mut client.delays {
                *delay = change(*delay);
            }
        }
        Verdict::new(&forecast, &clients)
    }

    const FULL: &str = "constant delay=10s jitter=full max-attempts=4";

    #[test]
    fn what_the_library_draws_spans_its_intervals_for_every_jitter() {
        for jitter in ["full", "equal", "decorrelated", "±20%"] {
            let policy = format!("exponential base=1s cap=10s jitter={jitter} max-attempts=7");
            let verdict = verdict(&policy, 4000, |delay| delay);
            assert_eq!(verdict.answer, Answer::Yes, "{jitter}: {}", verdict.text);
            assert!(verdict.text.starts_with("yes: the delays of 4000 clients"), "{}", verdict.text);
        }
    }

    #[test]
    fn delays_that_pile_up_at_a_cap_do_not_pass() {
        let cap = Duration::from_millis(9_500);
        let verdict = verdict(FULL, 1000, |delay| delay.min(cap));
        assert_eq!(verdict.answer, Answer::No, "{}", verdict.text);
        assert!(verdict.text.contains("before retry 1"), "{}", verdict.text);
    }

    #[test]
    fn delays_that_pile_up_in_the_middle_do_not_pass_though_they_reach_both_ends() {
        let middle = Duration::from_secs(4)..Duration::from_secs(6);
        let verdict = verdict(FULL, 1000, |delay| if middle.contains(&delay) { middle.start } else { delay });
        assert_eq!(verdict.answer, Answer::No, "{}", verdict.text);
    }

    #[test]
    fn delays_that_leave_out_an_end_do_not_pass() {
        for (factor, offset) in [(0.98, 0.0), (0.98, 0.2)] {
            let offset = Duration::from_secs_f64(offset);
            let verdict = verdict(FULL, 1000, |delay| delay.mul_f64(factor) + offset);
            assert_eq!(verdict.answer, Answer::No, "{factor}, {offset:?}: {}", verdict.text);
        }
    }

    #[test]
    fn delays_on_a_coarse_grid_do_not_pass() {
        let verdict = verdict(FULL, 1000, |delay| Duration::from_secs(delay.as_secs()));
        assert_eq!(verdict.answer, Answer::No, "{}", verdict.text);
    }

    #[test]
    fn delays_outside_their_interval_do_not_pass_even_where_all_should_be_one() {
        let policy = "constant delay=1s jitter=none max-attempts=3";
        let verdict = verdict(policy, 1000, |delay| delay * 2);
        assert_eq!(verdict.answer, Answer::No, "{}", verdict.text);
    }

    #[test]
    fn without_jitter_all_clients_wait_the_same() {
        let verdict = verdict("exponential base=1s cap=30s jitter=none", 1000, |delay| delay);
        assert_eq!(verdict.answer, Answer::Synchronized);
        assert!(verdict.text.contains("all 1000 clients wait the same"), "{}", verdict.text);
    }

    #[test]
    fn a_few_clients_prove_nothing() {
        assert_eq!(verdict(FULL, MIN_CLIENTS as usize - 1, |delay| delay).answer, Answer::TooFew);
        assert_eq!(verdict(FULL, MIN_CLIENTS as usize, |delay| delay).answer, Answer::Yes);
    }

    #[test]
    fn right_draws_are_called_wrong_about_as_seldom_as_promised() {
        // Of 300 verdicts 0.3 are expected to be wrong; more than two would be a wonder.
        let forecast = forecast(FULL);
        let wrong = (0..300).filter(|seed| {
            let clients = clients::draw(&forecast.policy, Seed::new(*seed), 200, 3);
            Verdict::new(&forecast, &clients).answer == Answer::No
        });
        assert!(wrong.count() <= 2);
    }
}
