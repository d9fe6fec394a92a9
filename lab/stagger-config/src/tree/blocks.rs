use crate::position::{Position, ReadError, Span};

/// Deepest nesting of blocks that is read.
const MAX_DEPTH: usize = 100;

/// A directive of nginx: words, and perhaps a block of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) words: Vec<String>,
    pub(crate) span: Span,
    pub(crate) block: Vec<Self>,
}

impl Directive {
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The first word after the name.
    pub(crate) fn first(&self) -> &str {
        self.words.get(1).map_or("", String::as_str)
    }
}

enum Token {
    Word(String),
    End,
    Open,
    Close,
}

/// Parses the syntax of nginx: words, `;`, blocks in braces, comments, quotes and backslashes.
pub(crate) fn directives(text: &str) -> Result<Vec<Directive>, ReadError> {
    let mut lexer = Lexer { characters: text.chars().peekable(), position: Position::START };
    let found = block(&mut lexer, 0)?;
    Ok(found)
}

fn block(lexer: &mut Lexer<'_>, depth: usize) -> Result<Vec<Directive>, ReadError> {
    let mut found = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut start = lexer.position;
    loop {
        lexer.skip_space();
        let position = lexer.position;
        let Some(token) = lexer.token()? else {
            return match (depth, words.is_empty()) {
                (0, true) => Ok(found),
                (0, false) => Err(syntax(start, "a directive has no `;` at its end")),
                _ => Err(syntax(position, "a block has no `}` at its end")),
            };
        };
        match token {
            Token::Word(word) => {
                if words.is_empty() {
                    start = position;
                }
                words.push(word);
            }
            Token::End if words.is_empty() => return Err(syntax(position, "unexpected `;`")),
            Token::End => {
                let span = Span::new(start, lexer.position);
                found.push(Directive { words: core::mem::take(&mut words), span, block: Vec::new() });
            }
            Token::Open if words.is_empty() => return Err(syntax(position, "unexpected `{`")),
            Token::Open if depth == MAX_DEPTH => return Err(syntax(position, "blocks are nested too deep")),
            Token::Open => {
                let span = Span::new(start, position);
                let words = core::mem::take(&mut words);
                found.push(Directive { words, span, block: block(lexer, depth + 1)? });
            }
            Token::Close if depth == 0 || !words.is_empty() => return Err(syntax(position, "unexpected `}`")),
            Token::Close => return Ok(found),
        }
    }
}

fn syntax(position: Position, problem: &str) -> ReadError {
    ReadError::syntax("nginx configuration", position, problem)
}

struct Lexer<'a> {
    characters: core::iter::Peekable<core::str::Chars<'a>>,
    position: Position,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.characters.next()?;
        self.position = match character {
            '\n' => Position::new(self.position.line + 1, 1),
            _ => Position::new(self.position.line, self.position.column + 1),
        };
        Some(character)
    }

    fn skip_space(&mut self) {
        while let Some(character) = self.characters.peek() {
            match character {
                '#' => while self.next().is_some_and(|character| character != '\n') {},
                character if character.is_whitespace() || *character == '\u{feff}' => {
                    let _ = self.next();
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Result<Option<Token>, ReadError> {
        let start = self.position;
        let Some(first) = self.next() else { return Ok(None) };
        Ok(Some(match first {
            ';' => Token::End,
            '{' => Token::Open,
            '}' => Token::Close,
            quote @ ('"' | '\'') => Token::Word(self.quoted(quote, start)?),
            first => Token::Word(self.plain(first)),
        }))
    }

    fn quoted(&mut self, quote: char, start: Position) -> Result<String, ReadError> {
        let mut word = String::new();
        while let Some(character) = self.next() {
            match character {
                '\\' => word.extend(self.next()),
                character if character == quote => return Ok(word),
                character => word.push(character),
            }
        }
        Err(syntax(start, "a quote has no end"))
    }

    fn plain(&mut self, first: char) -> String {
        let mut word = String::from(first);
        if first == '\\' {
            word.extend(self.next());
        }
        while let Some(&character) = self.characters.peek() {
            match character {
                ';' => break,
                // `${name}` is a variable.
                '{' if !word.ends_with('$') => break,
                character if character.is_whitespace() => break,
                _ => {}
            }
            word.extend(self.next());
            if character == '\\' {
                word.extend(self.next());
            }
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_have_their_words_blocks_and_places() {
        let text = "# x\nhttp {\n  map $a $b { default \"a;b\"; ~^x{1} 'y'; }\n  server_name ${host}.x;\n}\n";
        let text = text.replace("~^x{1}", "\"~^x{1}\"");
        let found = directives(&text).unwrap();
        let http = &found[0];
        assert_eq!((http.name(), http.span.start), ("http", Position::new(2, 1)));
        assert_eq!(http.block[0].block[0].words, ["default", "a;b"]);
        assert_eq!(http.block[1].words, ["server_name", "${host}.x"]);
        assert_eq!(http.block[1].span, Span::new(Position::new(4, 3), Position::new(4, 25)));
    }

    #[test]
    fn what_is_not_nginx_is_refused_with_its_place() {
        for (text, place) in [("a b", "1:1"), ("a {", "1:4"), ("}", "1:1"), ("a 'b;", "1:3"), ("\n;", "2:1")] {
            let error = directives(text).unwrap_err();
            assert_eq!(error.position().to_string(), place, "{text}: {error}");
        }
        assert!(directives(&"a{".repeat(100_000)).is_err());
    }
}
