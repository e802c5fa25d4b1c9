//! Builds the page of a trace.

use std::collections::BTreeSet;
use std::path::PathBuf;

use askama::Template;
use warptrace_analysis::words::{self, Names};
use warptrace_analysis::{Accesses, Analysis, Selection, accesses, analyse};
use warptrace_decoder::TraceFile;
use warptrace_format::shown;

use crate::changes::{Compared, changes, compared};
use crate::error::ReportError;
use crate::figures::{figures, in_html, packed, shorten};
use crate::guide::Guide;
use crate::limits::{Limits, MAX_BYTES};
use crate::lines::{self, Files};
use crate::page::{Page, cut};
use crate::{blocks, graph, loops, memory, parts, picture, strips, timeline, warps};

/// Number of launches that ended early and are named.
const ENDS: usize = 5;

/// Options of a page.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Name of the trace on the page: its file name.
    pub name: String,
    /// Warps to analyse.
    pub selection: Selection,
    /// Folders to search for sources. The current directory is searched after them.
    pub sources: Vec<PathBuf>,
}

impl Options {
    /// Returns options for a whole trace called `name`.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// A trace to compare with.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The trace.
    pub trace: &'a TraceFile,
    /// Name of the trace on the page.
    pub name: &'a str,
}

/// A page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// HTML with all its resources, at most [`MAX_BYTES`] bytes.
    pub html: String,
    /// One sentence about missing data, shown first on the page; `None` if the trace is complete.
    pub lacks: Option<String>,
    /// Whether the page has an event.
    pub has_events: bool,
    /// Parts that could not be shown and the reasons, one sentence each. The page lists them too.
    pub notes: Vec<String>,
    /// Source files on the page, without duplicates.
    pub embedded: Vec<PathBuf>,
}

/// Contents of the page before limits apply.
struct Parts<'a> {
    trace: &'a TraceFile,
    options: &'a Options,
    analysis: Analysis,
    names: Names,
    files: Files,
    compared: Option<Compared<'a>>,
    accessed: Option<Accesses>,
}

/// Renders the page of a trace, with a comparison section if `base` is given.
///
/// Reads the trace once for its figures and again for the warps that the page draws; the latter repeats with
/// smaller limits if the page is larger than [`MAX_BYTES`]. With `base`, reads both traces once more. Reads
/// source files that the table of locations names, if they lie in the current directory or in the options'
/// folders.
///
/// # Errors
/// If the trace does not have what was selected or is damaged, if the two traces have no location in common,
/// or if the smallest page is larger than [`MAX_BYTES`].
pub fn report<'a>(
    trace: &'a TraceFile,
    options: &'a Options,
    base: Option<Base<'a>>,
) -> Result<Report, ReportError> {
    let compared = base.map(|base| compared(trace, options, &base)).transpose()?;
    let analysis = analyse(trace, &options.selection)?;
    let files = lines::read_files(trace, &analysis, &options.sources, Limits::FULL);
    let names = Names::new(trace);
    let accessed = trace.has_accesses().then(|| accesses(trace, &options.selection)).transpose()?;
    let parts = Parts { trace, options, analysis, names, files, compared, accessed };
    let mut limits = Limits::FULL;
    loop {
        let page = parts.page(limits)?;
        if page.html.len() <= MAX_BYTES {
            return Ok(page);
        }
        limits = limits.smaller().ok_or(ReportError::TooLarge { bytes: page.html.len() })?;
    }
}

impl Parts<'_> {
    fn page(&self, limits: Limits) -> Result<Report, ReportError> {
        let Self { trace, options, analysis, names, files, .. } = self;
        let guide = Guide::new(trace, analysis, names, limits);
        let strips = strips::strips(&guide)?;
        let timelines = timeline::timelines(&guide)?;
        let blocks = blocks::blocks(&guide, &options.selection)?;
        let parts = parts::parts(&guide);
        let changes = self.compared.as_ref().map(|compared| changes(compared, limits)).transpose()?;
        let memory = self.accessed.as_ref().map(|accessed| memory::memory(&guide, accessed));
        let mut value =
            figures(&guide, &parts, strips.as_ref(), &timelines, blocks.as_ref(), changes.as_ref());
        if let Some(memory) = &memory {
            value["accesses"] = memory.json.clone();
            shorten(&mut value["accesses"], limits.text);
        }
        let json = in_html(&value)?;
        let packed = packed(strips.as_ref(), &timelines, blocks.as_ref(), limits.text)?;
        let source = lines::source(&guide, files);
        // One file may be spelt in several ways.
        let embedded: BTreeSet<PathBuf> =
            files.values().flatten().filter_map(|source| source.path.clone()).collect();
        let mut notes = source.notes;
        let has_events = analysis.counts.visits > 0;
        if has_events && trace.metadata().locations.is_empty() {
            notes
                .insert(0, "The trace has no table of locations, so they are shown by their ids.".to_owned());
        }
        let accessed = self.accessed.as_ref();
        let outside = accessed.and_then(|found| words::outside_finding(trace, found, names));
        let of_memory = accessed.map(|found| words::access_finding(found, names));
        let findings = words::findings(trace, analysis, names);
        let findings = outside.into_iter().chain(findings).chain(of_memory).collect();
        let ends = trace.launches().filter_map(|info| words::early_end(trace, info.number()));
        let page = Page {
            css: include_str!("../assets/page.css"),
            js: concat!(
                include_str!("../assets/colours.js"),
                include_str!("../assets/scale.js"),
                include_str!("../assets/strips.js"),
                include_str!("../assets/timeline.js"),
                include_str!("../assets/blocks.js"),
                include_str!("../assets/page.js")
            ),
            name: &cut(&shown(&options.name), limits.text),
            recorded: self.recorded(limits),
            is_whole: words::missing(&analysis.losses).is_none(),
            has_events,
            findings,
            is_timed: analysis.time.is_some(),
            source_columns: if analysis.time.is_some() { 11 } else { 9 },
            holds: words::losses(analysis).lines().map(|line| cut(line, 2 * limits.text)).collect(),
            ends: ends.take(ENDS).map(|end| cut(&end, 2 * limits.text)).collect(),
            notes: notes.clone(),
            hot_lines: analysis.lines.len().min(limits.lines),
            picture: picture::picture(&guide),
            files: source.files,
            kernels: warps::kernels(analysis, limits),
            kernel_names: analysis
                .kernels
                .iter()
                .take(limits.kernels)
                .map(|kernel| cut(&kernel.kernel, limits.text))
                .collect(),
            loops: loops::loops(&guide),
            more_loops: analysis.loops().count().saturating_sub(limits.loops),
            parts,
            memory,
            warps: warps::warps(&guide, strips.as_ref()),
            strips,
            timelines,
            blocks,
            graphs: graph::graphs(&guide),
            changes,
            json,
            packed,
        };
        Ok(Report {
            html: page.render()?,
            lacks: words::missing(&analysis.losses),
            has_events,
            notes,
            embedded: embedded.into_iter().collect(),
        })
    }

    fn recorded(&self, limits: Limits) -> String {
        let metadata = self.trace.metadata();
        let mut text = format!("recorded by {} on {}", metadata.tool, metadata.device.name);
        let Selection { kernel, launch, block, warp, .. } = &self.options.selection;
        let chosen = [
            kernel.as_ref().map(|kernel| format!("kernel {}", shown(kernel))),
            launch.map(|launch| format!("launch {launch}")),
            block.map(|[x, y, z]| format!("block {x},{y},{z}")),
            warp.map(|warp| format!("warp {warp} of each block")),
        ];
        let chosen: Vec<String> = chosen.into_iter().flatten().collect();
        if !chosen.is_empty() {
            text += &format!("; shown is only {}", chosen.join(", "));
        }
        cut(&text, 2 * limits.text)
    }
}
