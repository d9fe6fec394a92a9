use super::comparison::Comparison;
use stagger_terminal::plot::svg::small;
use stagger_terminal::plot::{Axis, Figure, Hue, Point, Series, Shape, Span, Unit};

/// Maximum number of intervals of a line.
const INTERVALS: usize = 110;

/// Returns the picture of an incident as an SVG document: its course without and with the cure.
pub(super) fn picture(comparison: &Comparison) -> String {
    let incident = comparison.incident;
    let (failure, cure) = (&comparison.failure.course, &comparison.cure.course);
    let seconds = failure.per_second.len().max(cure.per_second.len()).max(1);
    let width = seconds.div_ceil(INTERVALS);
    let lines = [
        (Series::light(failure.reference.0, Hue::INK, Shape::Steps(means(&failure.reference.1, width, seconds)))),
        (Series::strong(failure.name, Hue::nth(1), Shape::Steps(means(&failure.per_second, width, seconds)))),
        (Series::strong(
            format!("{} with cure", cure.name),
            Hue::nth(0),
            Shape::Steps(means(&cure.per_second, width, seconds)),
        )),
    ];
    let points = lines.iter().flat_map(|series| match &series.shape {
        Shape::Steps(points) => points.iter().map(|point| point.y).collect(),
        _ => Vec::new(),
    });
    let most = points.fold(1.0, f64::max);
    let mut series = Vec::new();
    let (start, end) = failure.fault_s;
    if end > start {
        series.push(Series::light(
            "fault",
            Hue::INK,
            Shape::Band([start, end].map(|x| Span { x, low: 0.0, high: most }).to_vec()),
        ));
    }
    series.extend(lines);
    let finding = |course: &super::outcome::Outcome| {
        course.findings.first().map_or(String::new(), |(name, finding)| format!("{name}: {finding}"))
    };
    let description = format!(
        "{} over time. Without the cure, {}; with it, {}.",
        failure.counted,
        finding(&comparison.failure),
        finding(&comparison.cure)
    );
    small(&Figure {
        title: incident.title.to_owned(),
        description,
        x: Axis::new("time", Unit::Seconds).including(0.0).including(seconds as f64),
        y: Axis::new(failure.counted, Unit::Count).including(0.0).including(most),
        series,
    })
}

/// Returns the means of a series over intervals of `width` seconds, up to `until` seconds.
fn means(per_second: &[f64], width: usize, until: usize) -> Vec<Point> {
    let at = |nth: usize| per_second.get(nth).copied().unwrap_or(0.0);
    let mean = |from: usize| (from..from + width).map(at).sum::<f64>() / width as f64;
    let points = (0..until).step_by(width).map(|from| Point { x: from as f64, y: mean(from) });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_ends_early_continues_with_zero() {
        let points: Vec<(f64, f64)> = means(&[2.0, 4.0, 6.0], 2, 6).iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(points, [(0.0, 3.0), (2.0, 3.0), (4.0, 0.0)]);
    }
}
