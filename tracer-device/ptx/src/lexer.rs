//! Splits PTX text into tokens, in time linear in its length. Never fails.

use crate::span::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier: `%r1`, `$L__BB0_1`, `add`. A `.` ends it.
    Word,
    /// A dot and a name: `.reg`, `.b32`, `.L2::128B`.
    Dot,
    /// A number, with its dot if it has one: `6.3`, `0f3F800000`.
    Number,
    /// A string, quotes included.
    String,
    /// A comment, a preprocessor line (`#line`) or a line of old debug data (`@@DWARF`).
    Comment,
    /// Any other ASCII character.
    Punct(u8),
    UnterminatedString,
    UnterminatedComment,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
    /// Whether only blanks precede the token on its line.
    pub(crate) starts_line: bool,
}

impl Token {
    pub(crate) fn is(self, byte: u8) -> bool {
        self.kind == TokenKind::Punct(byte)
    }
}

/// Reads tokens from the start of a text to its end. A copy can look ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    starts_line: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, starts_line: true }
    }

    /// Reads the next token. Returns [`TokenKind::End`] at the end of the text, also repeatedly.
    pub(crate) fn next(&mut self) -> Token {
        self.skip_blanks();
        let bytes = &self.text.as_bytes()[self.at..];
        let (kind, len) = match *bytes {
            [] => (TokenKind::End, 0),
            [b'/', b'/', ..] | [b'@', b'@', ..] => (TokenKind::Comment, line_length(bytes)),
            [b'#', ..] if self.starts_line => (TokenKind::Comment, line_length(bytes)),
            [b'/', b'*', ..] => match find(bytes, 2, b"*/") {
                Some(close) => (TokenKind::Comment, close + 2),
                None => (TokenKind::UnterminatedComment, bytes.len()),
            },
            [b'"', ..] => string(bytes),
            [b'.', next, ..] if continues_word(next) => (TokenKind::Dot, dot_length(bytes)),
            [first, ..] if first.is_ascii_digit() => (TokenKind::Number, number_length(bytes)),
            [first, ..] if starts_word(first) => (TokenKind::Word, 1 + word_length(&bytes[1..])),
            [first, ..] => (TokenKind::Punct(first), 1),
        };
        let span = Span::new(self.at, self.at + len);
        let token = Token { kind, span, starts_line: self.starts_line };
        self.at = span.end;
        self.starts_line = false;
        token
    }

    /// Skips blanks and line ends. A zero byte is a blank: NVRTC's PTX ends with one.
    fn skip_blanks(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c | 0) = bytes.get(self.at) {
            self.starts_line |= bytes[self.at] == b'\n';
            self.at += 1;
        }
    }
}

/// Returns true if `byte` begins an identifier. Non-ASCII bytes do, so tokens end on character boundaries.
fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%') || !byte.is_ascii()
}

fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

fn word_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| continues_word(**byte)).count()
}

/// Returns the length of a dot and its name, which may be qualified: `.shared::cluster`.
fn dot_length(bytes: &[u8]) -> usize {
    let mut len = 1 + word_length(&bytes[1..]);
    while let [b':', b':', next, ..] = bytes[len..]
        && continues_word(next)
    {
        len += 2 + word_length(&bytes[len + 2..]);
    }
    len
}

fn number_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| continues_word(**byte) || **byte == b'.').count()
}

/// Returns the length of the rest of the line, without the line end.
fn line_length(bytes: &[u8]) -> usize {
    let len = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    if len > 0 && bytes[len - 1] == b'\r' { len - 1 } else { len }
}

fn find(bytes: &[u8], from: usize, wanted: &[u8; 2]) -> Option<usize> {
    memchr::memmem::find(&bytes[from..], wanted).map(|at| from + at)
}

/// Returns the kind and length of a string. A backslash escapes a quote or a backslash.
fn string(bytes: &[u8]) -> (TokenKind, usize) {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return (TokenKind::String, at + 1),
            b'\n' => break,
            b'\\' if matches!(bytes.get(at + 1), Some(b'"' | b'\\')) => at += 2,
            _ => at += 1,
        }
    }
    (TokenKind::UnterminatedString, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(TokenKind, &str)> {
        let mut lexer = Lexer::new(text);
        std::iter::from_fn(|| {
            let token = lexer.next();
            (token.kind != TokenKind::End).then(|| (token.kind, token.span.text(text)))
        })
        .collect()
    }

    #[test]
    fn dots_end_words_and_qualified_modifiers_stay_whole() {
        use TokenKind::{Dot, Punct, Word};
        assert_eq!(
            tokens("ld.L2::128B %tid.x:"),
            [(Word, "ld"), (Dot, ".L2::128B"), (Word, "%tid"), (Dot, ".x"), (Punct(b':'), ":"),]
        );
        assert_eq!(tokens("$L: .v4"), [(Word, "$L"), (Punct(b':'), ":"), (Dot, ".v4")]);
    }

    #[test]
    fn numbers_keep_their_dot() {
        use TokenKind::{Number, Punct};
        assert_eq!(
            tokens("6.3 -0f3F800000 0x1FU"),
            [(Number, "6.3"), (Punct(b'-'), "-"), (Number, "0f3F800000"), (Number, "0x1FU")]
        );
    }

    #[test]
    fn comments_and_strings_hide_what_they_hold() {
        use TokenKind::{Comment, Punct, String, Word};
        assert_eq!(
            tokens("\"a//\\\"b;\" // c \" d\r\n/* ; * / */;@@DWARF .x;\n #line 1 \"f\"\na #"),
            [
                (String, "\"a//\\\"b;\""),
                (Comment, "// c \" d"),
                (Comment, "/* ; * / */"),
                (Punct(b';'), ";"),
                (Comment, "@@DWARF .x;"),
                (Comment, "#line 1 \"f\""),
                (Word, "a"),
                (Punct(b'#'), "#"),
            ]
        );
    }

    #[test]
    fn what_is_not_closed_is_a_token_too() {
        assert_eq!(tokens("\"ab\nc")[0], (TokenKind::UnterminatedString, "\"ab"));
        assert_eq!(tokens("\"ab\\")[0], (TokenKind::UnterminatedString, "\"ab\\"));
        assert_eq!(tokens("/*/")[0], (TokenKind::UnterminatedComment, "/*/"));
    }

    #[test]
    fn other_alphabets_and_zero_bytes_pass() {
        use TokenKind::Word;
        assert_eq!(tokens("β1 %\u{1F600}\0\0"), [(Word, "β1"), (Word, "%\u{1F600}")]);
    }
}
