//! The live status line on a terminal: its timing, its characters and its durations.

use core::time::Duration;

use stagger_core::text::Compact;

/// Time before the line is first shown, so that short activities do not flicker.
pub const SHOW_AFTER: Duration = Duration::from_millis(150);
pub const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Erases from the cursor to the end of the line (ECMA-48 EL).
pub const CLEAR_REST: &str = "\x1b[K";

/// Returns a frame of the spinner.
pub fn spinner(utf8: bool, frame: usize) -> char {
    let frames: &[char] = if utf8 {
        &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
    } else {
        &['|', '/', '-', '\\']
    };
    frames[frame % frames.len()]
}

/// Formats a duration with up to three digits.
pub fn short(length: Duration) -> String {
    let decimals = match length {
        length if length < Duration::from_secs(1) => 0,
        length if length < Duration::from_secs(10) => 2,
        length if length < Duration::from_secs(60) => 1,
        _ => 0,
    };
    format!("{:.decimals$}", Compact(length))
}

/// Formats a duration to a tenth of a second, so that the width is stable.
pub fn tenths(length: Duration) -> String {
    if length < Duration::from_secs(60) { format!("{:.1}s", length.as_secs_f64()) } else { short(length) }
}
