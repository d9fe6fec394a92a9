use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};

use super::{MAX_COPIES, MAX_DEPTH, Member, Node, Value};
use crate::position::{Position, ReadError, Span};

/// Parses all documents of a YAML file. Documents without content are left out.
pub(crate) fn yaml(text: &str) -> Result<Vec<Node>, ReadError> {
    let error = match parse(text) {
        Ok(documents) => return Ok(documents),
        Err(error) => error,
    };
    // The parser wants closing brackets further right than the key, as YAML has it. Other parsers take them anywhere.
    let is_closing = |line: &str| line.trim_start().starts_with([']', '}']);
    let closing: Vec<bool> = text.lines().map(is_closing).collect();
    let number = closing.iter().filter(|is_closing| **is_closing).count();
    if number == 0 || number > MAX_SHIFTED {
        return Err(error);
    }
    let mut shifted = String::new();
    for (line, is_closing) in text.lines().zip(&closing) {
        let indent = if *is_closing { SHIFT } else { 0 };
        shifted.extend([&*" ".repeat(indent), line, "\n"]);
    }
    let Ok(mut documents) = parse(&shifted) else { return Err(error) };
    documents.iter_mut().for_each(|document| shift_back(document, &closing));
    Ok(documents)
}

/// Columns by which lines that begin with a closing bracket are moved, and how many are at most.
const SHIFT: usize = 200;
const MAX_SHIFTED: usize = 20_000;

/// Returns the places to where the file has them. The parser limits the depth.
fn shift_back(node: &mut Node, closing: &[bool]) {
    let back = |span: &mut Span| {
        for position in [&mut span.start, &mut span.end] {
            if closing.get(position.line - 1) == Some(&true) {
                position.column = position.column.saturating_sub(SHIFT).max(1);
            }
        }
    };
    back(&mut node.span);
    match &mut node.value {
        Value::Null | Value::Unknown | Value::Scalar { .. } => {}
        Value::List(items) => items.iter_mut().for_each(|item| shift_back(item, closing)),
        Value::Map(members) => members.iter_mut().for_each(|member| {
            back(&mut member.key_span);
            shift_back(&mut member.node, closing);
        }),
    }
}

fn parse(text: &str) -> Result<Vec<Node>, ReadError> {
    let mut builder = Builder { anchors: HashMap::new(), copies: 0 };
    let mut documents = Vec::new();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        match event {
            // Anchors belong to their document.
            Event::DocumentStart(_) => builder.anchors.clear(),
            Event::StreamEnd => break,
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(_) => {
                let node = builder.node(event, converted(span), &mut parser, 0)?;
                if !node.is_null() {
                    documents.push(node);
                }
            }
            _ => {}
        }
    }
    Ok(documents)
}

fn syntax(error: &ScanError) -> ReadError {
    ReadError::syntax("YAML", position(*error.marker()), error.info())
}

fn position(marker: Marker) -> Position {
    Position::new(marker.line().max(1), marker.col() + 1)
}

fn converted(span: saphyr_parser::Span) -> Span {
    Span::new(position(span.start), position(span.end))
}

/// The next event of a parser, which cannot be missing inside a value.
fn next<'a>(parser: &mut Parser<'a, impl saphyr_parser::Input>) -> Result<(Event<'a>, Span), ReadError> {
    match parser.next_event() {
        Some(Ok((event, span))) => Ok((event, converted(span))),
        Some(Err(error)) => Err(syntax(&error)),
        None => Err(ReadError::syntax("YAML", Position::START, "the file ends inside a value")),
    }
}

struct Builder {
    anchors: HashMap<usize, Node>,
    /// Number of values that aliases have copied.
    copies: usize,
}

impl Builder {
    fn node<'a>(
        &mut self,
        event: Event<'a>,
        span: Span,
        parser: &mut Parser<'a, impl saphyr_parser::Input>,
        depth: usize,
    ) -> Result<Node, ReadError> {
        if depth > MAX_DEPTH {
            let message = format!("values are nested more than {MAX_DEPTH} deep; flatten them");
            return Err(ReadError::syntax("YAML", span.start, &message));
        }
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let is_quoted = style != ScalarStyle::Plain;
                let value = match &*text {
                    "" | "~" | "null" | "Null" | "NULL" if !is_quoted => Value::Null,
                    text => Value::Scalar { text: text.to_owned(), is_quoted },
                };
                (anchor, Node::new(span, value))
            }
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                let end = loop {
                    match next(parser)? {
                        (Event::SequenceEnd, span) => break span,
                        (event, span) => items.push(self.node(event, span, parser, depth + 1)?),
                    }
                };
                (anchor, Node::new(Span::new(span.start, end.end), Value::List(items)))
            }
            Event::MappingStart(anchor, _) => {
                let (members, end) = self.members(parser, depth)?;
                (anchor, Node::new(Span::new(span.start, end.end), Value::Map(members)))
            }
            Event::Alias(anchor) => return self.alias(anchor, span),
            _ => return Err(ReadError::syntax("YAML", span.start, "a value is missing")),
        };
        if anchor > 0 {
            self.copy(&node)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn members<'a>(
        &mut self,
        parser: &mut Parser<'a, impl saphyr_parser::Input>,
        depth: usize,
    ) -> Result<(Vec<Member>, Span), ReadError> {
        let mut members: Vec<Member> = Vec::new();
        let mut merged = Vec::new();
        let end = loop {
            let (event, key_span) = match next(parser)? {
                (Event::MappingEnd, span) => break span,
                other => other,
            };
            let key = self.node(event, key_span, parser, depth + 1)?;
            let (event, span) = next(parser)?;
            let node = self.node(event, span, parser, depth + 1)?;
            match key.value {
                Value::Scalar { text, is_quoted: false } if text == "<<" => merged.push(node),
                Value::Scalar { text: key, .. } => members.push(Member { key, key_span, node }),
                // Nothing that is read here has such a key.
                _ => {}
            }
        };
        if !merged.is_empty() {
            merge(&mut members, merged);
        }
        Ok((members, end))
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<Node, ReadError> {
        let node = self.anchors.get(&anchor).cloned();
        let node =
            node.ok_or_else(|| ReadError::syntax("YAML", span.start, "the alias is used inside its own anchor"))?;
        self.copy(&node)?;
        Ok(node)
    }

    fn copy(&mut self, node: &Node) -> Result<(), ReadError> {
        self.copies += node.size();
        if self.copies > MAX_COPIES {
            let message = format!("its aliases expand to more than {MAX_COPIES} values; write fewer of them");
            return Err(ReadError::syntax("YAML", node.span.start, &message));
        }
        Ok(())
    }
}

/// Adds the members of mappings that are not there yet: the key `<<`, whose value is a mapping or a list of them.
fn merge(members: &mut Vec<Member>, nodes: Vec<Node>) {
    let mut known: HashSet<String> = members.iter().map(|member| member.key.clone()).collect();
    for node in nodes {
        let mappings = match node.value {
            Value::List(items) => items,
            _ => vec![node],
        };
        for mapping in mappings {
            let Value::Map(others) = mapping.value else { continue };
            members.extend(others.into_iter().filter(|other| known.insert(other.key.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_their_values_and_places() {
        let documents = yaml("a: 1\nb:\n  - \"2\"\n  - ~\n---\n# nothing\n---\nc: {d: true}\n").unwrap();
        let [first, second] = &documents[..] else { panic!("{documents:?}") };
        assert_eq!(first.get("a").unwrap().span.start, Position::new(1, 4));
        let items = first.get("b").unwrap().items();
        assert_eq!(items[0].value, Value::Scalar { text: "2".to_owned(), is_quoted: true });
        assert_eq!(items[0].span, Span::new(Position::new(3, 5), Position::new(3, 8)));
        assert!(items[1].is_null());
        assert_eq!(second.at(&["c", "d"]).unwrap().text(), Some("true"));
    }

    #[test]
    fn aliases_and_merge_keys_are_resolved_within_their_document() {
        let text = "x: &defaults {restart: always, n: 1}\ny:\n  <<: *defaults\n  n: 2\n";
        let root = &yaml(text).unwrap()[0];
        assert_eq!(root.at(&["y", "restart"]).unwrap().text(), Some("always"));
        assert_eq!(root.at(&["y", "n"]).unwrap().text(), Some("2"));
        assert!(yaml(&format!("{text}---\nz: *defaults\n")).is_err());
    }

    #[test]
    fn closing_brackets_may_stand_below_their_key() {
        let text = "a:\n  b: [\n    \"x\",\n    \"y\"\n  ]\n  c: {\n  }\nd: 1\n";
        let root = &yaml(text).unwrap()[0];
        let list = root.at(&["a", "b"]).unwrap();
        assert_eq!((list.items().len(), list.span.end), (2, Position::new(5, 4)));
        assert_eq!(root.at(&["a", "c"]).unwrap().span, Span::new(Position::new(6, 6), Position::new(7, 4)));
        assert_eq!(root.get("d").unwrap().text(), Some("1"));
        assert!(yaml("a: [\n]]\n").is_err() && yaml("a: [\n}\n").is_err());
    }

    #[test]
    fn hostile_files_are_refused_with_the_place() {
        // Each level has the one before nine times.
        let mut bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1]\n".to_owned();
        for level in 1..12 {
            let copies = vec![format!("*a{}", level - 1); 9].join(",");
            bomb += &format!("a{level}: &a{level} [{copies}]\n");
        }
        let error = yaml(&bomb).unwrap_err();
        assert!(error.to_string().contains("aliases"), "{error}");
        let deep = "[".repeat(10_000);
        assert!(yaml(&deep).is_err());
        let deep: String = (0..1_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert!(yaml(&deep).unwrap_err().to_string().contains("nested"));
        let error = yaml("a: 1\nb: [1\nc: 2\n").unwrap_err();
        assert!(error.position().line >= 2, "{error}");
    }
}
