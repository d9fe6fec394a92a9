use textwrap::{Options, WordSplitter};

use super::render_options::RenderOptions;

/// Wraps text to lines of at most `columns` characters, at spaces only: `max-attempts` stays one word. Every line but the
/// first begins with `indent`.
pub fn wrap(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let options = Options::new(columns)
        .subsequent_indent(indent)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::wrap(text, options).into_iter().map(Into::into).collect()
}

/// Wraps text to the width of the output and adds a final newline.
pub fn paragraph(text: &str, indent: &str, options: RenderOptions) -> String {
    wrap(text, usize::from(options.columns), indent).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphenated_words_are_not_broken() {
        let lines = wrap("jitter=full max-attempts=6 max-elapsed=5m", 24, "  ");
        assert_eq!(lines, ["jitter=full", "  max-attempts=6", "  max-elapsed=5m"]);
    }

    #[test]
    fn a_word_longer_than_the_line_is_not_broken() {
        assert_eq!(wrap("a incomprehensible b", 5, ""), ["a", "incomprehensible", "b"]);
    }
}
