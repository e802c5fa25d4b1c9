//! `warptrace record`.

use std::io::BufWriter;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use warptrace_format::codec::CodecSpec;
use warptrace_host::writer::Summary;
use warptrace_host::{
    Device, DeviceChoice, LaunchReport, MemorySize, Policy, Session, SessionOptions, SimOptions, TraceOutput,
};
use warptrace_workloads::{Automatic, ProgramInfo, ptx};

use super::interrupt;
use crate::arguments::{self, Record, Recorded, Recording};
use crate::output::say;
use crate::programs::Program;
use crate::{exit, output, progress};

pub(crate) fn run(command: &Record) -> anyhow::Result<ExitCode> {
    match &command.program {
        arguments::Program::Fractal(command) => record(command),
        arguments::Program::Nbody(command) => record(command),
        arguments::Program::Mis(command) => record(command),
        arguments::Program::Mst(command) => record(command),
        arguments::Program::Dmr(command) => record(command),
        arguments::Program::Matmul(command) => record(command),
        arguments::Program::Triad(command) => record(command),
        arguments::Program::Stress(command) => record(command),
        arguments::Program::Fault(command) => record(command),
    }
}

/// Runs a program under a session, checks its result, and says what was recorded.
fn record<P: Program + Args>(command: &Recorded<P>) -> anyhow::Result<ExitCode> {
    let Recorded { program, chosen, recording } = command;
    let properties = program.properties().into_iter().map(|(name, value)| (name.to_owned(), value));
    let mut options = recording.session(properties.collect())?;
    let info = chosen_points(program.info(), recording)?;
    let window = chosen.window(&info.traced().locations())?;
    if recording.automatic {
        options.properties.push(("points".to_owned(), "automatic".to_owned()));
    }
    if !window.is_all() {
        options.properties.push(("window".to_owned(), window.to_string()));
        options.window = window;
    }
    let input = program.input()?;
    let (bar, hook) = progress::blocks();
    let simulator = SimOptions { progress: Some(hook), ..recording.simulator() };
    let mut device = open(recording.device, simulator)?;
    let name = device.info().name;
    let (outcome, made) = trace((program, info), &input, recording, &options, &mut *device)?;
    bar.finish_and_clear();
    let checked = (!recording.no_check).then(|| program.check(&input, &outcome)).transpose();
    let written = program.write(&outcome)?;

    let LaunchReport { lost, attempted, memory, .. } = made.report;
    if lost > 0 {
        let (lost, attempted) = (output::count(lost), output::count(attempted));
        let limit = MemorySize(memory.limit);
        match options.policy {
            Policy::Stop => eprintln!(
                "warning: {lost} of {attempted} events found no room in device memory; \
                 allow more with --memory (now {limit}), or record with --policy stream"
            ),
            Policy::Ring => eprintln!(
                "note: the trace has the last {} of {attempted} events, of each warp an end; for more allow more with --memory (now {limit})",
                output::count(made.report.recorded)
            ),
            Policy::Stream { stall, .. } => eprintln!(
                "warning: {lost} of {attempted} events were lost, because lanes waited for memory in vain; \
                 let them wait longer with --stall-limit (now {} s), or allow more with --memory (now {limit})",
                stall.as_secs_f64()
            ),
        }
    }
    let result = checked.map_err(|error| anyhow::anyhow!("the program's result is wrong: {error}"))?;
    let points = if recording.automatic { ", automatic trace points" } else { "" };
    say!("recorded   {} on {name}{points}", info.name)?;
    say!("input      {}", program.describe(&input))?;
    made.describe(&options)?;
    if let Some(words) = result {
        say!("result     {words}")?;
    }
    say!("trace      {}", recording.output.display())?;
    if let Some(words) = written {
        say!("{words}")?;
    }
    Ok(if lost > 0 { ExitCode::from(exit::FINDINGS) } else { ExitCode::SUCCESS })
}

/// Opens the device; `auto` says on stderr why it takes the simulator.
fn open(choice: DeviceChoice, simulator: SimOptions) -> anyhow::Result<Box<dyn Device>> {
    let opened = choice.open(ptx, simulator)?;
    if let Some(reason) = &opened.no_gpu {
        eprintln!("note: running on the simulator: {reason}");
    }
    Ok(opened.device)
}

/// The program with the trace points that were asked for.
fn chosen_points(
    program: &'static ProgramInfo,
    recording: &Recording,
) -> anyhow::Result<&'static ProgramInfo> {
    if !recording.automatic {
        return Ok(program);
    }
    program.automatic.with_context(|| {
        format!("{} has no automatic trace points: record it without --automatic", program.name)
    })
}

/// What a recording made.
struct Made {
    summary: Summary,
    report: LaunchReport,
    /// From the start of the session to the end of the file.
    whole: Duration,
}

/// Runs the program on the device and records it into the file.
fn trace<P: Program>(
    (program, info): (&P, &'static ProgramInfo),
    input: &P::Input,
    recording: &Recording,
    options: &SessionOptions,
    device: &mut dyn Device,
) -> anyhow::Result<(P::Outcome, Made)> {
    let path = &recording.output;
    let file = TraceOutput::open(path).with_context(|| format!("cannot create {}", path.display()))?;
    let started = Instant::now();
    let file = BufWriter::with_capacity(1 << 20, file);
    let mut session = Session::start(device, &info.traced(), options, file)?;
    if let Policy::Stream { .. } = options.policy {
        let asked = interrupt::watch().context("cannot watch for signals")?;
        let (traced, name) = (info.traced(), path.display().to_string());
        session.interrupt_by(asked, move |interrupted| interrupt::end(interrupted, &traced, &name));
    }
    let outcome = if recording.automatic {
        program.run(&mut Automatic(&mut session), input)?
    } else {
        program.run(&mut session, input)?
    };
    let (file, summary, report) = session.finish()?;
    file.into_inner().context("cannot finish the file")?.sync().context("cannot finish the file")?;
    Ok((outcome, Made { summary, report, whole: started.elapsed() }))
}

impl Made {
    fn describe(&self, options: &SessionOptions) -> std::io::Result<()> {
        let Self { summary, report, whole } = self;
        if !options.window.is_all() {
            let (recorded, all) = (report.recorded_launches, report.launches);
            let launches = format!("{} of {} launches", output::count(recorded), output::count(all));
            say!("window     {}; {launches} recorded", options.window)?;
        }
        say!("events     {}", output::count(report.recorded))?;
        let raw = report.recorded * u64::from(warptrace_format::RAW_EVENT_BYTES);
        let compared = match options.codec {
            CodecSpec::Raw => "six bytes an event".to_owned(),
            _ => format!("{} times less than raw", output::times(raw, report.payload_bytes)),
        };
        say!("on device  {}, {compared}", output::bytes(report.payload_bytes))?;
        say!(
            "in file    {}, {} times less than raw",
            output::bytes(summary.bytes),
            output::times(raw, summary.bytes)
        )?;
        let memory = report.memory;
        say!(
            "memory     {} of {} on the device, {} of it filled at most",
            output::bytes(memory.peak),
            output::bytes(memory.limit),
            output::bytes(memory.filled)
        )?;
        say!("kernels    {}", output::time(report.kernel))?;
        say!("encoding   {}", output::time(report.encoding))?;
        say!("copy       {}", output::time(report.copy))?;
        say!("write      {}", output::time(report.write))?;
        say!("whole run  {}", output::time(*whole))
    }
}
