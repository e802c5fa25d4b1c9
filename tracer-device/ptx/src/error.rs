//! Errors of the parser.

use crate::lexer::{Token, TokenKind};
use crate::span::Position;

/// Errors of [`Module::parse`](crate::Module::parse).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The text does not follow PTX's grammar.
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
        /// The expected text.
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

    /// Returns the byte offset of the error.
    #[must_use]
    pub fn offset(&self) -> usize {
        match self {
            Self::Unexpected { offset, .. }
            | Self::UnterminatedString { offset, .. }
            | Self::UnterminatedComment { offset, .. } => *offset,
        }
    }
}

fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut short: String = text.chars().take(MAX_CHARS).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("`{short}`")
}
