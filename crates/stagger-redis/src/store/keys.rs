/// The four keys of one target.
pub(crate) type Keys = [String; 4];

/// The longest name of a namespace or target, in bytes.
pub(crate) const LONGEST_NAME: usize = 128;

/// Returns the keys of a target: `{stagger:<namespace>}:<target>:tokens`, and three with another kind.
///
/// What is in braces selects the slot in a cluster, so all targets of a namespace are in one slot.
pub(crate) fn keys(namespace: &str, target: &str) -> Keys {
    let (namespace, target) = (escaped(namespace), escaped(target));
    ["tokens", "leases", "demand", "gone"].map(|kind| format!("{{stagger:{namespace}}}:{target}:{kind}"))
}

/// Returns the name with `%` and two hexadecimal digits for each byte of `%`, `{`, `}`, `:`, spaces and control characters. A
/// brace in a name would change the slot, and a colon could make two names equal.
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
