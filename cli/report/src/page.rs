//! The page and helpers of its template.

use askama::Template;

use crate::blocks::Blocks;
use crate::changes::Changes;
use crate::graph::Graphs;
use crate::lines::{LineRow, SourceFile};
use crate::loops::Loop;
use crate::memory::Memory;
use crate::parts::Parts;
use crate::picture::Picture;
use crate::strips::Strips;
use crate::table::PageTable;
use crate::timeline::Timeline;
use crate::warps::Warps;

#[derive(Template)]
#[template(path = "page.html")]
pub(crate) struct Page<'a> {
    pub(crate) css: &'static str,
    pub(crate) js: &'static str,
    pub(crate) name: &'a str,
    pub(crate) recorded: String,
    pub(crate) is_whole: bool,
    pub(crate) has_events: bool,
    pub(crate) findings: Vec<String>,
    pub(crate) is_timed: bool,
    pub(crate) source_columns: usize,
    /// Contents and losses of the trace, one line each.
    pub(crate) holds: Vec<String>,
    pub(crate) ends: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) hot_lines: usize,
    pub(crate) picture: Picture,
    pub(crate) files: Vec<SourceFile>,
    pub(crate) kernels: PageTable,
    pub(crate) kernel_names: Vec<String>,
    pub(crate) parts: Parts,
    pub(crate) loops: Vec<Loop>,
    pub(crate) more_loops: usize,
    pub(crate) memory: Option<Memory>,
    pub(crate) warps: Warps,
    pub(crate) strips: Option<Strips>,
    pub(crate) timelines: Vec<Timeline>,
    pub(crate) blocks: Option<Blocks>,
    pub(crate) graphs: Graphs,
    pub(crate) changes: Option<Changes>,
    pub(crate) json: String,
    /// Strips, timelines and blocks, compressed, in base64.
    pub(crate) packed: String,
}

/// Returns the first `most` characters. If the text is longer, the last of them is an ellipsis.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Formats a number of rows with thousands separators, for templates.
fn number(rows: impl std::borrow::Borrow<usize>) -> String {
    warptrace_analysis::words::count(*rows.borrow() as u64)
}

/// Returns the HTML of a text. Text between two backticks becomes code.
fn marked(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    let mut rest = text.split('`').peekable();
    let mut is_code = false;
    while let Some(piece) = rest.next() {
        // An unpaired backtick is kept.
        let is_open = is_code && rest.peek().is_none();
        html.push_str(if is_open {
            "`"
        } else if is_code {
            "<code>"
        } else {
            ""
        });
        for character in piece.chars() {
            match character {
                '&' => html.push_str("&amp;"),
                '<' => html.push_str("&lt;"),
                '>' => html.push_str("&gt;"),
                '"' => html.push_str("&quot;"),
                '\'' => html.push_str("&#39;"),
                other => html.push(other),
            }
        }
        html.push_str(if is_code && !is_open { "</code>" } else { "" });
        is_code = !is_code;
    }
    html
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn backticks_become_code() {
        assert_eq!(marked("kernel `a<b>` failed"), "kernel <code>a&lt;b&gt;</code> failed");
        assert_eq!(marked("`a` & `b`"), "<code>a</code> &amp; <code>b</code>");
        assert_eq!(["it's ` one", "`", "none"].map(marked), ["it&#39;s ` one", "`", "none"]);
    }
}
