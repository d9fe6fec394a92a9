//! Children outlive a test that is itself killed: nothing is dropped then, and an interrupt from the terminal reaches
//! only the test's own process group. So every process that starts children has a watcher, a small shell that knows
//! them. It notices the end of its input, which the kernel closes for the dead.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;

/// Keeps a list of process groups, and kills those that are left on it in the end.
const SCRIPT: &str = r#"
while read -r sign group; do
    case $sign in
        +) groups="$groups $group" ;;
        -) groups=$(for other in $groups; do [ "$other" = "$group" ] || echo "$other"; done | tr '\n' ' ') ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

static WATCHER: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Has `group` killed if this process ends before [`forget`] is called.
pub(crate) fn watch(group: Pid) {
    tell('+', group);
}

/// To be called before the leader is reaped, while its number is still its own.
pub(crate) fn forget(group: Pid) {
    tell('-', group);
}

/// Without a watcher, tests still clean up after themselves unless they are killed, so its failure is not theirs.
fn tell(sign: char, group: Pid) {
    let mut watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
    if watcher.is_none() {
        *watcher = start();
    }
    if let Some(input) = watcher.as_mut() {
        let _ = input.write_all(format!("{sign} {group}\n").as_bytes());
    }
}

fn start() -> Option<ChildStdin> {
    let mut shell = Command::new("sh");
    // In a group of its own, where no interrupt reaches it.
    shell.args(["-c", SCRIPT]).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().ok()?.stdin.take()
}
