//! Single-pass parser with one token of lookahead and no recursion.

mod declaration;
mod function;
mod module;
mod statement;

pub(crate) use declaration::elements;
pub(crate) use module::module;

use crate::body::Statement;
use crate::declaration::Linkage;
use crate::error::ParseError;
use crate::instruction::Operand;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::span::Span;

/// State of the parser. Comments are tokens; [`Parser::code`] skips them where they cannot be statements.
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    token: Token,
    /// End of the last token passed, comments excluded.
    end: usize,
    /// Empty lists whose memory is reused. Results are copied out of them, without unused capacity.
    nesting: Nesting,
    operands: Vec<Operand<'a>>,
    statements: Vec<Statement<'a>>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        Self {
            text,
            lexer,
            token,
            end: 0,
            nesting: Nesting::default(),
            operands: Vec::new(),
            statements: Vec::new(),
        }
    }

    /// Goes to the next token, which may be a comment.
    fn step(&mut self) {
        if self.token.kind != TokenKind::Comment {
            self.end = self.token.span.end;
        }
        self.token = self.lexer.next();
    }

    /// Skips comments; returns the token after them.
    fn code(&mut self) -> Token {
        while self.token.kind == TokenKind::Comment {
            self.step();
        }
        self.token
    }

    /// Like [`Parser::code`], without moving.
    fn peek_code(&self) -> Token {
        let (mut lexer, mut token) = (self.lexer, self.token);
        while token.kind == TokenKind::Comment {
            token = lexer.next();
        }
        token
    }

    /// Returns true if the current word is a label. For most words the next byte already rules this out,
    /// which avoids lexing the next token twice.
    fn is_label(&self) -> bool {
        let next = self.text.as_bytes().get(self.token.span.end);
        !matches!(next, Some(b'.' | b';')) && self.peek_second().is(b':')
    }

    /// Returns the token after the current one, comments excluded, without moving.
    fn peek_second(&self) -> Token {
        let mut lexer = self.lexer;
        loop {
            let token = lexer.next();
            if token.kind != TokenKind::Comment {
                return token;
            }
        }
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.range()]
    }

    fn unexpected(&self, expected: &'static str) -> ParseError {
        ParseError::unexpected(self.text, self.token, expected)
    }

    /// Skips comments and a token of `kind`; returns the token's span.
    fn expect(&mut self, kind: TokenKind, expected: &'static str) -> Result<Span, ParseError> {
        let token = self.code();
        if token.kind != kind {
            return Err(self.unexpected(expected));
        }
        self.step();
        Ok(token.span)
    }

    fn expect_punct(&mut self, byte: u8, expected: &'static str) -> Result<Span, ParseError> {
        self.expect(TokenKind::Punct(byte), expected)
    }

    /// Skips comments and the character `byte` if it comes next; returns true if so, otherwise stays.
    fn take_punct(&mut self, byte: u8) -> bool {
        let is_next = self.peek_code().is(byte);
        if is_next {
            self.code();
            self.step();
        }
        is_next
    }

    /// Skips the linkages at the start of a declaration; returns the last one and the directive after them.
    fn linkage(&mut self, expected: &'static str) -> Result<(Linkage, &'a str), ParseError> {
        let mut linkage = Linkage::None;
        loop {
            let name = self.slice(self.token.span);
            let Some(stated) = Linkage::from_directive(name) else { return Ok((linkage, name)) };
            linkage = stated;
            self.step();
            if self.code().kind != TokenKind::Dot {
                return Err(self.unexpected(expected));
            }
        }
    }

    fn expect_u32(&mut self, expected: &'static str) -> Result<u32, ParseError> {
        let token = self.code();
        let number = (token.kind == TokenKind::Number).then(|| parse_u64(self.slice(token.span)));
        let number = number.flatten().and_then(|number| u32::try_from(number).ok());
        let number = number.ok_or_else(|| self.unexpected(expected))?;
        self.step();
        Ok(number)
    }

    fn skip_group(&mut self) -> Result<(), ParseError> {
        let mut nesting = Nesting::default();
        loop {
            self.nest(&mut nesting)?;
            self.step();
            if nesting.is_flat() {
                return Ok(());
            }
        }
    }

    /// Counts the current token if it is a bracket. Rejects a wrong closing bracket and the end of the text.
    fn nest(&self, nesting: &mut Nesting) -> Result<(), ParseError> {
        match self.token.kind {
            TokenKind::UnterminatedString | TokenKind::UnterminatedComment => Err(self.unexpected("a token")),
            TokenKind::End if nesting.is_flat() => Err(self.unexpected("the statement's end, `;`")),
            TokenKind::End => Err(self.unexpected(nesting.wanted())),
            TokenKind::Punct(byte @ (b'(' | b'[' | b'{')) => {
                nesting.open.push(byte);
                Ok(())
            }
            TokenKind::Punct(byte @ (b')' | b']' | b'}')) => {
                if nesting.open.last().copied().map(closer) == Some(byte) {
                    nesting.open.pop();
                    return Ok(());
                }
                Err(self.unexpected(nesting.wanted()))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Default)]
struct Nesting {
    open: Vec<u8>,
}

impl Nesting {
    fn is_flat(&self) -> bool {
        self.open.is_empty()
    }

    fn wanted(&self) -> &'static str {
        match self.open.last() {
            Some(b'(') => "`)`",
            Some(b'[') => "`]`",
            Some(_) => "`}`",
            None => "the statement's end, `;`",
        }
    }
}

fn closer(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}

/// Parses an integer modulo 2^64 with an optional sign; `None` for octal, which compilers do not write.
pub(crate) fn parse_i64(text: &str) -> Option<i64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let is_octal = matches!(digits.as_bytes(), [b'0', b'0'..=b'9', ..]);
    let number = parse_u64(digits).filter(|_| !is_octal)?;
    Some(if is_negative { number.wrapping_neg() } else { number }.cast_signed())
}

/// Parses a whole number in PTX syntax: decimal, `0x`, `0b` or octal, with an optional `U` suffix.
pub(crate) fn parse_u64(text: &str) -> Option<u64> {
    let text = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

fn unquote(text: &str) -> &str {
    text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::parse_u64;

    #[test]
    fn numbers_have_four_radixes() {
        assert_eq!(parse_u64("12"), Some(12));
        assert_eq!(parse_u64("0x1FU"), Some(31));
        assert_eq!(parse_u64("0b101"), Some(5));
        assert_eq!(parse_u64("017"), Some(15));
        assert_eq!(parse_u64("0"), Some(0));
        for wrong in ["", "0x", "1.5", "β", "99999999999999999999", "09"] {
            assert_eq!(parse_u64(wrong), None, "{wrong}");
        }
    }
}
