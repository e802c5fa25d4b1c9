//! `warptrace accesses`.

use serde_json::json;
use warptrace_analysis::words::{
    self, access_finding, access_lacks, accesses_of, buffer, heat_bars, outside_finding, per_request,
    site_name, touched_part, unwritten_lack, used_part,
};
use warptrace_analysis::{Accesses, BufferFigures, SiteFigures, UnwrittenReads, accesses_with_unwritten};

use super::rows::{Listed, Order, first};
use super::words::{percent, ratio};
use super::{Answer, ROWS, TextTable, print_more, print_rows};
use crate::arguments::Rows;
use crate::opened::Opened;
use crate::output::{count, say};

impl Listed for SiteFigures {
    const NAME: &'static str = "sites";
    const ORDERS: &'static [Order<Self>] = &[
        Order::most("wasted", "Sectors and passes more than would have done", |site| {
            // A pass takes as long as four sectors of 32 bytes.
            site.counts.wasted_bytes().saturating_add(128 * site.counts.wasted_passes())
        }),
        Order::most("moved", "Bytes of global memory that were moved", |site| site.counts.moved_bytes),
        Order::most("passes", "Passes through the banks of shared memory", |site| site.counts.passes),
        Order::most("requests", "Times that lanes accessed it together", |site| site.counts.requests),
        Order::by_source(|_, a, b| (&a.file, a.line, a.site).cmp(&(&b.file, b.line, b.site))),
    ];

    fn is_at(&self, location: u16) -> bool {
        self.location == location
    }
}

pub(crate) fn run(command: &Rows<SiteFigures>) -> anyhow::Result<()> {
    let answer = Answer::of_one(command)?;
    let Opened { trace, state } = answer.opened()?;
    let (found, unwritten) = accesses_with_unwritten(trace, &command.page.selected.selection())?;
    let (sites, more) = command.shown(&answer, &found.sites);
    let finding = access_finding(&found, &answer.names);
    let outside = outside_finding(trace, &found, &answer.names);
    if command.page.json {
        let Accesses { lines, accesses, lost, lost_is_least, left_out, unmatched, damaged, .. } = &found;
        let figures = json!({
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
        return answer.json_rows(figures, SiteFigures::NAME, sites.into_iter().map(|row| json!(row)));
    }
    if !trace.has_accesses() {
        answer.headline()?;
        return Ok(say!("no accesses: none were recorded; record with `--accesses`")?);
    }
    let lacking = unwritten_lack(&unwritten);
    let lacks = (!found.is_whole() || !state.is_whole).then(|| access_lacks(&found));
    let is_plain = lacks.is_none() && state.not_traced.is_none();
    answer.with_headline(is_plain, lacks, lacking.into_iter().chain(outside).chain([finding]))?;
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
            site_name(site, true),
            count(site.events.unwrap_or(0)),
            count(site.counts.requests)
        )?;
    }
    if sites.iter().any(|site| site.events.is_none()) {
        say!(
            "Assumed where events do not tell: lanes whose runs of equal steps ended together came together."
        )?;
    }
    Ok(())
}

fn print_buffers(answer: &Answer, found: &Accesses, limit: Option<usize>) -> anyhow::Result<()> {
    let trace = answer.trace()?;
    let Some(unknown) = found.unknown_buffer else { return Ok(()) };
    if !found.buffers.is_empty() {
        let each = |number: u64, of: &BufferFigures| ratio(number as f64 / of.requests.max(1) as f64);
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
            .right("touched", |of| touched_part(of))
            .left("first", |of| {
                format!("{} {}", of.first.launch, answer.names.line(&of.first.file, of.first.line))
            })
            .left("heat", |of| heat_bars(of));
        let (rows, more) = first(found.buffers.iter().collect(), limit, ROWS);
        print_rows(&table.text(&rows), more)?;
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

/// Prints the buffers that were read before any traced write.
fn print_unwritten(answer: &Answer, reads: &UnwrittenReads, limit: Option<usize>) -> anyhow::Result<()> {
    let trace = answer.trace()?;
    let all: Vec<_> = reads.buffers.iter().flatten().collect();
    if all.is_empty() {
        return Ok(());
    }
    let (rows, more) = first(all, limit, ROWS);
    say!("\nRead before any traced write:")?;
    rows.iter().try_for_each(|found| say!("  {}", words::unwritten(trace, &answer.names, found)))?;
    print_more(more)?;
    Ok(say!("Not seen: what the host, copies and kernels that are not recorded wrote.")?)
}

fn site_table(answer: &Answer, sites: &[&SiteFigures]) -> String {
    TextTable::<&SiteFigures>::new()
        .left("line", |of| answer.names.line(&of.file, of.line))
        .left("site", |of| site_name(of, true))
        .right("requests", |of| count(of.counts.requests))
        .right("lanes", |of| per_request(&of.counts, of.counts.lanes, 1))
        .right("sectors", |of| per_request(&of.counts, of.counts.sectors, of.counts.sectors))
        .right("least", |of| per_request(&of.counts, of.counts.least_sectors, of.counts.sectors))
        .right("used", |of| used_part(&of.counts))
        .right("passes", |of| per_request(&of.counts, of.counts.passes, of.counts.passes))
        .right("least", |of| per_request(&of.counts, of.counts.least_passes, of.counts.passes))
        .right("uniform", |of| percent(of.counts.uniform, of.counts.requests))
        .right("affine", |of| percent(of.counts.affine, of.counts.requests))
        .right("generic", |of| percent(of.counts.generic, of.counts.requests))
        .right("stride", |of| of.stride.map_or_else(|| "-".to_owned(), |(stride, _)| stride.to_string()))
        .text(sites)
}
