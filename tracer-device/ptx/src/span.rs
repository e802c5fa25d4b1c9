//! Byte ranges of the text, and offsets as line and column.

use std::ops::Range;

/// A range of bytes of the parsed text. Both ends are on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Makes a span of the bytes from `start` (included) to `end` (excluded).
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Returns true if the span is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns true if the byte at `offset` is in the span.
    #[must_use]
    pub const fn contains(self, offset: usize) -> bool {
        self.start <= offset && offset < self.end
    }

    /// Returns the span's part of `text`, the parsed text. Panics if the span is not a valid range of `text`.
    #[must_use]
    pub fn text(self, text: &str) -> &str {
        &text[self.range()]
    }

    /// Returns the span as a range for indexing.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A position in the text, as editors show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// Returns the line and column of `offset`. An offset beyond the text counts as its end, an offset within
    /// a character as the start of the character. Takes time linear in the offset.
    #[must_use]
    pub fn new(text: &str, offset: usize) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        Self { line, column: 1 + before[line_start..].chars().count() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a\r\nβγ x\n";
        assert_eq!(Position::new(text, 0), Position { line: 1, column: 1 });
        let x = text.find('x').expect("x is there");
        assert_eq!(Position::new(text, x), Position { line: 2, column: 4 });
        assert_eq!(Position::new(text, x - 2), Position { line: 2, column: 2 });
        assert_eq!(Position::new(text, 1000), Position { line: 3, column: 1 });
    }
}
