//! Byte ranges of the text, and how a person names an offset: line and column.

use std::ops::Range;

/// A range of bytes of the text that was parsed. Both ends are on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset of the byte that follows the last.
    pub end: usize,
}

impl Span {
    /// Makes a span of the bytes from `start` up to, not including, `end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Tells whether the span holds no byte.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Tells whether the byte at `offset` belongs to the span.
    #[must_use]
    pub const fn contains(self, offset: usize) -> bool {
        self.start <= offset && offset < self.end
    }

    /// Returns the span's part of `text`, which must be the text that was parsed.
    ///
    /// # Panics
    ///
    /// If `text` is another text, shorter than the span's end.
    #[must_use]
    pub fn text(self, text: &str) -> &str {
        &text[self.range()]
    }

    /// Returns the span as a range, to index a string with.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A position as editors show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// Finds the line and column of `offset`. Offsets beyond the text are taken as its end, offsets within a
    /// character as that character. Reads the text up to the offset.
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
        // Within γ, and beyond the end.
        assert_eq!(Position::new(text, x - 2), Position { line: 2, column: 2 });
        assert_eq!(Position::new(text, 1000), Position { line: 3, column: 1 });
    }
}
