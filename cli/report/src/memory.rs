//! What lanes accessed: sectors and passes of each line, beside the least that would do.

use serde_json::{Value, json};
use warptrace_analysis::words::{
    access_doubt, access_finding, access_lacks, bars, buffer, count, outside_finding, percent, ratio,
};
use warptrace_analysis::{AccessCounts, AccessLine, Accesses, BufferFigures, SECTOR_BYTES, share};

use crate::guide::{Guide, Place};

/// Width of a bar, in coordinates of its viewBox.
const BAR: f64 = 160.0;
/// A pass takes as long as this many sectors.
const SECTORS_OF_A_PASS: u64 = 4;

/// The section, in words.
#[derive(Debug)]
pub(crate) struct Memory {
    /// What is not known or not exact, a sentence each; it comes first.
    pub(crate) doubts: Vec<String>,
    /// What matters most, a sentence each.
    pub(crate) findings: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Lines that are left out.
    pub(crate) more: usize,
    pub(crate) buffers: Vec<Buffer>,
    /// Buffers that are left out.
    pub(crate) more_buffers: usize,
    pub(crate) json: Value,
}

/// A line.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) place: Place,
    /// The kernels that came there: their places in the analysis.
    pub(crate) kernels: String,
    pub(crate) what: String,
    pub(crate) requests: String,
    pub(crate) sectors: String,
    pub(crate) least_sectors: String,
    pub(crate) used: String,
    pub(crate) passes: String,
    pub(crate) least_passes: String,
    pub(crate) uniform: String,
    pub(crate) affine: String,
    pub(crate) generic: String,
    pub(crate) stride: String,
    /// Lengths of what was moved and of the least that would have done, of a bar of 160.
    pub(crate) bars: [String; 2],
    /// What the bar shows.
    pub(crate) label: String,
}

/// A buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) bytes: String,
    /// Loads, stores and atomics.
    pub(crate) accesses: [String; 3],
    pub(crate) sectors: String,
    pub(crate) least_sectors: String,
    pub(crate) touched: String,
    pub(crate) first: String,
    /// Accesses in each 32nd of it, as bars.
    pub(crate) heat: String,
}

/// What the memory did for a line, in sectors.
const fn cost(sectors: u64, passes: u64) -> u64 {
    sectors.saturating_add(passes.saturating_mul(SECTORS_OF_A_PASS))
}

/// The lines that are shown, those first that move the most bytes more than they need.
pub(crate) fn memory(guide: &Guide<'_>, found: &Accesses) -> Memory {
    let lacks = (!found.is_whole()).then(|| access_lacks(found));
    let most = found.lines.iter().map(|line| cost(line.counts.sectors, line.counts.passes)).max();
    let shown = || found.lines.iter().take(guide.limits.loops);
    Memory {
        doubts: lacks.into_iter().chain(access_doubt(found)).collect(),
        findings: outside_finding(guide.trace, found, guide.names)
            .into_iter()
            .chain([access_finding(found, guide.names)])
            .collect(),
        rows: shown().map(|line| row(guide, found, line, most.unwrap_or(0))).collect(),
        more: found.lines.len().saturating_sub(guide.limits.loops),
        buffers: found.buffers.iter().take(guide.limits.loops).map(|of| of_buffer(guide, of)).collect(),
        more_buffers: found.buffers.len().saturating_sub(guide.limits.loops),
        json: json!({
            "accesses": found.accesses,
            "outside": found.outside,
            "lost_accesses": found.lost,
            "lost_is_least": found.lost_is_least,
            "left_out_accesses": found.left_out,
            "unmatched_accesses": found.unmatched,
            "exact": found.is_exact(),
            "buffers": found.buffers.iter().take(guide.limits.loops).collect::<Vec<_>>(),
            "lines": shown().collect::<Vec<_>>(),
        }),
    }
}

fn of_buffer(guide: &Guide<'_>, found: &BufferFigures) -> Buffer {
    let each = |number: u64| ratio(share(number, found.requests.max(1)));
    let heat = |heat: &Vec<u64>| bars(&heat.chunks(2).map(|two| two.iter().sum()).collect::<Vec<_>>());
    let unknown = || "-".to_owned();
    let line = guide.names.line(&found.first.file, found.first.line);
    Buffer {
        name: crate::page::cut(&buffer(guide.trace, found.buffer), guide.limits.text),
        kind: found.kind,
        bytes: count(found.bytes),
        accesses: [found.loads, found.stores, found.atomics].map(count),
        sectors: each(found.sectors),
        least_sectors: each(found.least_sectors),
        touched: found.touched_bytes.map_or_else(unknown, |touched| percent(touched, found.bytes)),
        first: crate::page::cut(&format!("launch {}, {line}", found.first.launch), guide.limits.text),
        heat: found.heat.as_ref().map_or_else(unknown, heat),
    }
}

fn row(guide: &Guide<'_>, found: &Accesses, line: &AccessLine, most: u64) -> Row {
    let counts = &line.counts;
    let sites = || found.sites.iter().filter(|site| line.sites.contains(&site.site));
    let each = |number: u64, all: u64| match all {
        0 => "-".to_owned(),
        _ => ratio(number as f64 / counts.requests.max(1) as f64),
    };
    let of_requests = |number| percent(number, counts.requests);
    let locations: Vec<u16> = sites().map(|site| site.location).filter(|location| *location > 0).collect();
    let name = match guide.names.line(&line.file, line.line).as_str() {
        "-" => format!("site {}", line.sites.first().copied().unwrap_or(0)),
        place => place.to_owned(),
    };
    let rank = locations.iter().find_map(|&location| guide.rank(location));
    let mut what: Vec<String> = sites()
        .map(|site| match (site.kind, site.name.as_str()) {
            ("", _) => format!("site {}", site.site),
            ("value", name) => format!("value {name}"),
            (kind, _) => format!("{kind} {}", site.space),
        })
        .collect();
    what.sort_unstable();
    what.dedup();
    let strides = sites().filter_map(|site| site.stride).max_by_key(|(_, requests)| *requests);
    let [moved, least] = bar(counts);
    Row {
        place: Place { name: crate::page::cut(&name, guide.limits.text), line: String::new(), rank },
        kernels: guide.kernels(&locations),
        what: crate::page::cut(&what.join(", "), guide.limits.text),
        requests: count(counts.requests),
        sectors: each(counts.sectors, counts.sectors),
        least_sectors: each(counts.least_sectors, counts.sectors),
        used: match counts.moved_bytes {
            0 => "-".to_owned(),
            moved => percent(counts.used_bytes, moved),
        },
        passes: each(counts.passes, counts.passes),
        least_passes: each(counts.least_passes, counts.passes),
        uniform: of_requests(counts.uniform),
        affine: of_requests(counts.affine),
        generic: of_requests(counts.generic),
        stride: strides.map_or_else(|| "-".to_owned(), |(stride, _)| stride.to_string()),
        bars: [moved, least].map(|cost| format!("{:.1}", BAR * share(cost, most))),
        label: format!(
            "{} of {} bytes moved were used; {} passes, {} would have done",
            count(counts.used_bytes),
            count(counts.sectors.saturating_mul(SECTOR_BYTES)),
            count(counts.passes),
            count(counts.least_passes)
        ),
    }
}

/// What the memory did, and the least that would have done.
const fn bar(counts: &AccessCounts) -> [u64; 2] {
    [cost(counts.sectors, counts.passes), cost(counts.least_sectors, counts.least_passes)]
}
