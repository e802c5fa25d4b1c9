//! Source text of tokens, for names.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, LineColumn, Span, TokenStream, TokenTree};
use quote::ToTokens;

/// Keeps the positions of what is parsed from a file, and not from the compiler's tokens, while it is there:
/// the compiler gives all of that the position of the attribute.
pub(crate) struct Positions(());

impl Positions {
    /// Begins it. Tokens made meanwhile must not meet those of the compiler.
    pub(crate) fn keep() -> Self {
        proc_macro2::fallback::force();
        Self(())
    }

    /// Parses a file; `None` if it cannot be read or is no Rust.
    pub(crate) fn parse(&self, file: &Path) -> Option<syn::File> {
        syn::parse_file(&fs::read_to_string(file).ok()?).ok()
    }
}

impl Drop for Positions {
    fn drop(&mut self) {
        proc_macro2::fallback::unforce();
    }
}

/// One name of a file.
pub(crate) fn canonical(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

/// One error of all, if there are any.
pub(crate) fn combined(errors: Vec<syn::Error>) -> syn::Result<()> {
    let all = errors.into_iter().reduce(|mut all, error| {
        all.combine(error);
        all
    });
    all.map_or(Ok(()), Err)
}

/// Characters of a name's part before it is cut.
const MAX_CHARACTERS: usize = 60;

/// Returns the source of `node` in one line, with blanks where the user has them, cut where it is long.
pub(crate) fn source(node: &impl ToTokens) -> String {
    let mut writer = Writer { text: String::new(), end: None };
    writer.tokens(node.to_token_stream());
    let mut cut = writer.text.char_indices().skip(MAX_CHARACTERS);
    if let (Some((at, _)), Some(_)) = (cut.next(), cut.next()) {
        writer.text.truncate(at);
        writer.text.push('…');
    }
    writer.text
}

/// Returns where the last token of `node` ends.
pub(crate) fn end(node: &impl ToTokens) -> LineColumn {
    match node.to_token_stream().into_iter().last() {
        Some(TokenTree::Group(group)) => group.span().end(),
        Some(token) => token.span().end(),
        None => Span::call_site().end(),
    }
}

/// The position this many columns to the right.
fn beside(at: LineColumn, columns: usize) -> LineColumn {
    LineColumn { column: at.column + columns, ..at }
}

struct Writer {
    text: String,
    /// Where the last token ended.
    end: Option<LineColumn>,
}

impl Writer {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    // The span of the whole: the spans of its ends are lost where the group was parsed.
                    let (start, end) = (group.span().start(), group.span().end());
                    self.word(&open, start, beside(start, open.len()));
                    self.tokens(group.stream());
                    self.word(
                        &close,
                        LineColumn { column: end.column.saturating_sub(close.len()), ..end },
                        end,
                    );
                }
                token => self.word(&token, token.span().start(), token.span().end()),
            }
        }
    }

    fn word(&mut self, word: &dyn std::fmt::Display, start: LineColumn, end: LineColumn) {
        if self.end.is_some_and(|before| before != start) {
            self.text.push(' ');
        }
        // Writing to a string does not fail.
        let _ = write!(self.text, "{word}");
        self.end = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(text: &str) -> String {
        source(&text.parse::<TokenStream>().unwrap())
    }

    #[test]
    fn blanks_stay_and_lines_are_joined() {
        assert_eq!(shortened("a[i].len()  <\n    b as u64"), "a[i].len() < b as u64");
        assert_eq!(shortened("Some((row, out)) = y.own(1.5e3)"), "Some((row, out)) = y.own(1.5e3)");
        assert_eq!(shortened("'a: &'static str"), "'a: &'static str");
        assert_eq!(shortened(""), "");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let long = shortened(&format!("\"{}\"", "ü".repeat(100)));
        assert_eq!(long.chars().count(), MAX_CHARACTERS + 1);
        assert!(long.ends_with('…'));
        assert_eq!(shortened(&"a".repeat(MAX_CHARACTERS)).chars().count(), MAX_CHARACTERS);
    }

    #[test]
    fn the_end_is_that_of_the_last_token() {
        let tokens: TokenStream = "if x {\n  y\n }".parse().unwrap();
        assert_eq!((end(&tokens).line, end(&tokens).column), (3, 2));
    }
}
