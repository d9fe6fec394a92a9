//! Child processes outlive a test that is itself killed: no destructor runs, and an interrupt from the terminal reaches
//! only the test's own process group. So every process that starts children has a watchdog, a small shell with a list
//! of their process groups. It detects the death of the test by the end of its input, which the kernel closes.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;

/// Maintains a list of process groups, and kills the remaining ones at the end of its input.
const SCRIPT: &str = r#"
while read -r sign group; do
    case $sign in
        +) groups="$groups $group" ;;
        -) groups=$(for other in $groups; do [ "$other" = "$group" ] || echo "$other"; done | tr '\n' ' ') ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

static WATCHDOG: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Registers `group` to be killed if this process dies before [`forget`] is called.
pub(crate) fn watch(group: Pid) {
    send('+', group);
}

/// Unregisters `group`. Call it before the leader is reaped, while its PID cannot be reused.
pub(crate) fn forget(group: Pid) {
    send('-', group);
}

/// Sends a command to the watchdog. Errors are ignored: without a watchdog, tests that are not killed still clean up.
fn send(sign: char, group: Pid) {
    let mut watchdog = WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner);
    if watchdog.is_none() {
        *watchdog = start();
    }
    if let Some(input) = watchdog.as_mut() {
        let _ = input.write_all(format!("{sign} {group}\n").as_bytes());
    }
}

/// Starts the watchdog.
fn start() -> Option<ChildStdin> {
    let mut shell = Command::new("sh");
    // In its own process group, which an interrupt from the terminal does not reach.
    shell.args(["-c", SCRIPT]).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().ok()?.stdin.take()
}
