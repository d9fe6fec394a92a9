use core::fmt;

/// An element of an XML document; text and attributes are escaped.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, Value)>,
    children: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Element(Element),
    Text(String),
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// A length in pixels, written with two decimals.
    Number(f64),
}

impl Element {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), children: Vec::new() }
    }

    /// Adds an attribute; attributes keep their order.
    pub(super) fn set(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    pub(super) fn child(mut self, child: Self) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    pub(super) fn children(self, children: impl IntoIterator<Item = Self>) -> Self {
        children.into_iter().fold(self, Self::child)
    }

    pub(super) fn text(mut self, text: impl Into<String>) -> Self {
        self.children.push(Node::Text(text.into()));
        self
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&escaped(text)),
            Self::Number(number) => write!(f, "{}", Pixels(*number)),
        }
    }
}

/// A length in pixels with at most two decimals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pixels(pub(super) f64);

impl fmt::Display for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The addition turns −0 into 0.
        write!(f, "{}", (self.0 * 100.0).round() / 100.0 + 0.0)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(f, " {name}=\"{value}\"")?;
        }
        if self.children.is_empty() {
            return writeln!(f, "/>");
        }
        f.write_str(">")?;
        if self.children.iter().all(|child| matches!(child, Node::Element(_))) {
            writeln!(f)?;
        }
        for child in &self.children {
            match child {
                Node::Element(element) => element.fmt(f)?,
                Node::Text(text) => f.write_str(&escaped(text))?,
            }
        }
        writeln!(f, "</{}>", self.name)
    }
}

/// Escapes text for an element or a quoted attribute.
///
/// XML 1.0 section 2.2 excludes most control characters, even escaped; they become U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_its_element_or_attribute() {
        let hostile = "\"'><script>&\u{0}\n";
        let element = Element::new("text").set("class", hostile).text(hostile);
        let safe = "&quot;&#39;&gt;&lt;script&gt;&amp;\u{fffd}\n";
        assert_eq!(element.to_string(), format!("<text class=\"{safe}\">{safe}</text>\n"));
    }

    #[test]
    fn numbers_have_two_decimals_and_no_negative_zero() {
        let shown = [1.0, 1.005, 2.345_6, -0.001, -3.5].map(|n| Pixels(n).to_string());
        assert_eq!(shown, ["1", "1", "2.35", "0", "-3.5"]);
    }
}
