//! Edits of a text by span, collected first and applied in one pass.

use std::ops::Range;

use crate::span::Span;

/// Insertions and replacements of one text. Offsets refer to the original text. Insertions at the same offset
/// keep the order of the calls.
///
/// ```
/// use warptrace_ptx::{Edits, Span};
///
/// let text = "ret;";
/// let mut edits = Edits::new();
/// edits.insert(0, "st.global.u32 [%rd1], %r1; ");
/// edits.replace(Span::new(0, 3), "exit");
/// assert_eq!(edits.apply(text)?, "st.global.u32 [%rd1], %r1; exit;");
/// # Ok::<(), warptrace_ptx::EditError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edits {
    /// Replaced spans, each with the range of its replacement in `new`.
    edits: Vec<(Span, Range<usize>)>,
    /// New texts, concatenated.
    new: String,
}

/// Reasons why edits cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Two edits overlap: they change the same bytes, or an insertion lies within a replaced span.
    #[error(
        "edits of bytes {}..{} and {}..{} overlap: make them one",
        first.start, first.end, second.start, second.end
    )]
    Overlap {
        /// The edit that begins first.
        first: Span,
        /// The edit that begins within it.
        second: Span,
    },
    /// The span is not a valid part of the text.
    #[error(
        "edit of bytes {}..{} of a text of {len} bytes: the span must lie in the text, on character boundaries, \
         and end behind its start",
        span.start, span.end
    )]
    OutOfText {
        /// The edit's span.
        span: Span,
        /// Length of the text in bytes.
        len: usize,
    },
}

impl Edits {
    /// Makes an empty list of edits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts `text` before the byte at the offset `at`.
    pub fn insert(&mut self, at: usize, text: impl AsRef<str>) {
        self.replace(Span::new(at, at), text);
    }

    /// Replaces the bytes of `span` by `text`. An empty span inserts.
    pub fn replace(&mut self, span: Span, text: impl AsRef<str>) {
        let start = self.new.len();
        self.new.push_str(text.as_ref());
        self.edits.push((span, start..self.new.len()));
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Returns the number of edits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edits.len()
    }

    /// Returns `text` with all edits applied. Insertions at an offset come before a replacement that starts
    /// there and after a replacement that ends there.
    ///
    /// # Errors
    /// Returns an [`EditError`] if edits overlap or lie outside the text.
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        let mut out = String::new();
        self.apply_to(text, &mut out)?;
        Ok(out)
    }

    /// Applies all edits to `text` and appends the result to `out`. After an error, `out` holds part of the
    /// result.
    pub(crate) fn apply_to(&self, text: &str, out: &mut String) -> Result<(), EditError> {
        let mut order: Vec<&(Span, Range<usize>)> = self.edits.iter().collect();
        // Insertions at one offset keep their order, because the sort is stable. They precede a replacement
        // that starts there.
        order.sort_by_key(|(span, _)| (span.start, !span.is_empty()));
        out.reserve(text.len() + self.new.len());
        let mut last = Span::new(0, 0);
        for (span, new) in order {
            if span.end < span.start || text.get(span.range()).is_none() {
                return Err(EditError::OutOfText { span: *span, len: text.len() });
            }
            if span.start < last.end {
                return Err(EditError::Overlap { first: last, second: *span });
            }
            out.push_str(&text[last.end..span.start]);
            out.push_str(&self.new[new.clone()]);
            last = *span;
        }
        out.push_str(&text[last.end..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_edit_changes_nothing() {
        assert_eq!(Edits::new().apply("ab\r\nβ").expect("nothing to refuse"), "ab\r\nβ");
    }

    #[test]
    fn insertions_at_one_offset_keep_their_order_around_replacements() {
        let mut edits = Edits::new();
        edits.replace(Span::new(2, 4), "XY");
        edits.insert(4, "<");
        edits.insert(2, "1");
        edits.insert(2, "2");
        edits.replace(Span::new(0, 2), "");
        edits.insert(4, ">");
        edits.insert(6, "end");
        assert_eq!(edits.apply("abcdef").expect("no overlap"), "12XY<>efend");
    }

    #[test]
    fn overlaps_are_refused() {
        for second in [Span::new(2, 3), Span::new(1, 2), Span::new(2, 9), Span::new(1, 4), Span::new(3, 3)] {
            let mut edits = Edits::new();
            edits.replace(Span::new(1, 4), "");
            edits.replace(second, "");
            let error = edits.apply("abcdefghij").expect_err("they overlap");
            assert!(matches!(error, EditError::Overlap { .. }), "{second:?}: {error}");
        }
    }

    #[test]
    fn spans_outside_the_text_are_refused() {
        for span in [Span::new(3, 5), Span::new(9, 9), Span::new(1, 1), Span::new(2, 0)] {
            let mut edits = Edits::new();
            edits.replace(span, "x");
            let error = edits.apply("βab").expect_err("not a part");
            assert_eq!(error, EditError::OutOfText { span, len: 4 });
        }
    }
}
