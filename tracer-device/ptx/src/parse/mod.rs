//! The parser: one pass, one token ahead, no recursion.

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

/// Where the parser stands. Comments are tokens: [`Parser::code`] steps over them where they are no
/// statements.
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token that is looked at.
    token: Token,
    /// End of the last token stepped over that was no comment.
    end: usize,
    /// Empty lists that were used before: what is kept of them is copied, and takes no room that is unused.
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

    /// Steps to the next token, which may be a comment.
    fn step(&mut self) {
        if self.token.kind != TokenKind::Comment {
            self.end = self.token.span.end;
        }
        self.token = self.lexer.next();
    }

    /// Steps over comments; returns the token behind them.
    fn code(&mut self) -> Token {
        while self.token.kind == TokenKind::Comment {
            self.step();
        }
        self.token
    }

    /// Returns the token behind the comments that may stand here, without stepping.
    fn peek_code(&self) -> Token {
        let (mut lexer, mut token) = (self.lexer, self.token);
        while token.kind == TokenKind::Comment {
            token = lexer.next();
        }
        token
    }

    /// Tells whether the word that is looked at is a label's name. The byte behind most words says that they
    /// are not, so that what follows need not be read twice.
    fn is_label(&self) -> bool {
        let next = self.text.as_bytes().get(self.token.span.end);
        !matches!(next, Some(b'.' | b';')) && self.peek_second().is(b':')
    }

    /// Returns the token behind the one that is looked at, without stepping.
    fn peek_second(&self) -> Token {
        let mut lexer = self.lexer;
        loop {
            let token = lexer.next();
            if token.kind != TokenKind::Comment {
                return token;
            }
        }
    }

    /// Returns the text of a span.
    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.range()]
    }

    /// Makes the error that the token looked at is not what is `expected`.
    fn unexpected(&self, expected: &'static str) -> ParseError {
        ParseError::unexpected(self.text, self.token, expected)
    }

    /// Steps over comments and a token of `kind`; returns its span.
    fn expect(&mut self, kind: TokenKind, expected: &'static str) -> Result<Span, ParseError> {
        let token = self.code();
        if token.kind != kind {
            return Err(self.unexpected(expected));
        }
        self.step();
        Ok(token.span)
    }

    /// Steps over comments and the character `byte`; returns its span.
    fn expect_punct(&mut self, byte: u8, expected: &'static str) -> Result<Span, ParseError> {
        self.expect(TokenKind::Punct(byte), expected)
    }

    /// Steps over comments and the character `byte` if it comes next; tells whether it does. Comments in
    /// front of another token stay.
    fn take_punct(&mut self, byte: u8) -> bool {
        let is_next = self.peek_code().is(byte);
        if is_next {
            self.code();
            self.step();
        }
        is_next
    }

    /// Steps over the linkages that a declaration begins with; returns the last one, and the directive behind
    /// them.
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

    /// Steps over comments and a number that fits 32 bits.
    fn expect_u32(&mut self, expected: &'static str) -> Result<u32, ParseError> {
        let token = self.code();
        let number = (token.kind == TokenKind::Number).then(|| parse_u64(self.slice(token.span)));
        let number = number.flatten().and_then(|number| u32::try_from(number).ok());
        let number = number.ok_or_else(|| self.unexpected(expected))?;
        self.step();
        Ok(number)
    }

    /// Steps over a bracketed group from its opening token to the closing one, whatever they hold.
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

    /// Counts the token looked at, if it opens or closes something; refuses a wrong closer and the text's end
    /// within brackets.
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

/// The brackets that are open.
#[derive(Default)]
struct Nesting {
    open: Vec<u8>,
}

impl Nesting {
    fn is_flat(&self) -> bool {
        self.open.is_empty()
    }

    /// Says which closer is missing.
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

/// Reads an integer as compilers write it in instructions, modulo 2^64, with a sign or not; `None` for octal
/// ones, which none does.
pub(crate) fn parse_i64(text: &str) -> Option<i64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let is_octal = matches!(digits.as_bytes(), [b'0', b'0'..=b'9', ..]);
    let number = parse_u64(digits).filter(|_| !is_octal)?;
    Some(if is_negative { number.wrapping_neg() } else { number }.cast_signed())
}

/// Reads a whole number as PTX writes it: decimal, `0x`, `0b` or octal, `U` behind it or not.
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

/// Returns the text between a string's quotes.
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
