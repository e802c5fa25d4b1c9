//! Source text of tokens, for names.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, LineColumn, Span, TokenStream, TokenTree};
use quote::ToTokens;

/// While it exists, tokens parsed from a file keep their positions in that file. Otherwise the compiler
/// assigns the position of the attribute to all of them.
pub(crate) struct Positions(());

impl Positions {
    /// Enables this mode. Tokens created in this mode must not be combined with tokens of the compiler.
    pub(crate) fn keep() -> Self {
        proc_macro2::fallback::force();
        Self(())
    }

    /// Parses a file. Returns `None` if it is unreadable or not valid Rust.
    pub(crate) fn parse(&self, file: &Path) -> Option<syn::File> {
        syn::parse_file(&fs::read_to_string(file).ok()?).ok()
    }
}

impl Drop for Positions {
    fn drop(&mut self) {
        proc_macro2::fallback::unforce();
    }
}

/// Returns the canonical path of a file, or `file` itself if that fails.
pub(crate) fn canonical(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

pub(crate) fn combined(errors: Vec<syn::Error>) -> syn::Result<()> {
    let all = errors.into_iter().reduce(|mut all, error| {
        all.combine(error);
        all
    });
    all.map_or(Ok(()), Err)
}

/// Maximum characters of a name's part. Longer parts are truncated.
const MAX_CHARACTERS: usize = 60;

/// Returns the source of `node` as one line, with spaces where the user has whitespace, truncated if long.
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

pub(crate) fn end(node: &impl ToTokens) -> LineColumn {
    match node.to_token_stream().into_iter().last() {
        Some(TokenTree::Group(group)) => group.span().end(),
        Some(token) => token.span().end(),
        None => Span::call_site().end(),
    }
}

fn beside(at: LineColumn, columns: usize) -> LineColumn {
    LineColumn { column: at.column + columns, ..at }
}

struct Writer {
    text: String,
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
                    // The group's span, because the spans of its delimiters are lost after parsing.
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
