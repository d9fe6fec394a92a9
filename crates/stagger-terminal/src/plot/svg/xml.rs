use core::fmt;

/// An element of an XML document; text and attributes are escaped.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    name: &'static str,
    /// Each with a space before it.
    attributes: String,
    /// `None` for an empty element.
    content: Option<String>,
    has_text: bool,
}

impl Element {
    pub fn new(name: &'static str) -> Self {
        Self { name, attributes: String::new(), content: None, has_text: false }
    }

    /// Adds an attribute; attributes keep their order.
    pub fn set(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.attributes.push_str(&format!(" {name}=\"{}\"", escaped(value.as_ref())));
        self
    }

    /// Adds an attribute that is a length.
    pub(super) fn px(self, name: &str, pixels: f64) -> Self {
        self.set(name, Pixels(pixels).to_string())
    }

    pub fn child(mut self, child: &Self) -> Self {
        self.content.get_or_insert_default().push_str(&child.to_string());
        self
    }

    pub fn children(self, children: &[Self]) -> Self {
        children.iter().fold(self, Self::child)
    }

    pub fn text(mut self, text: &str) -> Self {
        self.content.get_or_insert_default().push_str(&escaped(text));
        self.has_text = true;
        self
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
        let Self { name, attributes, content, has_text } = self;
        let first_newline = if *has_text { "" } else { "\n" };
        match content {
            None => writeln!(f, "<{name}{attributes}/>"),
            Some(content) => writeln!(f, "<{name}{attributes}>{first_newline}{content}</{name}>"),
        }
    }
}

/// Escapes text for an element or a quoted attribute.
///
/// XML 1.0 section 2.2 excludes most control characters, even escaped; they become U+FFFD.
pub fn escaped(text: &str) -> String {
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
