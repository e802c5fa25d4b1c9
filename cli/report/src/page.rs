//! The page, for its template.

use askama::Template;

use crate::changes::Changes;
use crate::graph::Graphs;
use crate::lines::{Hottest, Row, SourceFile};
use crate::loops::Loop;
use crate::strips::Strips;
use crate::warps::{Kernel, Warps};

/// Everything on the page, in words.
#[derive(Template)]
#[template(path = "page.html")]
pub(crate) struct Page<'a> {
    pub(crate) css: &'static str,
    pub(crate) js: &'static str,
    /// Name of the trace.
    pub(crate) name: &'a str,
    /// How it was recorded.
    pub(crate) recorded: String,
    pub(crate) is_whole: bool,
    pub(crate) has_events: bool,
    pub(crate) finding: String,
    /// What the trace holds and lacks, a line each.
    pub(crate) holds: Vec<String>,
    /// Launches that ended early.
    pub(crate) ends: Vec<String>,
    pub(crate) standing: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) hot_lines: usize,
    /// The hottest lines.
    pub(crate) hottest: Vec<Hottest>,
    pub(crate) files: Vec<SourceFile>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) loops: Vec<Loop>,
    pub(crate) more_loops: usize,
    pub(crate) warps: Warps,
    pub(crate) strips: Option<Strips>,
    pub(crate) graphs: Graphs,
    pub(crate) changes: Option<Changes>,
    pub(crate) json: String,
}

/// The first `most` characters; the last is an ellipsis where there are more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A number of rows with commas, for templates.
fn number(rows: &usize) -> String {
    warptrace_analysis::words::count(*rows as u64)
}
