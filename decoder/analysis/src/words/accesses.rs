//! Sentences about accesses.

use warptrace_decoder::TraceFile;
use warptrace_format::file::BufferInfo;

use super::{Names, bars, count, percent, ratio, warp};
use crate::accesses::buffers::BufferFigures;
use crate::accesses::unwritten::{TouchedBy, UnwrittenFigures, UnwrittenReads};
use crate::accesses::{AccessCounts, AccessLine, Accesses, SiteFigures};

/// Returns file and line, or the site if they are unknown.
#[must_use]
pub fn access_place(names: &Names, file: &str, line: u32, site: Option<u16>) -> String {
    match names.line(file, line).as_str() {
        "-" => format!("site {}", site.unwrap_or(0)),
        place => place.to_owned(),
    }
}

/// Returns the name of a site: `load global 16`, without bytes `load global`, or `value length`.
#[must_use]
pub fn site_name(site: &SiteFigures, with_bytes: bool) -> String {
    match (site.kind, site.name.as_str()) {
        ("", _) => format!("site {}", site.site),
        ("value", name) => format!("value {name}"),
        (kind, _) if with_bytes => format!("{kind} {} {}", site.space, site.bytes),
        (kind, _) => format!("{kind} {}", site.space),
    }
}

/// Returns `number` per request; `-` if the total `all` is 0.
#[must_use]
pub fn per_request(counts: &AccessCounts, number: u64, all: u64) -> String {
    if all == 0 { "-".to_owned() } else { ratio(number as f64 / counts.requests.max(1) as f64) }
}

/// Returns the share of the moved bytes that lanes used; `-` if no bytes were moved.
#[must_use]
pub fn used_part(counts: &AccessCounts) -> String {
    if counts.moved_bytes == 0 { "-".to_owned() } else { percent(counts.used_bytes, counts.moved_bytes) }
}

/// Returns the share of a buffer that was accessed; `-` if unknown.
#[must_use]
pub fn touched_part(found: &BufferFigures) -> String {
    found.touched_bytes.map_or_else(|| "-".to_owned(), |touched| percent(touched, found.bytes))
}

/// Returns bars for the accesses in each 32nd of a buffer; `-` if unknown.
#[must_use]
pub fn heat_bars(found: &BufferFigures) -> String {
    let strip = |heat: &Vec<u64>| bars(&heat.chunks(2).map(|two| two.iter().sum()).collect::<Vec<_>>());
    found.heat.as_ref().map_or_else(|| "-".to_owned(), strip)
}

/// Returns a number of accesses: `1 access`, `2 accesses`.
#[must_use]
pub fn accesses_of(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "access" } else { "accesses" })
}

/// Returns the name of a buffer, or `#3` if it has no name.
#[must_use]
pub fn buffer_name(buffer: &BufferInfo) -> String {
    if buffer.name.is_empty() { format!("#{}", buffer.number) } else { buffer.name.clone() }
}

/// Returns the name of the buffer with a number, as [`buffer_name`].
#[must_use]
pub fn buffer(trace: &TraceFile, number: u32) -> String {
    trace.buffer(number).map_or_else(|| format!("#{number}"), buffer_name)
}

/// Describes the distance of an access from a buffer: `4 bytes beyond the end of #0 (4,096 bytes)`.
fn beside(trace: &TraceFile, number: u32, distance: i64) -> String {
    let bytes = count(distance.unsigned_abs());
    let unit = if distance.unsigned_abs() == 1 { "byte" } else { "bytes" };
    let side = if distance < 0 { "before the beginning" } else { "beyond the end" };
    let size = trace.buffer(number).map_or(0, |buffer| buffer.bytes);
    format!("{bytes} {unit} {side} of {} ({} bytes)", buffer(trace, number), count(size))
}

/// Describes the accesses outside of all buffers, and the first of them; `None` if none are known.
#[must_use]
pub fn outside_finding(trace: &TraceFile, found: &Accesses, names: &Names) -> Option<String> {
    let first = found.outside.first()?;
    let all: u64 = found.outside.iter().map(|site| site.accesses).sum();
    let beside = first
        .nearest
        .zip(first.distance)
        .map_or_else(|| "there is no buffer".to_owned(), |(buffer, bytes)| beside(trace, buffer, bytes));
    let sites = found.outside.len() as u64;
    let at_sites = if sites > 1 { format!(" at {} sites", count(sites)) } else { String::new() };
    Some(format!(
        "OUT OF BOUNDS: {}{at_sites} in no buffer, first {} of {} bytes at {} by {} lane {}: {beside}",
        accesses_of(all),
        first.kind,
        first.bytes,
        access_place(names, &first.file, first.line, Some(first.site)),
        warp(trace, first.launch, first.warp),
        first.lane,
    ))
}

/// Describes the bytes of a buffer that were read before any traced write, and the first such read.
#[must_use]
pub fn unwritten(trace: &TraceFile, names: &Names, found: &UnwrittenFigures) -> String {
    let UnwrittenFigures { buffer: number, bytes, offset, first } = found;
    let size = trace.buffer(*number).map_or(0, |buffer| buffer.bytes);
    format!(
        "{} of {} bytes of {}, first by {} by {} at byte {}",
        count(*bytes),
        count(size),
        buffer(trace, *number),
        touched(names, first),
        warp(trace, first.launch, first.warp),
        count(*offset)
    )
}

fn touched(names: &Names, by: &TouchedBy) -> String {
    format!("{} at {}", by.kind, access_place(names, &by.file, by.line, Some(by.site)))
}

/// Describes from which launch on reads of unwritten bytes are incomplete; `None` if they are complete.
#[must_use]
pub fn unwritten_lack(reads: &UnwrittenReads) -> Option<String> {
    let launch = reads.incomplete_from?;
    Some(format!(
        "reads before any traced write are not known from launch {launch} on: its warps touch more places than are kept"
    ))
}

fn doubt(found: &Accesses, line: &AccessLine) -> &'static str {
    if found.sites_of(line).any(|site| site.events.is_some_and(|events| events != site.counts.requests)) {
        " (estimated: there were not as many requests as events)"
    } else if found.sites_of(line).any(|site| site.events.is_none()) {
        " (assumed: that lanes whose runs ended together came together)"
    } else {
        ""
    }
}

/// Describes in one sentence the line with the most wasted bytes, or the one with the most bank conflicts.
#[must_use]
pub fn access_finding(found: &Accesses, names: &Names) -> String {
    let place = |line: &AccessLine| access_place(names, &line.file, line.line, line.sites.first().copied());
    if let Some(line) = found.lines.first().filter(|line| line.counts.wasted_bytes() > 0) {
        let counts = &line.counts;
        let times = counts.moved_bytes as f64 / counts.used_bytes.max(1) as f64;
        let each = |sectors: u64| ratio(sectors as f64 / counts.requests.max(1) as f64);
        return format!(
            "{} moves {} times the bytes that it uses: {} sectors of 32 bytes a request, {} would do{}",
            place(line),
            ratio(times),
            each(counts.sectors),
            each(counts.least_sectors),
            doubt(found, line)
        );
    }
    let conflicting = found.lines.iter().filter(|line| line.counts.wasted_passes() > 0);
    if let Some(line) = conflicting.max_by_key(|line| line.counts.wasted_passes()) {
        let counts = &line.counts;
        let times = counts.passes as f64 / counts.least_passes.max(1) as f64;
        return format!(
            "{} passes {} times through the banks of shared memory where once would do{}",
            place(line),
            ratio(times),
            doubt(found, line)
        );
    }
    match found.accesses {
        0 => "no accesses in what was looked at".to_owned(),
        _ if !found.is_exact() => {
            "no line is known to move more sectors than it must, or to have bank conflicts (estimated)"
                .to_owned()
        }
        _ => "no line moves more sectors than it must, and none has bank conflicts".to_owned(),
    }
}

/// Describes how many accesses are known, lost, left out, or belong to no group.
#[must_use]
pub fn access_lacks(found: &Accesses) -> String {
    let parts = [
        (found.lost, if found.lost_is_least { "lost with what follows from them" } else { "lost" }),
        (found.left_out, "left out, since others of their time were lost"),
        (found.unmatched, "that belong to nothing"),
    ];
    let parts = parts.iter().filter(|(accesses, _)| *accesses > 0);
    let parts: Vec<String> = parts.map(|(accesses, what)| format!("{} {what}", count(*accesses))).collect();
    let known = count(found.accesses);
    if parts.is_empty() {
        format!("accesses: {known}")
    } else {
        format!("accesses: {known}, and {}", parts.join(", "))
    }
}

/// Describes how many sites have estimated or assumed requests, sectors and passes; `None` if all are exact.
#[must_use]
pub fn access_doubt(found: &Accesses) -> Option<String> {
    let sites = found.sites.len() as u64;
    let of = |is: fn(&SiteFigures) -> bool| found.sites.iter().filter(|site| is(site)).count() as u64;
    let estimated = of(|site| site.events.is_some_and(|events| events != site.counts.requests));
    let assumed = of(|site| site.events.is_none());
    let parts = [
        (estimated, "estimated (there were not as many requests as events)"),
        (assumed, "assumed (that lanes whose runs ended together came together)"),
    ];
    let parts = parts.iter().filter(|(sites, _)| *sites > 0);
    let parts: Vec<String> = parts.map(|(sites, what)| format!("of {} {what}", count(*sites))).collect();
    let all = if sites == 1 { "1 site".to_owned() } else { format!("{} sites", count(sites)) };
    (!parts.is_empty()).then(|| format!("requests, sectors and passes of {all}: {}", parts.join(", ")))
}
