//! Traces: whatever the text, it is read or refused, and the numbers of the report agree.

use stagger_traces::Analyzer;

/// Reads a text, with room for few spans and for many.
pub fn check(text: &[u8]) {
    let [few, many] = [3, 100_000].map(|spans| {
        let mut analyzer = Analyzer::with_max_spans(spans);
        if let Err(error) = analyzer.read(text) {
            assert!(!error.to_string().is_empty());
        }
        analyzer.finish()
    });
    assert_eq!(few.spans, many.spans);
    assert!(many.traces_closed_early == 0 && many.traces_split == 0);
    for report in [few, many] {
        for edge in &report.edges {
            assert!(edge.calls <= edge.attempts && edge.failures <= edge.attempts, "{edge:?}");
        }
        for found in &report.multiplications {
            let retrying = found.layers.iter().filter(|layer| layer.attempts > 1).count();
            assert!(retrying > 1 && found.guilty < found.layers.len() && found.product >= 4, "{found:?}");
        }
        assert!(report.traces <= report.spans && report.duplicate_spans <= report.spans);
    }
}
