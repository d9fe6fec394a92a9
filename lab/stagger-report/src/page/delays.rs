use stagger_core::Policy;

use stagger_terminal::plot::{Axis, Figure, Hue, Point, Series, Shape, Span, Unit};

/// Maximum number of retries in a picture.
const MAX_RETRIES: u32 = 10;

/// Returns a picture for each policy with its title, all on one scale: the delays before each retry, from the shortest to
/// the longest, and their mean.
pub fn delays(policies: &[(&str, &Policy)]) -> Vec<Figure> {
    let spans: Vec<Vec<Span>> = policies.iter().map(|(_, policy)| spans(policy)).collect();
    let longest = spans.iter().flatten().map(|span| span.high).fold(0.0, f64::max);
    policies.iter().zip(spans).map(|((title, policy), spans)| picture(title, policy, spans, longest)).collect()
}

/// Returns the shortest and the longest delay before each retry that is shown.
fn spans(policy: &Policy) -> Vec<Span> {
    let last = policy.max_attempts().map_or(MAX_RETRIES, |most| most.get().saturating_sub(1).min(MAX_RETRIES));
    let span = |retry: u32| {
        let (low, high) = policy.bounds(retry)?;
        Some(Span { x: f64::from(retry), low: low.as_secs_f64(), high: high.as_secs_f64() })
    };
    (1..=last).filter_map(span).collect()
}

fn picture(title: &str, policy: &Policy, spans: Vec<Span>, top: f64) -> Figure {
    let mean = |(span, retry): (&Span, u32)| Some(Point { x: span.x, y: policy.mean(retry)?.as_secs_f64() });
    let means = spans.iter().zip(1..).filter_map(mean).collect();
    let longest = spans.iter().map(|span| span.high).fold(0.0, f64::max);
    Figure {
        title: title.to_owned(),
        description: format!(
            "The delays before the first retries ({}), from the shortest to the longest; up to {}.",
            spans.len(),
            Unit::Seconds.label(longest)
        ),
        x: Axis::new("retry", Unit::Count),
        y: Axis::new("delay", Unit::Seconds).including(0.0).including(top),
        series: vec![
            Series::light("min to max", Hue::SKY, Shape::Band(spans)),
            Series::strong("mean", Hue::INK, Shape::Line(means)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_range_of_every_retry() {
        let policy: Policy = "exponential base=1s cap=4s jitter=equal max-attempts=4".parse().unwrap();
        let longer: Policy = "constant base=9s jitter=none".parse().unwrap();
        let figures = delays(&[("ours", &policy), ("theirs", &longer)]);
        let Shape::Band(spans) = &figures[0].series[0].shape else { panic!("{figures:?}") };
        let tops: Vec<f64> = spans.iter().map(|span| span.high).collect();
        assert_eq!((tops, spans[0].low), (vec![1.0, 2.0, 4.0], 0.5));
        assert!(figures[0].description.ends_with("up to 4s."), "{}", figures[0].description);
        let scale = |figure: &Figure| figure.scales().1.high;
        assert!(scale(&figures[0]) >= 9.0 && (scale(&figures[0]) - scale(&figures[1])).abs() < 1e-9);
    }

    #[test]
    fn a_policy_without_retries_has_an_empty_picture() {
        let policy: Policy = "zero max-attempts=1".parse().unwrap();
        let figures = delays(&[("none", &policy)]);
        assert!(matches!(&figures[0].series[0].shape, Shape::Band(spans) if spans.is_empty()));
    }
}
