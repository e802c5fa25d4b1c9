//! Why a text could not be read as PTX.

use crate::lexer::{Token, TokenKind};
use crate::span::Position;

/// Why [`Module::parse`](crate::Module::parse) gave up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Something stands where PTX's grammar wants something else.
    #[error("PTX line {line}, column {column}: found {found}, expected {expected}")]
    Unexpected {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Byte offset in the text.
        offset: usize,
        /// The text found, shortened.
        found: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// A string has no closing quote on its line.
    #[error("PTX line {line}, column {column}: the string has no closing `\"` on its line")]
    UnterminatedString {
        /// Line of the opening quote, from 1.
        line: usize,
        /// Column of the opening quote in characters, from 1.
        column: usize,
        /// Byte offset of the opening quote.
        offset: usize,
    },
    /// A block comment is not closed.
    #[error("PTX line {line}, column {column}: the comment has no closing `*/`")]
    UnterminatedComment {
        /// Line of the comment's start, from 1.
        line: usize,
        /// Column of the comment's start in characters, from 1.
        column: usize,
        /// Byte offset of the comment's start.
        offset: usize,
    },
}

impl ParseError {
    /// Makes the error of finding `token` where `expected` should be.
    pub(crate) fn unexpected(text: &str, token: Token, expected: &'static str) -> Self {
        let offset = token.span.start;
        let Position { line, column } = Position::new(text, offset);
        let found = match token.kind {
            TokenKind::UnterminatedString => return Self::UnterminatedString { line, column, offset },
            TokenKind::UnterminatedComment => return Self::UnterminatedComment { line, column, offset },
            TokenKind::End => "the end of the text".to_owned(),
            _ => quoted(token.span.text(text)),
        };
        Self::Unexpected { line, column, offset, found, expected }
    }

    /// Returns the byte offset of what was found.
    #[must_use]
    pub fn offset(&self) -> usize {
        match self {
            Self::Unexpected { offset, .. }
            | Self::UnterminatedString { offset, .. }
            | Self::UnterminatedComment { offset, .. } => *offset,
        }
    }
}

/// Quotes a piece of the text, shortened to what fits a message.
fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut short: String = text.chars().take(MAX_CHARS).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("`{short}`")
}
