use core::time::Duration;

use stagger_core::text::Compact;
use stagger_sim::system::{EdgeLayout, NestedCalls, ServiceLayout, SystemFile, SystemLayout};

/// A file, with what is known about its system without a run.
pub(super) struct Checked<'a> {
    pub(super) file: &'a SystemFile,
    pub(super) layout: SystemLayout,
    /// The paths of the edges.
    pub(super) paths: Vec<String>,
}

impl<'a> Checked<'a> {
    pub(super) fn new(file: &'a SystemFile) -> Self {
        Self { file, layout: file.system().layout(), paths: file.edge_paths() }
    }

    /// Returns the name of an edge: `orders-database`.
    pub(super) fn name(&self, nth: usize) -> &str {
        self.paths[nth].trim_start_matches("edge.")
    }

    /// Returns the edges that a service calls over.
    pub(super) fn below(&self, service: usize) -> Vec<usize> {
        let edges = self.layout.edges.iter().enumerate();
        edges.filter(|(_, edge)| edge.from == Some(service)).map(|(nth, _)| nth).collect()
    }

    /// Returns whether an edge above makes several attempts and has no budget.
    pub(super) fn is_retried_above(&self, nth: usize) -> bool {
        self.callers(nth).any(|caller| {
            let edge = &self.layout.edges[caller];
            attempts(edge) > 1.0 && !edge.has_guards || self.is_retried_above(caller)
        })
    }

    /// Returns the edges from the users to this one, on the way with the most attempts.
    pub(super) fn way_to(&self, nth: usize) -> Vec<usize> {
        let worst = |edge: &usize| self.layout.edges[*edge].worst_attempts_per_request;
        let above = self.callers(nth).max_by(|a, b| worst(a).total_cmp(&worst(b)));
        let mut way = above.map_or_else(Vec::new, |above| self.way_to(above));
        way.push(nth);
        way
    }

    fn callers(&self, nth: usize) -> impl Iterator<Item = usize> + '_ {
        let from = self.layout.edges[nth].from;
        let edges = self.layout.edges.iter().enumerate();
        edges.filter(move |(_, caller)| Some(caller.to) == from).map(|(nth, _)| nth)
    }
}

/// Returns the most attempts of a call over an edge: one if nested calls stand down.
pub(super) fn attempts(edge: &EdgeLayout) -> f64 {
    if edge.from.is_some() && edge.nested == NestedCalls::StandDown {
        return 1.0;
    }
    edge.policy.max_attempts().map_or(f64::INFINITY, |most| f64::from(most.get()))
}

/// Returns how long the calls over an edge take that one attempt makes, if every attempt takes its time limit and every
/// delay is as long as it can be; `None` without a bound.
pub(super) fn longest_calls(edge: &EdgeLayout) -> Option<Duration> {
    let attempts = attempts(edge);
    let all = attempts.is_finite().then(|| {
        // A policy has at most u32::MAX attempts.
        let delays = edge.policy.elapsed_bounds((attempts as u32).saturating_sub(1)).map(|bounds| bounds.1);
        edge.timeout.saturating_mul(attempts as u32).saturating_add(delays.unwrap_or_default())
    });
    // No retry starts later, and none is interrupted.
    let limit = edge.policy.max_elapsed().map(|most| most.saturating_add(edge.timeout));
    let longest = all.into_iter().chain(limit).min()?;
    Some(longest.saturating_mul(if edge.is_parallel { 1 } else { edge.calls }))
}

/// Returns how long a service works on a full queue: the longest possible time if it has no bound.
pub(super) fn queued_work(service: &ServiceLayout) -> Duration {
    let work = service.backlog.map(|backlog| Duration::try_from_secs_f64(f64::from(backlog) / service.capacity));
    work.and_then(Result::ok).unwrap_or(Duration::MAX)
}

/// Returns how much of the time limit of an edge a queue may take: what the messages leave of it.
pub(super) fn patience(edge: &EdgeLayout) -> Duration {
    edge.timeout.saturating_sub(edge.one_way.saturating_mul(2))
}

/// Formats a number without more digits than say anything.
pub(super) fn number(value: f64) -> String {
    if value.is_infinite() {
        return "unlimited".to_owned();
    }
    let digits = 10_f64.powi((3 - value.abs().max(1e-9).log10().floor() as i32).max(0));
    format!("{}", (value * digits).round() / digits)
}

/// Formats a time that may have no end.
pub(super) fn lasting(value: Duration) -> String {
    if value == Duration::MAX { "ever".to_owned() } else { length(value) }
}

pub(super) fn length(value: Duration) -> String {
    if value == Duration::MAX { "any amount".to_owned() } else { format!("{:.2}", Compact(value)) }
}
