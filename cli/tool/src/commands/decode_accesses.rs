//! `warptrace decode --accesses`: prints addresses and values that lanes accessed.

use std::io::Write;
use std::ops::ControlFlow;

use warptrace_analysis::ValueReading;
use warptrace_decoder::{BufferMap, TraceFile, VectorRun, WarpAccesses, WarpFilter};
use warptrace_format::file::data::lanes;
use warptrace_format::file::{LaunchInfo, SiteInfo, SiteKind, StreamId};
use warptrace_format::on_one_line;

use super::buffers::Places;
use crate::arguments::{Decode, Format};

/// Prints the accesses of some launches, as runs of vectors in the order in which the runs ended. Fails if
/// the trace has no accesses or cannot be read, or if the output cannot be written.
pub(crate) fn print(
    trace: &TraceFile,
    command: &Decode,
    launches: &[(LaunchInfo, WarpFilter)],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    if !trace.has_accesses() {
        anyhow::bail!("the trace has no addresses or values; record with `--accesses`");
    }
    if command.format == Format::Csv {
        writeln!(
            out,
            "launch,block_x,block_y,block_z,warp,time,site,kind,space,bytes,file,line,mask,lane,vectors,base,step"
        )?;
    }
    let mut places = Places(BufferMap::of_trace(trace));
    for (info, filter) in launches {
        places.go_to(info.number());
        let mut result = Ok(());
        let _ = trace.accesses_in_order(info.number(), filter, &mut |warp| {
            let id = info.stream_id(warp.warp).expect("the file's warps are of their launch");
            if command.warp.is_some_and(|number| number != id.warp_in_block) {
                return ControlFlow::Continue(());
            }
            result = print_warp((trace, &places), command.format, &id, &warp, out);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result?;
    }
    Ok(())
}

fn print_warp(
    (trace, places): (&TraceFile, &Places<'_>),
    format: Format,
    id: &StreamId,
    warp: &WarpAccesses,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let ([x, y, z], number) = (id.block, id.warp_in_block);
    if format == Format::Text {
        writeln!(out, "launch {} block {x},{y},{z} warp {number}", id.launch)?;
    }
    for run in warp.in_order() {
        let site = trace.site(run.site);
        match format {
            Format::Text => print_text(site, places, &run, out)?,
            Format::Csv => print_csv(site, &run, id, out)?,
            Format::Jsonl => print_json(site, places, &run, id, out)?,
        }
    }
    let lacking = warp.left_out + warp.unmatched;
    if lacking > 0 || warp.has_gaps {
        let words = match warp.left_out {
            0 => "belong to nothing: the file is damaged",
            _ => "are left out, since others of their time were lost",
        };
        match format {
            Format::Text => writeln!(out, "  {lacking} accesses {words}")?,
            Format::Csv | Format::Jsonl => crate::output::tell!(
                "note: launch {}, block {x},{y},{z}, warp {number}: {lacking} accesses {words}",
                id.launch
            ),
        }
    }
    Ok(())
}

/// Prints one line for a run with a constant stride between lanes, otherwise one line for each lane.
fn print_text(
    site: Option<&SiteInfo>,
    places: &Places<'_>,
    run: &VectorRun<'_>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let warning = places.warning(site, run);
    let mask = run.group.mask;
    let times = if run.vectors() == 1 { String::new() } else { format!(" x {}", run.vectors()) };
    write!(out, "{:>12}  {mask:032b}  {}{times}", run.time, describe(site, run.site))?;
    match (run.group.spread, run.runs.first()) {
        (Some(spread), Some(first)) => {
            let width = i64::from(31 - mask.leading_zeros() - run.group.leader());
            let stride = match (spread, width) {
                (0, _) => String::new(),
                (spread, width) if i64::from(spread) % width == 0 => {
                    format!(", {:+} a lane", i64::from(spread) / width)
                }
                (spread, width) => format!(", {spread:+} over {width} lanes"),
            };
            let at = value(site, places, first.base);
            writeln!(out, ": {at}{stride}{}{warning}", step(first.count, first.step))
        }
        _ => {
            writeln!(out, "{warning}:")?;
            for (lane, run) in lanes(mask).zip(run.runs) {
                let times = if run.count == 1 { String::new() } else { format!(" x {}", run.count) };
                writeln!(
                    out,
                    "{:>14}lane {lane:>2}: {}{}{times}",
                    "",
                    value(site, places, run.base),
                    step(run.count, run.step)
                )?;
            }
            Ok(())
        }
    }
}

fn step(count: u32, step: i32) -> String {
    if count == 1 { String::new() } else { format!(", {step:+} each time") }
}

/// Describes a site: `load global 4 at k.cu:12`.
fn describe(site: Option<&SiteInfo>, number: u16) -> String {
    let Some(site) = site else { return format!("site {number}") };
    let what = match site.kind {
        SiteKind::Value => format!("value {}", site.name),
        kind => format!("{} {} {}", kind.name(), site.space.name(), site.bytes),
    };
    match (site.file.as_str(), site.line) {
        ("", _) | (_, 0) => format!("{what}, site {number}"),
        (file, line) => format!("{what} at {}:{line}", on_one_line(file)),
    }
}

/// Formats an address by its buffer or in hexadecimal, and a value by its type in the source.
fn value(site: Option<&SiteInfo>, places: &Places<'_>, bits: u64) -> String {
    let reading = site.and_then(ValueReading::new);
    reading.map_or_else(|| places.describe(site, bits), |reading| reading.text(bits))
}

fn print_csv(
    site: Option<&SiteInfo>,
    run: &VectorRun<'_>,
    id: &StreamId,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let [x, y, z] = id.block;
    let (launch, warp, mask) = (id.launch, id.warp_in_block, run.group.mask);
    let mut fields = csv::Writer::from_writer(Vec::new());
    let kind = site.map_or("", |site| site.kind.name());
    let space = site.map_or("", |site| site.space.name());
    let bytes = site.map_or(0, |site| site.bytes).to_string();
    let file = site.map_or("", |site| site.file.as_str());
    let line = site.map_or(0, |site| site.line).to_string();
    fields.write_record([kind, space, &bytes, file, &line])?;
    let fields = fields.into_inner().map_err(|error| error.into_error())?;
    let fields = String::from_utf8_lossy(&fields);
    let fields = fields.trim_end();
    for lane in lanes(mask) {
        let Some(own) = run.run(lane) else { continue };
        writeln!(
            out,
            "{launch},{x},{y},{z},{warp},{},{},{fields},{mask:#010x},{lane},{},{},{}",
            run.time, run.site, own.count, own.base, own.step
        )?;
    }
    Ok(())
}

fn print_json(
    site: Option<&SiteInfo>,
    places: &Places<'_>,
    run: &VectorRun<'_>,
    id: &StreamId,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let runs: Vec<serde_json::Value> = lanes(run.group.mask)
        .filter_map(|lane| Some((lane, run.run(lane)?)))
        // Addresses and values have 64 bits, more than JSON numbers.
        .map(|(lane, own)| {
            let mut object = serde_json::json!({ "lane": lane, "vectors": own.count, "base": own.base.to_string(), "step": own.step });
            if let Some((buffer, offset)) = places.at(site, own.base) {
                object["buffer"] = buffer.number.into();
                object["offset"] = offset.to_string().into();
            }
            object
        })
        .collect();
    let object = serde_json::json!({
        "launch": id.launch,
        "block": id.block,
        "warp": id.warp_in_block,
        "time": run.time,
        "site": run.site,
        "kind": site.map_or("", |site| site.kind.name()),
        "space": site.map_or("", |site| site.space.name()),
        "bytes": site.map_or(0, |site| site.bytes),
        "name": site.map_or("", |site| site.name.as_str()),
        "file": site.map_or("", |site| site.file.as_str()),
        "line": site.map_or(0, |site| site.line),
        "mask": run.group.mask,
        "affine": run.group.spread.is_some(),
        "lanes": runs,
    });
    writeln!(out, "{object}")
}
