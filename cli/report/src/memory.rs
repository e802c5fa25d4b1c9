//! Memory accesses: sectors and passes of each line, compared with the minimum.

use std::collections::BTreeSet;

use askama::Template;
use serde_json::{Value, json};
use warptrace_analysis::words::{
    access_doubt, access_finding, access_lacks, access_place, buffer, count, heat_bars, outside_finding,
    per_request, percent, ratio, site_name, touched_part, used_part,
};
use warptrace_analysis::{AccessCounts, AccessLine, Accesses, BufferFigures, SECTOR_BYTES, share};

use crate::guide::{Guide, LocationLink};
use crate::page::cut;
use crate::table::{Columns, PageTable};

/// Width of a bar, in coordinates of its viewBox.
const BAR: f64 = 160.0;
/// Cost of a pass, in sectors.
const SECTORS_OF_A_PASS: u64 = 4;

#[derive(Debug)]
pub(crate) struct Memory {
    /// Warnings about missing or inexact figures, one sentence each. The page shows them first.
    pub(crate) doubts: Vec<String>,
    pub(crate) findings: Vec<String>,
    pub(crate) lines: PageTable,
    pub(crate) buffers: PageTable,
    pub(crate) json: Value,
}

/// Actual and least cost, as bars.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="moved" width="160" height="14" viewBox="0 0 160 14" role="img" aria-label="{{ label }}"><title>{{ label }}</title><path d="M0 1h{{ bars[0] }}v12H0z"/><path class="least" d="M0 4h{{ bars[1] }}v6H0z"/></svg>"#
)]
struct Moved {
    bars: [String; 2],
    label: String,
}

const fn cost(sectors: u64, passes: u64) -> u64 {
    sectors.saturating_add(passes.saturating_mul(SECTORS_OF_A_PASS))
}

/// Describes the lines with the most wasted bytes and the buffers with the most accesses.
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
        lines: line_table(guide, found, most.unwrap_or(0)),
        buffers: buffer_table(guide, &found.buffers),
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

fn buffer_table(guide: &Guide<'_>, buffers: &[BufferFigures]) -> PageTable {
    let each = |number: u64, of: &BufferFigures| ratio(share(number, of.requests.max(1)));
    Columns::new()
        .text("buffer", |of: &&BufferFigures| cut(&buffer(guide.trace, of.buffer), guide.limits.text))
        .text("kind", |of| of.kind.to_owned())
        .number("bytes", |of| count(of.bytes))
        .number("loads", |of| count(of.loads))
        .number("stores", |of| count(of.stores))
        .number("atomics", |of| count(of.atomics))
        .bold("sectors", |of| each(of.sectors, of))
        .number("least", |of| each(of.least_sectors, of))
        .number("touched", |of| touched_part(of))
        .title("the part that was accessed, in whole sectors, or 4,096ths if these are larger")
        .text("first accessed at", |of| {
            let line = guide.names.line(&of.first.file, of.first.line);
            cut(&format!("launch {}, {line}", of.first.launch), guide.limits.text)
        })
        .code("heat", |of| heat_bars(of))
        .title("accesses in each 32nd of the buffer")
        .table(buffers.iter(), guide.limits.loops, |_| None)
}

fn line_table(guide: &Guide<'_>, found: &Accesses, most: u64) -> PageTable {
    let locations = |line: &AccessLine| -> Vec<u16> {
        found.sites_of(line).map(|site| site.location).filter(|location| *location > 0).collect()
    };
    let of_requests = |number: fn(&AccessCounts) -> u64| {
        move |line: &&AccessLine| percent(number(&line.counts), line.counts.requests)
    };
    Columns::new()
        .html("line", |line: &&AccessLine| {
            let name = access_place(guide.names, &line.file, line.line, line.sites.first().copied());
            let rank = locations(line).into_iter().find_map(|location| guide.rank(location));
            LocationLink { name: cut(&name, guide.limits.text), line: String::new(), rank }
        })
        .text("what", |line| {
            let what: BTreeSet<String> = found.sites_of(line).map(|site| site_name(site, false)).collect();
            cut(&what.into_iter().collect::<Vec<_>>().join(", "), guide.limits.text)
        })
        .number("requests", |line| count(line.counts.requests))
        .bold("sectors", |line| per_request(&line.counts, line.counts.sectors, line.counts.sectors))
        .number("least", |line| per_request(&line.counts, line.counts.least_sectors, line.counts.sectors))
        .number("used", |line| used_part(&line.counts))
        .bold("passes", |line| per_request(&line.counts, line.counts.passes, line.counts.passes))
        .number("least", |line| per_request(&line.counts, line.counts.least_passes, line.counts.passes))
        .label("least passes")
        .number("uniform", of_requests(|counts| counts.uniform))
        .number("affine", of_requests(|counts| counts.affine))
        .number("generic", of_requests(|counts| counts.generic))
        .number("stride", |line| {
            let most =
                found.sites_of(line).filter_map(|site| site.stride).max_by_key(|(_, requests)| *requests);
            most.map_or_else(|| "-".to_owned(), |(stride, _)| stride.to_string())
        })
        .title("bytes from lane to lane, most often")
        .html("moved and least", |line| moved(&line.counts, most))
        .table(found.lines.iter(), guide.limits.loops, |line| Some(guide.kernels(&locations(line))))
}

/// Draws actual and least cost, relative to `most`, the highest cost of a line.
fn moved(counts: &AccessCounts, most: u64) -> Moved {
    let bars = [cost(counts.sectors, counts.passes), cost(counts.least_sectors, counts.least_passes)];
    Moved {
        bars: bars.map(|cost| format!("{:.1}", BAR * share(cost, most))),
        label: format!(
            "{} of {} bytes moved were used; {} passes, {} would have done",
            count(counts.used_bytes),
            count(counts.sectors.saturating_mul(SECTOR_BYTES)),
            count(counts.passes),
            count(counts.least_passes)
        ),
    }
}
