use core::time::Duration;

use stagger_sim::{GoodnessOfFit, QuantileCurve};

use super::forecast::{Client, Distribution, Forecast, Row, brief};

/// The verdict whether drawn delays span their intervals as forecast.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub checks: Vec<Check>,
    pub answer: Answer,
    /// Probability below which draws count as a mismatch.
    pub threshold: f64,
    /// The answer and its reason, as a sentence.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    /// The intervals are empty: all clients wait the same, as the policy specifies.
    Synchronized,
    /// There are too few draws to tell.
    TooFew,
    No,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Check {
    pub retry: u32,
    pub min: Duration,
    pub max: Duration,
    /// The shortest and the longest delay drawn.
    pub drawn_min: Duration,
    pub drawn_max: Duration,
    /// `None` if the interval is a single duration.
    pub fit: Option<GoodnessOfFit>,
}

/// Minimum number of clients for a verdict.
const MIN_CLIENTS: u32 = 100;

/// Probability of a mismatch for draws from the forecast, over all retries.
const FALSE_ALARM_RATE: f64 = 0.001;

impl Verdict {
    /// Compares the draws of each client with the forecast of each retry.
    pub(super) fn new(forecast: &Forecast, clients: &[Client]) -> Self {
        let mut checks = Vec::new();
        // At the cap all retries have the same distribution; its curve is expensive, so it is reused.
        let mut known: Option<(Distribution, QuantileCurve)> = None;
        for (at, row) in forecast.rows.iter().enumerate() {
            let drawn = clients.iter().filter_map(|client| client.delays.get(at).copied()).collect();
            let curve = match known.take() {
                Some((distribution, curve)) if distribution == row.delay => Some(curve),
                _ => QuantileCurve::new(|shares| forecast.policy.quantiles(row.retry, shares)),
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
        let fits: Vec<(u32, &GoodnessOfFit)> =
            checks.iter().filter_map(|check| Some((check.retry, check.fit.as_ref()?))).collect();
        let threshold = FALSE_ALARM_RATE / (2 * fits.len()).max(1) as f64;
        let mismatch = fits.iter().find(|(_, fit)| fit.is_rejected(threshold));
        let (answer, text) = if fits.is_empty() {
            (Answer::Synchronized, synchronized(&checks, clients))
        } else if clients < MIN_CLIENTS as usize {
            let text = format!("too few to tell: {clients} clients; use --sample {MIN_CLIENTS} or more");
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
    /// Compares the delays drawn for one retry with its curve; `None` if none were drawn.
    fn new(row: &Row, curve: &QuantileCurve, mut drawn: Vec<Duration>) -> Option<Self> {
        drawn.sort_unstable();
        let (drawn_min, drawn_max) = (*drawn.first()?, *drawn.last()?);
        let (min, max) = (row.delay.min, row.delay.max);
        let fixed = min == max && drawn_min == min && drawn_max == max;
        let fit = if fixed { None } else { Some(GoodnessOfFit::new(curve, (min, max), &drawn)) };
        Some(Self { retry: row.retry, min, max, drawn_min, drawn_max, fit })
    }
}

fn synchronized(checks: &[Check], clients: usize) -> String {
    match checks {
        [] => "the policy does not retry; there are no delays to draw".to_owned(),
        _ if checks.iter().all(|check| check.max.is_zero()) => {
            format!("no: there is no delay; all {clients} clients retry immediately; set a base")
        }
        [only] => format!("no: all {clients} clients wait the same {}; add --jitter full", brief(only.min)),
        _ => format!("no: all {clients} clients wait the same before each retry; add --jitter full"),
    }
}

fn contradiction(retry: u32, fit: &GoodnessOfFit) -> String {
    let (from, to) = fit.reach;
    format!(
        "no: before retry {retry} the delays do not match the forecast. They cover {} to {} of their interval, with a \
         distance of {:.3} from the forecast (p {}); please report this as a bug",
        percent(from),
        percent(to),
        fit.distance,
        p_value(fit.p_value.min(fit.p_ends)),
    )
}

fn agreement(checks: &[Check], fits: &[(u32, &GoodnessOfFit)], clients: usize) -> String {
    let from = fits.iter().map(|(_, fit)| fit.reach.0).fold(0.0, f64::max);
    let to = fits.iter().map(|(_, fit)| fit.reach.1).fold(1.0, f64::min);
    let least = fits.iter().map(|(_, fit)| fit.p_value).fold(1.0, f64::min);
    let (intervals, each) = match fits {
        [_] => ("their interval", ""),
        _ => ("their intervals", ", each"),
    };
    let fixed = match checks.len() - fits.len() {
        0 => String::new(),
        1 => "; before one retry all clients wait the same".to_owned(),
        fixed => format!("; before {fixed} retries all clients wait the same"),
    };
    format!(
        "yes: the delays of {clients} clients span {intervals}{each} from {} or less to {} or more, and match the \
         forecast (minimum p {}){fixed}",
        percent(from),
        percent(to),
        p_value(least),
    )
}

/// Formats a share with one decimal, so that 99.8% is not rounded up.
pub(super) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).round() / 10.0;
    format!("{tenths}%")
}

/// Formats a probability; below 0.001 only that bound.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};

    use super::*;
    use crate::plan::forecast::draw;

    fn forecast(policy: &str) -> Forecast {
        Forecast::new(policy.parse().unwrap(), None)
    }

    fn drawn(policy: &Policy, count: usize) -> Vec<Client> {
        draw(policy, Seed::new(1), count, 8)
    }

    /// Returns the verdict on the policy's own draws, each modified by `change`.
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
    fn draws_of_the_library_span_their_intervals_for_every_jitter() {
        for jitter in ["full", "equal", "decorrelated", "±20%"] {
            let policy = format!("exponential base=1s cap=10s jitter={jitter} max-attempts=7");
            let verdict = verdict(&policy, 4000, |delay| delay);
            assert_eq!(verdict.answer, Answer::Yes, "{jitter}: {}", verdict.text);
            assert!(verdict.text.starts_with("yes: the delays of 4000 clients"), "{}", verdict.text);
        }
    }

    #[test]
    fn delays_that_differ_from_the_forecast_fail() {
        const FIXED: &str = "constant delay=1s jitter=none max-attempts=3";
        let ms = Duration::from_millis;
        let changes: [(&str, &str, &dyn Fn(Duration) -> Duration); 6] = [
            ("concentrated at a cap", FULL, &|delay| delay.min(ms(9_500))),
            ("concentrated in the middle, although they reach both ends", FULL, &|delay| {
                if (ms(4_000)..ms(6_000)).contains(&delay) { ms(4_000) } else { delay }
            }),
            ("not at the upper end", FULL, &|delay| delay.mul_f64(0.98)),
            ("not at both ends", FULL, &|delay| delay.mul_f64(0.98) + ms(200)),
            ("on a coarse grid", FULL, &|delay| Duration::from_secs(delay.as_secs())),
            ("outside of an interval that is a single duration", FIXED, &|delay| delay * 2),
        ];
        for (what, policy, change) in changes {
            let verdict = verdict(policy, 1000, change);
            assert_eq!(verdict.answer, Answer::No, "{what}: {}", verdict.text);
            assert!(verdict.text.contains("before retry 1"), "{what}: {}", verdict.text);
        }
    }

    #[test]
    fn without_jitter_all_clients_wait_the_same() {
        let verdict = verdict("exponential base=1s cap=30s jitter=none", 1000, |delay| delay);
        assert_eq!(verdict.answer, Answer::Synchronized);
        assert!(verdict.text.contains("all 1000 clients wait the same"), "{}", verdict.text);
    }

    #[test]
    fn too_few_clients_give_no_verdict() {
        assert_eq!(verdict(FULL, MIN_CLIENTS as usize - 1, |delay| delay).answer, Answer::TooFew);
        assert_eq!(verdict(FULL, MIN_CLIENTS as usize, |delay| delay).answer, Answer::Yes);
    }

    #[test]
    fn the_false_alarm_rate_is_as_documented() {
        // Of 300 verdicts 0.3 are expected to be wrong; more than two are very unlikely.
        let forecast = forecast(FULL);
        let wrong = (0..300).filter(|seed| {
            let clients = draw(&forecast.policy, Seed::new(*seed), 200, 3);
            Verdict::new(&forecast, &clients).answer == Answer::No
        });
        assert!(wrong.count() <= 2);
    }
}
