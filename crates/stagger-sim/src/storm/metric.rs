//! Metrics: what is known of each figure, and the macro that defines the reports.

use core::fmt;

use super::{RunFigures, VerdictKind};

/// A figure of a run: its name in every format, and what is needed to show it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// The field in the document, the column in a table of values, and the name in an assertion.
    pub key: &'static str,
    /// The name for readers.
    pub heading: &'static str,
    /// The kind of the value.
    pub quantity: Quantity,
    /// Which of two values is better.
    pub better: Better,
    /// How much room a report should give it.
    pub importance: Importance,
    pub(super) value: fn(&RunFigures) -> Option<MetricValue>,
}

/// The kind of a value, which determines its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quantity {
    /// A count; fractional if it is an expected value.
    Count,
    /// A number without a unit.
    Number,
    /// A duration or a time in seconds. A missing value means never.
    Seconds,
    /// A share of a whole.
    Ratio,
    /// Yes or no.
    Bool,
    /// A [`VerdictKind`].
    Verdict,
}

/// Which of two values of a metric is better. Complete: there is no other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Better {
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// Neither.
    Neither,
}

/// How much room a report should give a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Importance {
    /// In files, not in tables.
    Detail,
    /// In tables that are wide enough.
    Secondary,
    /// In every table.
    Primary,
}

/// The value of a metric. Displayed as in the document.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum MetricValue {
    /// A whole number.
    Integer(u64),
    /// A number.
    Real(f64),
    /// Yes or no.
    Bool(bool),
    /// Whether a system survived an outage.
    Verdict(VerdictKind),
}

impl Metric {
    /// Returns the value in a run; `None` if it does not exist.
    #[must_use]
    pub fn value(&self, run: &RunFigures) -> Option<MetricValue> {
        (self.value)(run)
    }
}

impl MetricValue {
    /// Returns the value as a number; yes is 1 and no is 0, and a verdict is its position in [`VerdictKind::ALL`].
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Integer(count) => count as f64,
            Self::Real(number) => number,
            Self::Bool(yes) => f64::from(u8::from(yes)),
            Self::Verdict(verdict) => f64::from(verdict as u8),
        }
    }
}

impl fmt::Display for MetricValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(count) => write!(f, "{count}"),
            // Like JSON: `1.0` and not `1`.
            Self::Real(number) => write!(f, "{number:?}"),
            Self::Bool(yes) => write!(f, "{yes}"),
            Self::Verdict(verdict) => f.write_str(verdict.name()),
        }
    }
}

pub(super) trait MetricField {
    /// Returns the value; `None` if it is written as `null`.
    fn metric_value(&self) -> Option<MetricValue>;
}

impl MetricField for u64 {
    fn metric_value(&self) -> Option<MetricValue> {
        Some(MetricValue::Integer(*self))
    }
}

impl MetricField for f64 {
    fn metric_value(&self) -> Option<MetricValue> {
        if self.is_finite() { Some(MetricValue::Real(*self)) } else { None }
    }
}

impl MetricField for bool {
    fn metric_value(&self) -> Option<MetricValue> {
        Some(MetricValue::Bool(*self))
    }
}

impl MetricField for VerdictKind {
    fn metric_value(&self) -> Option<MetricValue> {
        Some(MetricValue::Verdict(*self))
    }
}

impl<T: MetricField> MetricField for Option<T> {
    fn metric_value(&self) -> Option<MetricValue> {
        self.as_ref()?.metric_value()
    }
}

/// Defines the report of a scenario and its metrics: each figure is one line, with its type, its value from the
/// simulator's figures, its heading, and its quantity, better direction and importance. Tables have this order.
///
/// The document, its schema, tables, CSV, assertions and the report page follow from this list, so none of them can
/// differ from another or lack a figure.
macro_rules! report {
    (
        $(#[$doc:meta])*
        $Report:ident = RunFigures::$Variant:ident($($source:ident: $Source:ty),*);

        metrics {
            $($(#[$metric_doc:meta])*
            $key:ident: $Type:ty = $value:expr, $heading:literal ($quantity:ident, $better:ident, $importance:ident);)*
        }

        series {
            $($(#[$series_doc:meta])* $series:ident: $Series:ty = $series_value:expr;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub struct $Report {
            $($(#[$metric_doc])* pub $key: $Type,)*
            $($(#[$series_doc])* pub $series: $Series,)*
        }

        impl $Report {
            /// The metrics, in the order of tables.
            pub const METRICS: &'static [Metric] = &[$(Metric {
                key: stringify!($key),
                heading: $heading,
                quantity: Quantity::$quantity,
                better: Better::$better,
                importance: Importance::$importance,
                value: |run| match run {
                    RunFigures::$Variant(report) => report.$key.metric_value(),
                    _ => None,
                },
            }),*];

            /// Creates the report from the figures of a run.
            #[must_use]
            pub fn from_figures($($source: $Source),*) -> Self {
                Self { $($key: $value,)* $($series: $series_value,)* }
            }
        }
    };
}

pub(super) use report;

#[cfg(test)]
mod tests {
    use crate::storm::{FluidReport, OccReport, OutageReport, ReconnectReport};

    use super::*;

    #[test]
    fn higher_is_better_for_successes_and_efficiencies_alone() {
        let lists = [ReconnectReport::METRICS, OutageReport::METRICS, OccReport::METRICS, FluidReport::METRICS];
        for Metric { key, better, .. } in lists.concat() {
            let is_success =
                ["connected", "written", "success", "goodput", "efficiency"].iter().any(|part| key.contains(part));
            assert_eq!(better == Better::Higher, is_success, "{key}");
            let given = ["clients", "bin_s", "rejected", "fell_at_s", "relapsed_at_s", "window_s", "min_horizon_s"];
            let of_guards = ["held", "budget_overshoot_bound", "local_shares"];
            // Lowest for clients in step, which all arrive within the first second and wait equally long.
            let of_order = ["peak_100ms_after_1s", "fairness_recovered", "fairness_attempts"];
            let is_neither = given.contains(&key) || of_guards.contains(&key) || of_order.contains(&key);
            assert_eq!(better == Better::Neither, is_neither, "{key}");
        }
    }

    #[test]
    fn values_are_displayed_as_in_json() {
        for (value, json) in [
            (7_u64.metric_value(), "7"),
            (4.0.metric_value(), "4.0"),
            (1e-7.metric_value(), "1e-7"),
            (true.metric_value(), "true"),
        ] {
            assert_eq!(value.unwrap().to_string(), json);
        }
        assert_eq!([f64::NAN.metric_value(), None::<u64>.metric_value()], [None, None], "null");
        assert!((MetricValue::Bool(true).as_f64() - 1.0).abs() < 1e-12 && MetricValue::Bool(false).as_f64() < 0.5);
    }
}
