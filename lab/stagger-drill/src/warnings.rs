use stagger_sim::storm::Measurements;

use stagger_terminal::plan::brief;

/// Maximum delay of a timer that does not distort the curves: the width of one bin.
pub(super) const LATE_S: f64 = 0.1;

/// Maximum time until all clients notice a lost connection, on a machine that is not overloaded.
const LOST_S: f64 = 0.5;

/// Share of a second beyond which the processors count as saturated.
const SATURATED: f64 = 0.97;

/// Returns the reasons why the machine, rather than the policy, may have shaped the curve. A timer distorts it if it is later
/// than `late_s` seconds; `remedy` lowers the load.
pub(super) fn warnings(measured: &Measurements, late_s: f64, remedy: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let more_than_none = |count: Option<u64>| count.filter(|count| *count > 0);
    if let Some(count) = more_than_none(measured.listen_overflows.max(measured.listen_drops)) {
        warnings.push(format!(
            "the kernel dropped {count} connections from the listen queue and retried them on its own schedule (raise \
             net.core.somaxconn or {remedy})"
        ));
    }
    if let Some(count) = more_than_none(measured.syn_retransmits) {
        warnings.push(format!("the kernel retransmitted {count} SYN packets, seconds later and without jitter"));
    }
    if measured.disconnect_window_s > LOST_S {
        let took = brief(core::time::Duration::from_secs_f64(measured.disconnect_window_s));
        warnings.push(format!("it took {took} until all clients had noticed the loss of their connections ({remedy})"));
    }
    if measured.max_timer_delay_s > late_s {
        let late = brief(core::time::Duration::from_secs_f64(measured.max_timer_delay_s));
        warnings.push(format!("client timers fired up to {late} late ({remedy})"));
    }
    warnings
}

/// Returns a reason for doubt if all processors were busy. Other programs may have kept them busy without any effect on the run.
pub(super) fn saturation(peak_cpu_ratio: Option<f64>, remedy: &str) -> Option<String> {
    let share = peak_cpu_ratio.filter(|share| *share > SATURATED)?;
    let percent = share * 100.0;
    // Clients and servers that are before other programs are not slowed down by them.
    let priority = if cfg!(target_os = "linux") {
        ", or run the drill with priority over them: `chrt -r 10 stagger drill`"
    } else {
        ""
    };
    Some(format!("CPU usage reached {percent:.0}% in one second ({remedy}, end other programs{priority})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sign_of_an_overloaded_machine_gives_one_warning() {
        let calm = || {
            let mut measured = Measurements::default();
            (measured.listen_drops, measured.syn_retransmits) = (Some(0), Some(0));
            (measured.max_timer_delay_s, measured.peak_cpu_ratio) = (0.09, Some(0.9));
            measured.disconnect_window_s = 0.4;
            measured
        };
        let warnings = |measured: &Measurements| warnings(measured, LATE_S, "lower --clients");
        assert_eq!(warnings(&calm()), [""; 0]);
        assert_eq!([None, Some(0.97)].map(|share| saturation(share, "lower --clients")), [None, None]);
        let doubt = saturation(Some(0.99), "lower --clients");
        assert!(doubt.is_some_and(|doubt| doubt.contains("99% in one second (lower --clients")));
        // Systems other than Linux have no counters.
        assert_eq!(warnings(&Measurements::default()), [""; 0]);
        let signs: [(fn(&mut Measurements), &str); 5] = [
            (|measured| measured.disconnect_window_s = 0.75, "took 750ms"),
            (|measured| measured.listen_overflows = Some(7), "dropped 7"),
            (|measured| measured.listen_drops = Some(8), "dropped 8"),
            (|measured| measured.syn_retransmits = Some(9), "retransmitted 9"),
            (|measured| measured.max_timer_delay_s = 0.15, "up to 150ms late"),
        ];
        for (sign, message) in signs {
            let mut measured = calm();
            sign(&mut measured);
            let warnings = warnings(&measured);
            assert!(warnings.len() == 1 && warnings[0].contains(message), "{message}: {warnings:?}");
        }
    }
}
