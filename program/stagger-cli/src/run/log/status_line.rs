use core::time::Duration;

use anstyle::Style;
use stagger_core::Instant;
use stagger_terminal::output::line::{DIM, Line, REDRAW_INTERVAL, SHOW_AFTER, short, spinner, tenths};

use super::event::Count;

/// The live status line, redrawn while an attempt or a wait is in progress.
#[derive(Debug)]
pub(super) struct StatusLine {
    utf8: bool,
    activity: Option<Activity>,
    due: Instant,
    frame: usize,
    /// Whether it is on the terminal now.
    pub(super) drawn: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Activity {
    /// An attempt will start at `until`.
    Waiting { count: Count, until: Instant, since: Instant },
    /// An attempt runs, until `until` at most.
    Running { count: Count, until: Option<Instant>, since: Instant, run_started: Instant },
}

const BAR_CELLS: usize = 10;

impl StatusLine {
    pub(super) fn new(utf8: bool) -> Self {
        Self { utf8, activity: None, due: Instant::ZERO, frame: 0, drawn: false }
    }

    pub(super) fn show(&mut self, activity: Activity) {
        let (Activity::Waiting { since, .. } | Activity::Running { since, .. }) = activity;
        self.due = since.saturating_add(SHOW_AFTER);
        self.activity = Some(activity);
    }

    pub(super) fn hide(&mut self) {
        self.activity = None;
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.activity.map(|_| self.due)
    }

    pub(super) fn tick(&mut self, now: Instant) -> Option<Line> {
        let activity = self.activity?;
        if now < self.due {
            return None;
        }
        self.due = now.saturating_add(REDRAW_INTERVAL);
        self.frame += 1;
        Some(self.line(activity, now))
    }

    fn line(&self, activity: Activity, now: Instant) -> Line {
        let line = Line::default().part(DIM, spinner(self.utf8, self.frame));
        match activity {
            Activity::Waiting { count, until, .. } => {
                let left = until.saturating_since(now);
                line.part(Style::new(), format_args!(" {count}  starts in {}", tenths(left)))
            }
            Activity::Running { count, until, since, run_started } => {
                let ran = now.saturating_since(since);
                let line = line.part(Style::new(), format_args!(" {count}  running {}", tenths(ran)));
                let line = match until.map(|until| until.saturating_since(since)) {
                    Some(limit) => line.part(DIM, format_args!("   {} {}", self.bar(ran, limit), short(limit))),
                    None => line,
                };
                line.part(DIM, format_args!("   total {}", tenths(now.saturating_since(run_started))))
            }
        }
    }

    fn bar(&self, ran: Duration, limit: Duration) -> String {
        const CELLS: [[char; 9]; 2] =
            [[' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', '#'], [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█']];
        let share = if limit.is_zero() { 1.0 } else { (ran.as_secs_f64() / limit.as_secs_f64()).min(1.0) };
        let eighths = (share * (BAR_CELLS * 8) as f64) as usize;
        let cell = |index: usize| CELLS[usize::from(self.utf8)][eighths.saturating_sub(index * 8).min(8)];
        let cells: String = (0..BAR_CELLS).map(cell).collect();
        if self.utf8 { format!("▕{cells}▏") } else { format!("[{cells}]") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(utf8: bool, activity: Activity, now: Instant) -> String {
        StatusLine::new(utf8).line(activity, now).render(80, false)
    }

    #[test]
    fn a_running_attempt_shows_the_share_of_its_time_limit() {
        let at = |s| Instant::ZERO.saturating_add(Duration::from_secs(s));
        let count = Count { n: 4, max: core::num::NonZeroU32::new(6) };
        let activity = Activity::Running { count, until: Some(at(20)), since: at(10), run_started: at(0) };
        assert_eq!(line(true, activity, at(13)), "⠋ 4/6  running 3.0s   ▕███       ▏ 10s   total 13.0s");
        assert_eq!(line(false, activity, at(13)), "| 4/6  running 3.0s   [###       ] 10s   total 13.0s");
        assert_eq!(line(false, activity, at(30)), "| 4/6  running 20.0s   [##########] 10s   total 30.0s");
    }

    #[test]
    fn short_activities_are_not_drawn() {
        let mut live = StatusLine::new(true);
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
        live.show(Activity::Waiting { count: Count { n: 2, max: None }, until: at(1_000), since: at(0) });
        assert!(live.tick(at(100)).is_none());
        assert!(live.tick(at(150)).is_some());
        assert!(live.tick(at(200)).is_none());
        assert_eq!(live.due(), Some(at(250)));
        live.hide();
        assert_eq!(live.due(), None);
    }
}
