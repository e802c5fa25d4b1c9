//! `warptrace accesses`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::words::{
    self, access_finding, access_lacks, accesses_of, bars, buffer, outside_finding, unwritten_lack,
};
use warptrace_analysis::{
    AccessCounts, Accesses, BufferFigures, OrderItems, SiteFigures, UnwrittenReads, accesses_with_unwritten,
};

use super::words::{percent, ratio};
use super::{Answer, ROWS, TextTable, first, print_rows};
use crate::arguments::{AccessColumn, Rows};
use crate::opened::Opened;
use crate::output::{count, say};

pub(crate) fn run(command: &Rows<AccessColumn>) -> anyhow::Result<ExitCode> {
    let answer = Answer::of_one(command)?;
    let Opened { trace, state } = answer.opened()?;
    let (found, unwritten) = accesses_with_unwritten(trace, &command.page.selected.selection())?;
    let is_asked = |site: &&SiteFigures| answer.location.is_none_or(|id| site.location == id);
    let mut sites: Vec<&SiteFigures> = found.sites.iter().filter(is_asked).collect();
    let by_counts = |key: fn(&AccessCounts) -> u64| move |site: &&SiteFigures| Reverse(key(&site.counts));
    match command.sort.unwrap_or(AccessColumn::Wasted) {
        AccessColumn::Wasted => sites.order_by_key(by_counts(|counts| {
            // A pass takes as long as four sectors.
            counts.wasted_bytes().saturating_add(128 * counts.wasted_passes())
        })),
        AccessColumn::Moved => sites.order_by_key(by_counts(|counts| counts.moved_bytes)),
        AccessColumn::Passes => sites.order_by_key(by_counts(|counts| counts.passes)),
        AccessColumn::Requests => sites.order_by_key(by_counts(|counts| counts.requests)),
        AccessColumn::Source => {
            sites.order_by(|a, b| (&a.file, a.line, a.site).cmp(&(&b.file, b.line, b.site)));
        }
    }
    let finding = access_finding(&found, &answer.names);
    let outside = outside_finding(trace, &found, &answer.names);
    if command.page.json {
        let Accesses { lines, accesses, lost, lost_is_least, left_out, unmatched, damaged, .. } = &found;
        let more = json!({
            "finding": finding,
            "outside_finding": outside,
            "accesses": accesses,
            "lost_accesses": lost,
            "lost_is_least": lost_is_least,
            "left_out_accesses": left_out,
            "unmatched_accesses": unmatched,
            "damaged_entries": damaged,
            "exact": found.is_exact(),
            "outside": found.outside,
            "buffers": found.buffers,
            "all_buffers_known": trace.has_all_buffers(),
            "unknown_buffer_accesses": found.unknown_buffer,
            "unwritten": unwritten.buffers,
            "unwritten_incomplete_from": unwritten.incomplete_from,
            "lines": lines,
        });
        let (sites, _) = first(sites, command.limit, usize::MAX);
        answer.json_rows(more, "sites", sites.into_iter().map(|row| json!(row)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !trace.has_accesses() {
        answer.headline()?;
        say!("no accesses: none were recorded; record with `--accesses`")?;
        return Ok(ExitCode::SUCCESS);
    }
    let lacking = unwritten_lack(&unwritten);
    let print_findings =
        || lacking.iter().chain(&outside).chain([&finding]).try_for_each(|finding| say!("{finding}"));
    // What is not known comes first.
    if state.is_whole && found.is_whole() {
        print_findings()?;
        answer.headline()?;
    } else {
        answer.headline()?;
        say!("{}", access_lacks(&found))?;
        print_findings()?;
    }
    let (sites, more) = first(sites, command.limit, ROWS);
    print_rows(&site_table(&answer, &sites), more)?;
    print_buffers(&answer, &found, command.limit)?;
    print_unwritten(&answer, &unwritten, command.limit)?;
    if sites.iter().any(|site| site.counts.sectors > 0) {
        say!(
            "\nSectors: 32 bytes of global memory each that a request touches, in the mean, and the least that would do."
        )?;
    }
    if sites.iter().any(|site| site.counts.passes > 0) {
        say!("Passes: through the banks of shared memory, in the mean; 1 for each 32 words is the least.")?;
    }
    if sites.iter().any(|site| site.space == "generic" && site.counts.sectors > 0) {
        say!("Assumed: generic addresses are of global memory.")?;
    }
    for site in sites.iter().filter(|site| site.events.is_some_and(|events| events != site.counts.requests)) {
        say!(
            "Estimated: {}, {}: its events say {} requests, runs that ended together {}.",
            answer.names.line(&site.file, site.line),
            describe(site),
            count(site.events.unwrap_or(0)),
            count(site.counts.requests)
        )?;
    }
    if sites.iter().any(|site| site.events.is_none()) {
        say!(
            "Assumed where events do not tell: lanes whose runs of equal steps ended together came together."
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a row for each buffer.
fn print_buffers(answer: &Answer, found: &Accesses, limit: Option<usize>) -> anyhow::Result<()> {
    let trace = answer.trace()?;
    let Some(unknown) = found.unknown_buffer else { return Ok(()) };
    if !found.buffers.is_empty() {
        let each = |number: u64, of: &BufferFigures| ratio(number as f64 / of.requests.max(1) as f64);
        let strip = |heat: &Vec<u64>| bars(&heat.chunks(2).map(|two| two.iter().sum()).collect::<Vec<_>>());
        let table = TextTable::<&BufferFigures>::new()
            .left("buffer", |of| buffer(trace, of.buffer))
            .left("kind", |of| of.kind.to_owned())
            .right("bytes", |of| count(of.bytes))
            .right("accesses", |of| count(of.accesses))
            .right("loads", |of| count(of.loads))
            .right("stores", |of| count(of.stores))
            .right("atomics", |of| count(of.atomics))
            .right("sectors", move |of| each(of.sectors, of))
            .right("least", move |of| each(of.least_sectors, of))
            .right("touched", |of| {
                of.touched_bytes.map_or_else(|| "-".to_owned(), |touched| percent(touched, of.bytes))
            })
            .left("first", |of| {
                format!("{} {}", of.first.launch, answer.names.line(&of.first.file, of.first.line))
            })
            .left("heat", move |of| of.heat.as_ref().map_or_else(|| "-".to_owned(), strip));
        let (rows, more) = first(found.buffers.iter().collect(), limit, ROWS);
        print_rows(&table.of(&rows), more)?;
        say!(
            "\nTouched: the part of a buffer that was accessed, in whole sectors, or 4,096ths if these are larger. First: the launch and the line that accessed it first. Heat: accesses in each 32nd."
        )?;
    }
    if unknown > 0 {
        say!(
            "{} in no buffer that is known: by generic addresses, or to memory that the trace does not tell of.",
            accesses_of(unknown)
        )?;
    }
    Ok(())
}

/// Prints which buffers were read before any traced write.
fn print_unwritten(answer: &Answer, reads: &UnwrittenReads, limit: Option<usize>) -> anyhow::Result<()> {
    let trace = answer.trace()?;
    let all: Vec<_> = reads.buffers.iter().flatten().collect();
    if all.is_empty() {
        return Ok(());
    }
    let (rows, more) = first(all, limit, ROWS);
    say!("\nRead before any traced write:")?;
    rows.iter().try_for_each(|found| say!("  {}", words::unwritten(trace, &answer.names, found)))?;
    if more > 0 {
        say!("and {} more; `--limit 0` shows all", count(more as u64))?;
    }
    Ok(say!("Not seen: what the host, copies and kernels that are not recorded wrote.")?)
}

/// A row for each site.
fn site_table(answer: &Answer, sites: &[&SiteFigures]) -> String {
    let mean = |number: u64, of: &SiteFigures| ratio(number as f64 / of.counts.requests.max(1) as f64);
    let each = move |number: u64, all: u64, of: &SiteFigures| match all {
        0 => "-".to_owned(),
        _ => mean(number, of),
    };
    TextTable::<&SiteFigures>::new()
        .left("line", |of| answer.names.line(&of.file, of.line))
        .left("site", |of| describe(of))
        .right("requests", |of| count(of.counts.requests))
        .right("lanes", move |of| mean(of.counts.lanes, of))
        .right("sectors", move |of| each(of.counts.sectors, of.counts.sectors, of))
        .right("least", move |of| each(of.counts.least_sectors, of.counts.sectors, of))
        .right("used", |of| match of.counts.moved_bytes {
            0 => "-".to_owned(),
            moved => percent(of.counts.used_bytes, moved),
        })
        .right("passes", move |of| each(of.counts.passes, of.counts.passes, of))
        .right("least", move |of| each(of.counts.least_passes, of.counts.passes, of))
        .right("uniform", |of| percent(of.counts.uniform, of.counts.requests))
        .right("affine", |of| percent(of.counts.affine, of.counts.requests))
        .right("generic", |of| percent(of.counts.generic, of.counts.requests))
        .right("stride", |of| of.stride.map_or_else(|| "-".to_owned(), |(stride, _)| stride.to_string()))
        .of(sites)
}

/// `load global 16`, `value "length"`.
fn describe(site: &SiteFigures) -> String {
    match (site.kind, site.name.as_str()) {
        ("", _) => format!("site {}", site.site),
        ("value", name) => format!("value {name}"),
        (kind, _) => format!("{kind} {} {}", site.space, site.bytes),
    }
}
