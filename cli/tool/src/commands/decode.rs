//! `warptrace decode`.

use std::io::Write;
use std::ops::ControlFlow;

use anyhow::bail;
use warptrace_analysis::words;
use warptrace_decoder::{EventBlock, LaunchEnd, LossyWarps, TraceFile, WarpFilter};
use warptrace_format::Event;
use warptrace_format::file::{LaunchInfo, LossPosition, LossReason, StreamId};

use super::decode_accesses;
use crate::arguments::{self, Format};
use crate::nanoseconds::{Nanoseconds, first_begin};
use crate::opened::open;
use crate::output::{self, count};
use crate::whole_file::{Target, watch_signals};

pub(crate) fn run(command: &arguments::Decode) -> anyhow::Result<()> {
    let path = &command.file;
    let target = Target::or_standard(command.output.as_deref(), &[("the trace", path)])?;
    watch_signals()?;
    let opened = open(path)?;
    opened.warn();
    let trace = opened.trace;
    let launches = chosen_launches(&trace, command)?;
    if !launches.is_empty() && !launches.iter().any(|(info, _)| was_recorded(info, command)) {
        crate::output::tell!("note: nothing of this was recorded: `warptrace info` says what was");
    }
    if command.accesses {
        target.write(|out| decode_accesses::print(&trace, command, &launches, &mut trace.limited(out)))?;
        return Ok(());
    }
    target.write(|out| print(&trace, command, &launches, &mut trace.limited(out)))?;
    Ok(())
}

/// Returns the launches to print, each with a filter for its warps.
fn chosen_launches(
    trace: &TraceFile,
    command: &arguments::Decode,
) -> anyhow::Result<Vec<(LaunchInfo, WarpFilter)>> {
    let tracks = trace.metadata().tracks.len();
    if command.track as usize >= tracks {
        bail!(
            "there is no track {}: this trace has {}",
            command.track,
            if tracks == 1 { "only track 0" } else { "tracks 0 and 1" }
        );
    }
    if let Some(number) = command.launch
        && trace.launch(number).is_none()
    {
        bail!(
            "there is no launch {number}: this trace has {} (see `warptrace info`)",
            trace.launches().len()
        );
    }
    let mut chosen = Vec::new();
    let mut misfit = None;
    for info in trace.launches().filter(|info| command.launch.is_none_or(|number| number == info.number())) {
        if let Some(warp) = command.warp.filter(|&warp| warp >= info.warps_per_block()) {
            misfit = Some(format!(
                "blocks of launch {} have warps 0 to {}, not {warp}",
                info.number(),
                info.warps_per_block() - 1
            ));
            continue;
        }
        let filter = match command.block {
            None => WarpFilter::all(),
            Some(block) => match WarpFilter::block(info, block) {
                Some(filter) => filter,
                None => {
                    misfit = Some(words::no_block(info.number(), info.grid(), block));
                    continue;
                }
            },
        };
        chosen.push((*info, filter));
    }
    match (chosen.is_empty(), misfit) {
        (true, Some(misfit)) => bail!(misfit),
        _ => Ok(chosen),
    }
}

/// Returns true if any warp to print was chosen when the trace was recorded.
fn was_recorded(info: &LaunchInfo, command: &arguments::Decode) -> bool {
    let is_named = |warp: &u32| command.warp.is_none_or(|named| named == *warp);
    let mut warps = (0..info.warps_per_block()).filter(is_named);
    let chosen = info.chosen();
    match command.block.and_then(|block| info.warp_index(block, 0)) {
        Some(first) => warps.any(|warp| info.is_chosen(first + warp)),
        None => warps.any(|warp| chosen.index(chosen.first_block, warp).is_some()),
    }
}

fn print(
    trace: &TraceFile,
    command: &arguments::Decode,
    launches: &[(LaunchInfo, WarpFilter)],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let events = |info: &LaunchInfo| trace.totals(info.number(), command.track).events;
    // A damaged file may contain any number.
    let total = launches.iter().fold(0_u64, |sum, (info, _)| sum.saturating_add(events(info)));
    // Without a file, the events would be printed to the same terminal.
    let bar = command.output.is_some().then(|| output::progress_bar("decoding", "events", total));
    let is_timed = command.track == 0 && trace.has_times();
    let zero = if is_timed && trace.has_spans() { Some(first_begin(trace)?.unwrap_or(0)) } else { None };
    match command.format {
        Format::Csv => {
            let begin = match (is_timed, zero) {
                (true, Some(_)) => ",begin,ns",
                (true, None) => ",begin",
                _ => "",
            };
            writeln!(
                out,
                "launch,kernel,block_x,block_y,block_z,warp,event,location,name,mask,lost,why{begin}"
            )?;
        }
        // The head marks lanes 31 and 0 above the digits of a mask.
        Format::Text => {
            let mut cycle = if is_timed { format!("{:>CYCLE_WIDTH$}", "cycle") } else { String::new() };
            if zero.is_some() {
                cycle += &format!("{:>CYCLE_WIDTH$}", "ns");
            }
            writeln!(out, "{:>10}{cycle}  {:<26}{:>6}  {:8}  location", "event", "lane 31", "lane 0", "")?;
        }
        Format::Jsonl => {}
    }
    let names = Names::new(trace, command.format);
    for (info, filter) in launches {
        let mut result = Ok(());
        let kernel = trace.metadata().kernels.get(info.kernel() as usize).map_or("?", |kernel| &kernel.name);
        let mut printer = Printer {
            launch: words::launch(trace, info.number()),
            kernel: written(kernel, command.format),
            names: &names,
            format: command.format,
            end: trace.launch_end(info.number()).unwrap_or(LaunchEnd::Unknown),
            headed: None,
            is_timed,
            start: None,
            nanoseconds: zero.map(|zero| Nanoseconds::new(trace, info.number(), zero)),
        };
        let mut too_much = Ok(());
        let _ =
            trace.decode_all(info.number(), command.track, &filter.clone().with_marks(), &mut |block| {
                let id = info.stream_id(block.warp).expect("the decoder gives warps of this launch");
                if command.warp.is_some_and(|warp| warp != id.warp_in_block) {
                    return ControlFlow::Continue(());
                }
                if let Some(bar) = &bar {
                    bar.inc(block.events.len() as u64);
                }
                too_much = printer.nanoseconds.as_mut().map_or(Ok(()), |own| own.go_to(block.warp));
                if too_much.is_err() {
                    return ControlFlow::Break(());
                }
                result = printer.print(out, &id, &block);
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        too_much?;
        result?;
        if let Some(words) = words::early_end(trace, info.number()) {
            match command.format {
                Format::Text => writeln!(out, "{words}")?,
                // In the other formats, each line is an event or belongs to a warp.
                Format::Csv | Format::Jsonl => crate::output::tell!("note: {words}"),
            }
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(())
}

const CYCLE_WIDTH: usize = 14;

struct Names {
    /// By ID; `None` for an ID that the table lacks.
    by_id: Vec<Option<String>>,
    unknown: String,
}

impl Names {
    fn new(trace: &TraceFile, format: Format) -> Self {
        let locations = &trace.metadata().locations;
        let ids = locations.iter().map(|location| usize::from(location.id) + 1).max().unwrap_or(0);
        let mut by_id = vec![None; ids];
        for location in locations {
            by_id[usize::from(location.id)] = Some(written(&location.name, format));
        }
        Self { by_id, unknown: written("?", format) }
    }

    fn get(&self, location: u16) -> &str {
        self.by_id.get(usize::from(location)).and_then(Option::as_ref).unwrap_or(&self.unknown)
    }
}

struct Printer<'a> {
    /// Number of the launch, with its label or the source line that made it, if known.
    launch: String,
    /// Name of the kernel in the output format.
    kernel: String,
    names: &'a Names,
    format: Format,
    end: LaunchEnd,
    /// The warp whose heading was printed last.
    headed: Option<StreamId>,
    /// True if the trace has the begins of runs; the begin of the warp's first run.
    is_timed: bool,
    start: Option<u64>,
    /// Set if the trace also has the times of warps.
    nanoseconds: Option<Nanoseconds<'a>>,
}

impl Printer<'_> {
    fn print(&mut self, out: &mut impl Write, id: &StreamId, block: &EventBlock<'_>) -> std::io::Result<()> {
        if self.format == Format::Text && self.headed != Some(*id) {
            let ([x, y, z], launch, kernel) = (id.block, &self.launch, &self.kernel);
            writeln!(out, "{launch} {kernel} block {x},{y},{z} warp {}", id.warp_in_block)?;
            (self.headed, self.start) = (Some(*id), None);
        }
        match &block.missing {
            None => self.events(out, id, block),
            Some(missing) => self.missing(out, id, missing, block.first_event),
        }
    }

    /// Prints a mark for missing events: in CSV and JSON an event with location 0 and an empty mask, which no
    /// event has.
    fn missing(
        &self,
        out: &mut impl Write,
        id: &StreamId,
        missing: &LossyWarps,
        next_event: u64,
    ) -> std::io::Result<()> {
        let [x, y, z] = id.block;
        let (launch, kernel, warp) = (id.launch, &self.kernel, id.warp_in_block);
        let name = if missing.events.is_some() { "[lost]" } else { "[unfinished]" };
        let (lost, why) = (missing.events.unwrap_or(0), missing.reason.name());
        let times = usize::from(self.is_timed) + usize::from(self.nanoseconds.is_some());
        let commas = &",,"[..times];
        match self.format {
            Format::Text => {
                let cycle = times * CYCLE_WIDTH;
                writeln!(out, "{:>10}{:cycle$}  {}", "-", "", self.in_words(missing))
            }
            Format::Csv => writeln!(
                out,
                "{launch},{kernel},{x},{y},{z},{warp},{next_event},0,{name},0x00000000,{lost},{why}{commas}"
            ),
            Format::Jsonl => writeln!(
                out,
                "{{\"launch\":{launch},\"kernel\":{kernel},\"block\":[{x},{y},{z}],\"warp\":{warp},\"event\":{next_event},\"location\":0,\"name\":\"{name}\",\"mask\":0,\"lost\":{lost},\"why\":\"{why}\"}}"
            ),
        }
    }

    fn in_words(&self, missing: &LossyWarps) -> String {
        let reason = missing.reason;
        let Some(events) = missing.events else {
            return match (reason, &self.end) {
                (LossReason::Died, LaunchEnd::Interrupted) => "did not finish: the kernel was interrupted",
                (LossReason::Died, LaunchEnd::Running) => "had not finished",
                (LossReason::Died, LaunchEnd::Failed { .. }) => "did not finish: the launch failed",
                (LossReason::Died, _) => "did not finish: the file does not say why",
                _ => "no account of this warp: what it lacks is not known",
            }
            .to_owned();
        };
        let where_missing = match missing.position() {
            LossPosition::Start => "at the start of this warp",
            LossPosition::End => "from here on",
            _ => "somewhere in this warp",
        };
        let word = if events == 1 { "event" } else { "events" };
        format!("lost {} {word} {where_missing}: {}", count(events), reason.describe())
    }

    fn events(&mut self, out: &mut impl Write, id: &StreamId, block: &EventBlock<'_>) -> std::io::Result<()> {
        let [x, y, z] = id.block;
        let (launch, kernel, warp) = (id.launch, &self.kernel, id.warp_in_block);
        let mut begins = block.begins.iter().peekable();
        for (at, (number, &Event { location, mask })) in (0..).zip((block.first_event..).zip(block.events)) {
            let name = self.names.get(location);
            let begin = begins.next_if(|(event, _)| *event == at).map(|(_, begin)| *begin);
            let ns = begin.zip(self.nanoseconds.as_mut()).and_then(|(begin, own)| own.at(begin));
            match self.format {
                Format::Text => {
                    write!(out, "{number:>10}")?;
                    if self.is_timed {
                        // Cycles since the warp's first run.
                        let since = |begin: u64| begin.wrapping_sub(*self.start.get_or_insert(begin)) as i64;
                        write!(
                            out,
                            "{:>CYCLE_WIDTH$}",
                            begin.map(since).map_or_else(String::new, |at| at.to_string())
                        )?;
                    }
                    if self.nanoseconds.is_some() {
                        write!(out, "{:>CYCLE_WIDTH$}", ns.map_or_else(String::new, |ns| ns.to_string()))?;
                    }
                    writeln!(out, "  {mask:032b}  {lanes:>2} lanes  {name}", lanes = mask.count_ones())?;
                }
                Format::Csv => {
                    write!(
                        out,
                        "{launch},{kernel},{x},{y},{z},{warp},{number},{location},{name},0x{mask:08x},0,"
                    )?;
                    match begin {
                        Some(begin) => write!(out, ",{begin}")?,
                        None => write!(out, "{}", if self.is_timed { "," } else { "" })?,
                    }
                    match ns {
                        Some(ns) => writeln!(out, ",{ns}")?,
                        None => writeln!(out, "{}", if self.nanoseconds.is_some() { "," } else { "" })?,
                    }
                }
                Format::Jsonl => {
                    write!(
                        out,
                        "{{\"launch\":{launch},\"kernel\":{kernel},\"block\":[{x},{y},{z}],\"warp\":{warp},\"event\":{number},\"location\":{location},\"name\":{name},\"mask\":{mask}"
                    )?;
                    if let Some(begin) = begin {
                        write!(out, ",\"begin\":{begin}")?;
                    }
                    if let Some(ns) = ns {
                        write!(out, ",\"ns\":{ns}")?;
                    }
                    writeln!(out, "}}")?;
                }
            }
        }
        Ok(())
    }
}

/// Formats a name for the output format. Called once for each name, since a trace has many events.
fn written(name: &str, format: Format) -> String {
    match format {
        Format::Text => name.to_owned(),
        Format::Csv => csv_field(name),
        Format::Jsonl => serde_json::Value::from(name).to_string(),
    }
}

/// Formats a CSV field, with quotes where RFC 4180 requires them.
fn csv_field(text: &str) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // A second field, since a record of one empty field would be quoted.
    writer.write_record([text, ""]).expect("a vector takes all bytes");
    let record = writer.into_inner().expect("a vector takes all bytes");
    let record = String::from_utf8(record).expect("quotes and commas are added to UTF-8");
    record.strip_suffix(",\n").expect("a record of two fields ends like this").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_csv_are_quoted_where_they_must_be() {
        for (text, field) in [
            ("ENTER", "ENTER"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("k,\"x\"", "\"k,\"\"x\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("\r", "\"\r\""),
        ] {
            assert_eq!(csv_field(text), field);
        }
    }
}
