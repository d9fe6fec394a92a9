use super::document::Document;
use super::find::SearchEntry;
use super::metric::mean;
use stagger_report::metric::{VerdictEntry, seconds, share};

/// Describes the system in one line.
pub(super) fn describe(document: &Document) -> String {
    let system = &document.system;
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text = format!(
        "{}: {} requests/s, {}, {}",
        document.file,
        stagger_terminal::plot::Unit::Count.label(system.rate),
        count(system.services.len(), "service"),
        count(system.edges.len(), "edge"),
    );
    for trigger in &system.triggers {
        text.push_str(&format!("; {trigger}"));
    }
    if system.triggers.is_empty() {
        text.push_str("; no trigger");
    }
    format!("{text}; horizon {}", seconds(system.horizon_s))
}

/// Says what became of the system, and what its retries cost.
pub(crate) fn conclusions(document: &Document) -> Vec<String> {
    let runs = &document.runs;
    let of = |verdict| runs.iter().filter(|run| run.verdict == verdict).count();
    let counts = VerdictEntry::ALL.map(|(_, verdict)| (verdict, of(verdict)));
    let words = counts.into_iter().filter(|(_, count)| *count > 0).map(|(verdict, count)| {
        let words = match verdict {
            VerdictEntry::NeverFell => "never fell",
            VerdictEntry::Recovered => "recovered",
            VerdictEntry::Relapsed => "relapsed",
            VerdictEntry::StillDown => "still down at the horizon",
        };
        if runs.len() == 1 { words.to_owned() } else { format!("{words} with {count} of {} seeds", runs.len()) }
    });
    let mut out = vec![format!("verdict: {}", words.collect::<Vec<_>>().join(", "))];
    let down = runs.iter().filter(|run| run.metastable).count();
    if let [run] = &runs[..] {
        match (run.verdict, run.recovery_s, run.fell_at_s) {
            (VerdictEntry::Recovered, Some(after), _) => out[0] += &format!(", {} after the trigger", seconds(after)),
            (VerdictEntry::StillDown, _, Some(at)) => out[0] += &format!(", since {}", seconds(at)),
            _ => {}
        }
        if run.verdict == VerdictEntry::Relapsed {
            out[0] += if run.metastable { ", and down at the horizon" } else { ", and up at the horizon" };
        }
    } else if let Some(after) =
        mean(runs, |run| run.recovery_s).filter(|_| down == 0 && of(VerdictEntry::NeverFell) == 0)
    {
        out[0] += &format!(", {} after the trigger on average", seconds(after));
    }
    let success = mean(runs, |run| run.success_ratio).unwrap_or(0.0);
    let last = mean(runs, |run| run.final_success_ratio).unwrap_or(0.0);
    out.push(format!(
        "served: {} of the requests from the start of the trigger, {} at the end",
        share(success),
        share(last)
    ));
    if runs.iter().any(|run| run.down_before_fault) {
        let count = runs.iter().filter(|run| run.down_before_fault).count();
        out.push(format!(
            "{count} of {} runs were down before the trigger: random variation overloads the system",
            runs.len()
        ));
    }
    if down > 0 {
        out.push(sustained(document));
    }
    out.extend(document.search.iter().flat_map(SearchEntry::sentences));
    out
}

/// Says what keeps the system down: the edge with most attempts, and the service that wastes most of its work.
fn sustained(document: &Document) -> String {
    let (system, runs) = (&document.system, &document.runs);
    let attempts = |nth: usize| mean(runs, |run| run.edges[nth].attempts_per_request).unwrap_or(0.0);
    let wasted = |nth: usize| mean(runs, |run| run.services[nth].wasted_ratio).unwrap_or(0.0);
    let edge = (0..system.edges.len()).max_by(|a, b| attempts(*a).total_cmp(&attempts(*b)));
    let service = (0..system.services.len()).max_by(|a, b| wasted(*a).total_cmp(&wasted(*b)));
    let edge = edge.map_or(String::new(), |nth| {
        let edge = &system.edges[nth];
        format!("{:.1} attempts per request from {} to {}", attempts(nth), edge.from, edge.to)
    });
    let service = service.map_or(String::new(), |nth| {
        format!(
            "{} of the work of {} is for callers that have given up or fail",
            share(wasted(nth)),
            system.services[nth].name
        )
    });
    format!("what keeps it down: {edge}; {service}")
}

/// Names the seeds.
pub(super) fn seeds(document: &Document) -> String {
    match &document.runs[..] {
        [] => String::new(),
        [run] => format!("seed {}", run.seed),
        [first, .., last] => format!("means of {} runs, seeds {} to {}", document.runs.len(), first.seed, last.seed),
    }
}
