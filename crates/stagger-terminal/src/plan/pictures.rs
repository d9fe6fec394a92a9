use core::time::Duration;

use super::forecast::{Client, Distribution, Forecast, Row, brief, span};
use super::verdict::Verdict;
use crate::plot::{Axis, Bar, Figure, Hue, Point, Series, Shape, Spacing, Span, Unit};

/// How the waits of individual clients are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientStyle {
    /// A mark at each retry, where lines would overlap.
    Marks,
    /// A mark at each retry and a line from one to the next.
    Lines,
}

/// The duration that a plot over the retries shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    Delay,
    TotalWait,
}

/// Returns the plot of a duration over the retries: its range, its median and the draws of a few clients.
pub(super) fn over_retries(
    quantity: Quantity,
    forecast: &Forecast,
    clients: &[Client],
    client_style: ClientStyle,
    spacing: Spacing,
) -> Figure {
    let (title, what, label) = match quantity {
        Quantity::Delay => ("Delay before each retry", "The delay before each retry", "delay"),
        Quantity::TotalWait => (
            "Total wait up to each retry, without the duration of attempts",
            "The total wait up to each retry",
            "total wait",
        ),
    };
    let distribution = |row: &Row| match quantity {
        Quantity::Delay => row.delay,
        Quantity::TotalWait => row.elapsed,
    };
    let drawn = clients.iter().map(|client| match quantity {
        Quantity::Delay => client.delays.clone(),
        Quantity::TotalWait => client.elapsed().collect(),
    });
    let sentence = |row: &Row| {
        let Distribution { min, max, p50, .. } = distribution(row);
        format!("retry {}: {}, median {}", row.retry, span(min, max), brief(p50))
    };
    let sentences: Vec<String> = forecast.rows.iter().map(sentence).collect();
    let y = Axis::new(label, Unit::Seconds).spaced(spacing);
    Figure {
        title: title.to_owned(),
        description: format!("{what}, min to max. {}.", sentences.join("; ")),
        x: Axis::new("retry", Unit::Count),
        y: if spacing == Spacing::Linear { y.including(0.0) } else { y },
        series: fan(&forecast.rows, distribution, drawn, client_style),
    }
}

/// Returns the histogram of the drawn delays of all retries over the deciles of the forecast.
pub(super) fn tenths(verdict: &Verdict) -> Figure {
    let mut counts = [0.0; 10];
    for fit in verdict.checks.iter().filter_map(|check| check.fit.as_ref()) {
        for (count, more) in counts.iter_mut().zip(fit.decile_counts()) {
            *count += more;
        }
    }
    let level = counts.iter().sum::<f64>() / 10.0;
    let bars = counts.iter().enumerate().map(|(i, height)| Bar {
        left: i as f64 / 10.0,
        right: (i + 1) as f64 / 10.0,
        height: *height,
    });
    let ends = [0.0, 1.0].map(|x| Point { x, y: level });
    let texts: Vec<String> = counts.iter().map(f64::to_string).collect();
    Figure {
        title: "Drawn delays by decile of the forecast".to_owned(),
        description: format!(
            "Number of drawn delays in each decile of the forecast, shortest first: {}; {level} are expected in each.",
            texts.join(", ")
        ),
        x: Axis::new(SHARE_LABEL, Unit::Share),
        y: Axis::new("draws", Unit::Count),
        series: vec![
            Series::light("drawn", Hue::SKY, Shape::Bars(bars.collect())),
            Series::strong("forecast", Hue::VERMILION, Shape::Line(ends.to_vec())),
        ],
    }
}

/// The label of the axis with the cumulative probability of the forecast.
const SHARE_LABEL: &str = "cumulative share of delays, forecast";

/// Maximum number of retries in one plot.
const MAX_CURVES: usize = 6;

/// Returns the plot of the difference between the distributions of drawn delays and forecast, with its tolerance.
pub(super) fn distance(verdict: &Verdict) -> Figure {
    let fits = || verdict.checks.iter().filter_map(|check| Some((check.retry, check.fit.as_ref()?)));
    let allowed = fits().map(|(_, fit)| fit.critical_distance(verdict.threshold)).fold(0.0, f64::max);
    let ends = [0.0, 1.0].map(|x| Span { x, low: -allowed, high: allowed });
    let mut series = vec![Series::light("within tolerance", Hue::SKY, Shape::Band(ends.to_vec()))];
    series.extend(fits().take(MAX_CURVES).enumerate().map(|(i, (retry, fit))| {
        let start = Point { x: 0.0, y: 0.0 };
        let steps = fit.deviations().enumerate().map(|(i, y)| Point { x: (i + 1) as f64 / 100.0, y });
        let shape = Shape::Steps([start].into_iter().chain(steps).collect());
        Series::light(format!("retry {retry}"), Hue::nth(i), shape)
    }));
    Figure {
        title: "Drawn delays compared with the forecast".to_owned(),
        description: format!("Difference between the drawn delays and their forecast: {}.", verdict.text),
        x: Axis::new(SHARE_LABEL, Unit::Share),
        y: Axis::new("cumulative share, drawn minus forecast", Unit::Share),
        series,
    }
}

/// Returns range, median and clients, as both plots over the retries show them.
fn fan(
    rows: &[Row],
    distribution: impl Fn(&Row) -> Distribution,
    clients: impl Iterator<Item = Vec<Duration>>,
    client_style: ClientStyle,
) -> Vec<Series> {
    let point = |row: &Row, length: Duration| Point { x: f64::from(row.retry), y: length.as_secs_f64() };
    let band = rows.iter().map(|row| {
        let Distribution { min, max, .. } = distribution(row);
        Span { x: f64::from(row.retry), low: min.as_secs_f64(), high: max.as_secs_f64() }
    });
    let median = rows.iter().map(|row| point(row, distribution(row).p50));
    let mut series = vec![
        Series::light("min to max", Hue::SKY, Shape::Band(band.collect())),
        Series::strong("median", Hue::INK, Shape::Line(median.collect())),
    ];
    for (i, lengths) in clients.enumerate() {
        let points: Vec<Point> = rows.iter().zip(lengths).map(|(row, length)| point(row, length)).collect();
        let marks = Series::light("drawn clients", Hue::nth(i), Shape::Points(points.clone()));
        if client_style == ClientStyle::Lines {
            series.push(Series { name: None, shape: Shape::Line(points), ..marks.clone() });
        }
        series.push(marks);
    }
    series
}
