//! `warptrace decode`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, bail};
use warptrace_decoder::{EventBlock, TraceFile, WarpFilter};
use warptrace_format::Event;
use warptrace_format::file::{LaunchInfo, StreamId};

use crate::arguments::{self, Format};
use crate::progress;

pub(crate) fn run(command: &arguments::Decode) -> anyhow::Result<ExitCode> {
    let path = &command.file;
    let trace = TraceFile::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if *trace.completeness() != warptrace_decoder::Completeness::Complete {
        eprintln!("warning: {}", trace.completeness());
    }
    let launches = chosen_launches(&trace, command)?;
    match &command.output {
        Some(target) => {
            let file = File::create(target).with_context(|| format!("cannot create {}", target.display()))?;
            print(&trace, command, &launches, BufWriter::with_capacity(1 << 20, file))
                .with_context(|| format!("cannot decode into {}", target.display()))?;
        }
        None => {
            print(&trace, command, &launches, BufWriter::with_capacity(1 << 16, std::io::stdout().lock()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The launches to print, with the filter that selects their warps.
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
                    misfit = Some(format!(
                        "launch {} has {:?} blocks; there is no block {block:?}",
                        info.number(),
                        info.grid()
                    ));
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

fn print(
    trace: &TraceFile,
    command: &arguments::Decode,
    launches: &[(LaunchInfo, WarpFilter)],
    mut out: impl Write,
) -> anyhow::Result<()> {
    let total: u64 = launches.iter().map(|(info, _)| trace.totals(info.number(), command.track).events).sum();
    // Only where the events do not go to the same terminal.
    let bar = command.output.is_some().then(|| progress::events("decoding", total));
    if command.format == Format::Csv {
        writeln!(out, "launch,kernel,block_x,block_y,block_z,warp,event,location,name,mask")?;
    }
    for (info, filter) in launches {
        let mut result = Ok(());
        let printer = Printer { trace, info, format: command.format };
        let _ = trace.decode_all(info.number(), command.track, filter, &mut |block| {
            let id = info.stream_id(block.warp).expect("the decoder gives warps of this launch");
            if command.warp.is_some_and(|warp| warp != id.warp_in_block) {
                return ControlFlow::Continue(());
            }
            if let Some(bar) = &bar {
                bar.inc(block.events.len() as u64);
            }
            result = printer.block(&mut out, &id, &block);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result?;
    }
    out.flush()?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(())
}

/// Prints the events of one launch.
struct Printer<'a> {
    trace: &'a TraceFile,
    info: &'a LaunchInfo,
    format: Format,
}

impl Printer<'_> {
    fn kernel(&self) -> &str {
        self.trace.metadata().kernels.get(self.info.kernel() as usize).map_or("?", |kernel| &kernel.name)
    }

    fn name(&self, event: Event) -> &str {
        self.trace.metadata().location(event.location).map_or("?", |location| &location.name)
    }

    fn block(&self, out: &mut impl Write, id: &StreamId, block: &EventBlock<'_>) -> std::io::Result<()> {
        let [x, y, z] = id.block;
        let (launch, kernel, warp) = (id.launch, self.kernel(), id.warp_in_block);
        if self.format == Format::Text && block.first_event == 0 {
            writeln!(out, "launch {launch} {kernel} block {x},{y},{z} warp {warp}")?;
        }
        for (number, &event) in (block.first_event..).zip(block.events) {
            let (location, mask, name) = (event.location, event.mask, self.name(event));
            match self.format {
                Format::Text => writeln!(
                    out,
                    "{number:>10}  {mask:032b}  {lanes:>2} lanes  {name}",
                    lanes = mask.count_ones()
                )?,
                Format::Csv => writeln!(
                    out,
                    "{launch},{kernel},{x},{y},{z},{warp},{number},{location},{name},0x{mask:08x}"
                )?,
                Format::Jsonl => writeln!(
                    out,
                    "{{\"launch\":{launch},\"kernel\":{},\"block\":[{x},{y},{z}],\"warp\":{warp},\"event\":{number},\"location\":{location},\"name\":{},\"mask\":{mask}}}",
                    json(kernel),
                    json(name)
                )?,
            }
        }
        Ok(())
    }
}

/// A JSON string.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
