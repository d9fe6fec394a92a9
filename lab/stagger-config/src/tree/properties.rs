use std::collections::HashMap;

use super::{Member, Node, Value};
use crate::position::{Position, Span};

/// Longest path of names that is followed, which bounds the depth of the tree.
const MAX_NAMES: usize = 32;

/// Reads Java properties as a tree: `a.b.c=1` is a member of a member of a member, and `a[0]=1` an element of a list.
/// Lines that are no properties are skipped.
pub(crate) fn properties(text: &str) -> Node {
    let mut root = Branch::default();
    for (at, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', '!']) {
            continue;
        }
        let Some((key, value)) = content.split_once(['=', ':']) else { continue };
        let column = line.chars().take_while(|character| character.is_whitespace()).count() + 1;
        let start = Position::new(at + 1, column);
        let span = Span::new(start, Position::new(at + 1, column + content.chars().count()));
        let value = Value::Scalar { text: value.trim().to_owned(), is_quoted: false };
        root.insert(key.trim(), span, Node::new(span, value));
    }
    Node::new(Span::new(Position::START, Position::START), root.into_value())
}

/// Splits keys with dots, as Spring reads YAML: `resilience4j.retry:` is `retry:` within `resilience4j:`.
pub(crate) fn without_dots(node: &Node) -> Node {
    let Value::Map(_) = node.value else { return node.clone() };
    let mut root = Branch::default();
    root.extend(node);
    Node::new(node.span, root.into_value())
}

/// A mapping that is being put together, with an index: there may be as many names as a file has lines.
#[derive(Default)]
struct Branch {
    members: Vec<Child>,
    index: HashMap<String, usize>,
}

struct Child {
    key: String,
    key_span: Span,
    span: Span,
    /// The value; `None` for a mapping.
    value: Option<Value>,
    placeholder: Option<Box<str>>,
    branch: Branch,
}

impl Branch {
    /// Adds a value at the end of a path. The last one counts where a value and a mapping have the same path.
    fn insert(&mut self, path: &str, key_span: Span, node: Node) {
        let mut branch = self;
        let mut names: Vec<&str> = path.splitn(MAX_NAMES, '.').flat_map(name_and_index).collect();
        let last = names.pop().unwrap_or_default();
        for name in names {
            let child = branch.child(name, key_span, node.span);
            child.value = None;
            branch = &mut child.branch;
        }
        let child = branch.child(last, key_span, node.span);
        if matches!(node.value, Value::Map(_)) {
            child.value = None;
            child.branch.extend(&node);
        } else {
            child.value = Some(node.value);
            child.placeholder = node.placeholder;
            child.branch = Self::default();
        }
    }

    /// Adds the members of a mapping.
    fn extend(&mut self, node: &Node) {
        for member in node.members() {
            self.insert(&member.key, member.key_span, member.node.clone());
        }
    }

    /// Returns the child of a name, and makes it if it is not there.
    fn child(&mut self, name: &str, key_span: Span, span: Span) -> &mut Child {
        let at = *self.index.entry(name.to_owned()).or_insert_with(|| {
            let branch = Self::default();
            self.members.push(Child { key: name.to_owned(), key_span, span, value: None, placeholder: None, branch });
            self.members.len() - 1
        });
        let child = &mut self.members[at];
        child.span = span;
        child
    }

    fn into_value(mut self) -> Value {
        let is_list = !self.members.is_empty() && self.members.iter().all(|child| index(&child.key).is_some());
        if is_list {
            self.members.sort_by_key(|child| index(&child.key));
        }
        let members = self.members.into_iter().map(|child| {
            let value = child.value.unwrap_or_else(|| child.branch.into_value());
            let node = Node { placeholder: child.placeholder, ..Node::new(child.span, value) };
            Member { key: child.key, key_span: child.key_span, node }
        });
        if is_list { Value::List(members.map(|member| member.node).collect()) } else { Value::Map(members.collect()) }
    }
}

/// Separates `name[0]` into `name` and `[0]`. Any other name stays whole.
fn name_and_index(name: &str) -> impl Iterator<Item = &str> {
    let at = name.rfind('[').filter(|&at| at > 0 && index(&name[at..]).is_some());
    let (name, index) = at.map_or((name, None), |at| (&name[..at], Some(&name[at..])));
    core::iter::once(name).chain(index)
}

/// Returns the number of `[0]`.
fn index(text: &str) -> Option<u32> {
    text.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// An assignment `Name=value` of a file with sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment<'a> {
    pub(crate) section: &'a str,
    pub(crate) name: &'a str,
    /// The value, without the space around it. Continued lines are joined by spaces.
    pub(crate) value: String,
    pub(crate) span: Span,
}

/// Reads the assignments of a file with `[Section]`s, as systemd reads it: comments begin with `#` or `;`, a backslash
/// at the end continues a line. Lines that are nothing of this are skipped.
pub(crate) fn assignments(text: &str) -> Vec<Assignment<'_>> {
    let mut found: Vec<Assignment<'_>> = Vec::new();
    let mut section = "";
    let mut is_continued = false;
    for (at, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.starts_with(['#', ';']) || (content.is_empty() && !is_continued) {
            continue;
        }
        let end = Position::new(at + 1, line.trim_end().chars().count() + 1);
        let (content, continues) = match content.strip_suffix('\\') {
            Some(content) => (content.trim_end(), true),
            None => (content, false),
        };
        if is_continued {
            if let Some(last) = found.last_mut() {
                last.value = format!("{} {content}", last.value).trim().to_owned();
                last.span.end = end;
            }
        } else if let Some(name) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.trim();
        } else if let Some((name, value)) = content.split_once('=') {
            let start =
                Position::new(at + 1, line.chars().take_while(|character| character.is_whitespace()).count() + 1);
            let span = Span::new(start, end);
            found.push(Assignment { section, name: name.trim(), value: value.trim().to_owned(), span });
        }
        is_continued = continues;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::yaml;

    #[test]
    fn dotted_names_are_paths_in_properties_and_in_yaml() {
        let text =
            "# x\nresilience4j.retry.instances.a.maxAttempts=4\n resilience4j.retry.instances.a.waitDuration: 2s\n";
        let root = properties(text);
        let a = root.at(&["resilience4j", "retry", "instances", "a"]).unwrap();
        assert_eq!(a.get("maxAttempts").unwrap().text(), Some("4"));
        assert_eq!(a.get("waitDuration").unwrap().span.start, Position::new(3, 2));
        let text = "resilience4j.retry:\n  instances:\n    b: {maxAttempts: 2}\nresilience4j.timelimiter: {}\n";
        let root = without_dots(&yaml(text).unwrap()[0]);
        assert_eq!(root.at(&["resilience4j", "retry", "instances", "b", "maxAttempts"]).unwrap().text(), Some("2"));
        assert!(root.at(&["resilience4j", "timelimiter"]).is_some());
    }

    #[test]
    fn indexed_names_are_elements_in_the_order_of_their_numbers() {
        let root = properties("a.b[10]=last\na.b[2].c=first\na.d[x]=1\ne[0]=1\ne.f=2\n");
        let items = root.at(&["a", "b"]).unwrap().items();
        assert_eq!((items[0].get("c").unwrap().text(), items[1].text()), (Some("first"), Some("last")));
        assert_eq!(root.at(&["a", "d[x]"]).unwrap().text(), Some("1"));
        // Some of each: not a list.
        assert_eq!(root.at(&["e", "[0]"]).unwrap().text(), Some("1"));
    }

    #[test]
    fn assignments_have_their_section_and_place() {
        let text = "# a comment\n[Unit]\nAfter=a \\\n  b\n\n[Service]\r\n  Restart = always\n;Restart=no\nnonsense\n";
        let found = assignments(text);
        let [after, restart] = &found[..] else { panic!("{found:?}") };
        assert_eq!((after.section, after.name, &*after.value), ("Unit", "After", "a b"));
        assert_eq!((after.span.start, after.span.end.line), (Position::new(3, 1), 4));
        assert_eq!((restart.section, restart.name, &*restart.value), ("Service", "Restart", "always"));
        assert_eq!(restart.span, Span::new(Position::new(7, 3), Position::new(7, 19)));
    }
}
