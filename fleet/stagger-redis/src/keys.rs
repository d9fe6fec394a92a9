/// The four keys of one target.
pub(crate) type Keys = [String; 4];

/// The three keys of one quiet period.
pub(crate) type QuietKeys = [String; 3];

/// The two keys of one admission.
pub(crate) type AdmissionKeys = [String; 2];

/// Returns the keys of a target: `{stagger:<namespace>}:<target>:tokens`, and three with another kind.
///
/// What is in braces selects the slot in a cluster, so all targets of a namespace are in one slot.
pub(crate) fn keys(namespace: &str, target: &str) -> Keys {
    ["tokens", "leases", "demand", "gone"].map(|kind| key(namespace, target, kind))
}

/// Returns the keys of a window of so many milliseconds: `{stagger:<namespace>}:<target>:window-<ms>`, and three that
/// begin with it. Windows of different lengths have slots of different lengths, and are different windows.
pub(crate) fn window_keys(namespace: &str, target: &str, millis: u64) -> Keys {
    ["", "-leases", "-demand", "-gone"].map(|kind| key(namespace, target, &format!("window-{millis}{kind}")))
}

/// Returns the keys of a quiet period: `{stagger:<namespace>}:<target>:quiet`, and two with another kind.
pub(crate) fn quiet_keys(namespace: &str, target: &str) -> QuietKeys {
    ["quiet", "votes", "asked"].map(|kind| key(namespace, target, kind))
}

/// Returns the key of a breaker, `{stagger:<namespace>}:<target>:open`.
pub(crate) fn breaker_key(namespace: &str, target: &str) -> String {
    key(namespace, target, "open")
}

/// Returns the keys of an admission: `{stagger:<namespace>}:<target>:admission`, and one with another kind.
pub(crate) fn admission_keys(namespace: &str, target: &str) -> AdmissionKeys {
    ["admission", "servers"].map(|kind| key(namespace, target, kind))
}

/// Returns the key of the processes of a namespace, `{stagger:<namespace>}:processes`. No target has it: theirs have
/// two colons.
pub(crate) fn processes_key(namespace: &str) -> String {
    format!("{{stagger:{}}}:processes", escaped(namespace))
}

/// Returns the key of the operator controls of a namespace.
pub(crate) fn controls_key(namespace: &str) -> String {
    format!("{{stagger:{}}}:controls", escaped(namespace))
}

/// Returns the key of the last changes of the operator controls of a namespace.
pub(crate) fn changes_key(namespace: &str) -> String {
    format!("{{stagger:{}}}:controls-changes", escaped(namespace))
}

fn key(namespace: &str, target: &str, kind: &str) -> String {
    format!("{{stagger:{}}}:{}:{kind}", escaped(namespace), escaped(target))
}

/// Returns the name with `%` and two hexadecimal digits for each byte of `%`, `{`, `}`, `:`, spaces and control
/// characters. A brace in a name would change the slot, and a colon could make two names equal.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '%' | '{' | '}' | ':') || character.is_whitespace() || character.is_control() {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                text.push_str(&format!("%{byte:02X}"));
            }
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_change_the_slot_or_meet() {
        for (namespace, target, want) in [
            ("shop", "payments", "{stagger:shop}:payments:tokens"),
            ("a}b{", "c:d", "{stagger:a%7Db%7B}:c%3Ad:tokens"),
            ("100%", "a\nb c", "{stagger:100%25}:a%0Ab%20c:tokens"),
            ("é", "\u{85}", "{stagger:é}:%C2%85:tokens"),
        ] {
            assert_eq!(keys(namespace, target)[0], want);
        }
        assert_ne!(keys("a", "b:c"), keys("a:b", "c"));
        assert_ne!(keys("a%3A", "b"), keys("a:", "b"));
    }
}
