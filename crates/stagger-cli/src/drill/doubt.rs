use stagger_sim::storm::Measurements;

use crate::plan::brief::brief;

/// How late a timer may be: what a bin of a curve is wide.
const LATE_S: f64 = 0.1;

/// Within what time everybody hears of a loss on a machine that is not busy.
const LOST_S: f64 = 0.5;

/// The share of a second beyond which the processors have nothing left.
const SATURATED: f64 = 0.97;

/// Why it may have been the machine and not the policy that shaped the curve, in words.
pub(super) fn warnings(measured: &Measurements) -> Vec<String> {
    let mut warnings = Vec::new();
    let more_than_none = |count: Option<u64>| count.filter(|count| *count > 0);
    if let Some(count) = more_than_none(measured.listen_overflows.max(measured.listen_drops)) {
        warnings.push(format!(
            "the kernel dropped {count} connections that nobody had accepted yet, and has them tried again by a clock of its \
             own (raise net.core.somaxconn, or lower --clients)"
        ));
    }
    if let Some(count) = more_than_none(measured.syn_retransmits) {
        warnings
            .push(format!("the kernel sent {count} requests for a connection again, after seconds and without jitter"));
    }
    if measured.disconnect_window_s > LOST_S {
        let took = brief(core::time::Duration::from_secs_f64(measured.disconnect_window_s));
        warnings.push(format!("it took {took} until every client knew that its connection was lost (lower --clients)"));
    }
    if measured.max_timer_delay_s > LATE_S {
        let late = brief(core::time::Duration::from_secs_f64(measured.max_timer_delay_s));
        warnings.push(format!("timers of the clients were up to {late} late (lower --clients)"));
    }
    if let Some(share) = measured.peak_cpu_ratio.filter(|share| *share > SATURATED) {
        warnings.push(format!("in the busiest second the processors were busy for {:.0}% of it", share * 100.0));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sign_of_a_machine_at_its_limits_is_told_and_nothing_else_is() {
        let calm = || {
            let mut measured = Measurements::default();
            (measured.listen_drops, measured.syn_retransmits) = (Some(0), Some(0));
            (measured.max_timer_delay_s, measured.peak_cpu_ratio) = (0.09, Some(0.9));
            measured.disconnect_window_s = 0.4;
            measured
        };
        assert_eq!(warnings(&calm()), [""; 0]);
        // Elsewhere than on Linux nobody counts.
        assert_eq!(warnings(&Measurements::default()), [""; 0]);
        let signs: [(fn(&mut Measurements), &str); 6] = [
            (|measured| measured.disconnect_window_s = 0.75, "took 750ms"),
            (|measured| measured.listen_overflows = Some(7), "dropped 7"),
            (|measured| measured.listen_drops = Some(8), "dropped 8"),
            (|measured| measured.syn_retransmits = Some(9), "sent 9"),
            (|measured| measured.max_timer_delay_s = 0.15, "up to 150ms late"),
            (|measured| measured.peak_cpu_ratio = Some(0.99), "99%"),
        ];
        for (sign, told) in signs {
            let mut measured = calm();
            sign(&mut measured);
            let warnings = warnings(&measured);
            assert!(warnings.len() == 1 && warnings[0].contains(told), "{told}: {warnings:?}");
        }
    }
}
