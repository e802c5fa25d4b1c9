//! `warptrace record`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use warptrace_host::writer::{Compression, Summary};
use warptrace_host::{LaunchReport, Launcher, Placement, Session, SessionOptions, SimOptions};
use warptrace_workloads::fractal::{self, FractalOptions, Region};
use warptrace_workloads::{ProgramInfo, WorkloadError};

use crate::arguments::{Fractal, Program, Record, Recording, Tables};
use crate::trace_file::TraceOutput;
use crate::{device, exit, output, progress};

pub(crate) fn run(command: &Record) -> anyhow::Result<ExitCode> {
    match &command.program {
        Program::Fractal(arguments) => run_fractal(arguments),
    }
}

fn run_fractal(arguments: &Fractal) -> anyhow::Result<ExitCode> {
    let [left, top, side] = arguments.region;
    let options = FractalOptions {
        region: Region { left, top, side },
        ..FractalOptions::new(arguments.width, arguments.depth)
    };
    let properties = vec![
        ("width".to_owned(), options.width.to_string()),
        ("depth".to_owned(), options.depth.to_string()),
        ("region".to_owned(), format!("{left},{top},{side}")),
    ];
    let (outcome, code) = record(&arguments.recording, &fractal::PROGRAM, properties, |launcher| {
        fractal::run(launcher, &options)
    })?;
    if let Some(path) = &arguments.picture {
        let file = create(path)?;
        fractal::write_png(file, &outcome.image, options.width, options.depth)
            .with_context(|| format!("cannot write the picture {}", path.display()))?;
        println!("picture    {}", path.display());
    }
    Ok(code)
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

/// Runs a program under a session and says what was recorded.
fn record<T>(
    recording: &Recording,
    program: &ProgramInfo,
    properties: Vec<(String, String)>,
    run: impl FnOnce(&mut dyn Launcher) -> Result<T, WorkloadError>,
) -> anyhow::Result<(T, ExitCode)> {
    let (bar, hook) = progress::blocks();
    let simulator = SimOptions { seed: recording.seed, progress: Some(hook), ..SimOptions::default() };
    let mut device = device::open(recording.device, simulator)?;
    let mut options = SessionOptions::new(recording.codec()?);
    options.dual = recording.dual;
    options.placement = match recording.tables {
        Tables::Global => Placement::Global,
        Tables::Shared => Placement::Shared,
    };
    options.chunk_bytes = recording.chunk_bytes;
    options.pool_bytes = recording.pool_mib << 20;
    options.compression = match recording.zstd {
        0 => Compression::None,
        level => Compression::Zstd(level),
    };
    options.properties = properties;
    let name = device.info().name;

    let path = &recording.output;
    let is_new = !path.exists();
    let file = TraceOutput::open(path).with_context(|| format!("cannot create {}", path.display()))?;
    let started = Instant::now();
    let file = BufWriter::with_capacity(1 << 20, file);
    let mut session = Session::start(&mut *device, &program.traced(), &options, file).inspect_err(|_| {
        if is_new {
            // Nothing was recorded; an empty file would only be in the way.
            let _ = std::fs::remove_file(path);
        }
    })?;
    let outcome = run(&mut session)?;
    let (file, summary, report) = session.finish()?;
    file.into_inner().context("cannot finish the file")?.sync().context("cannot finish the file")?;
    bar.finish_and_clear();

    println!("recorded   {} on {name}", program.name);
    describe(&summary, &report);
    println!("whole run  {}", output::time(started.elapsed()));
    println!("trace      {}", recording.output.display());
    if report.lost > 0 {
        eprintln!(
            "warning: {} of {} events found no room in the pool; give it more with --pool-mib (now {})",
            output::count(report.lost),
            output::count(report.attempted),
            recording.pool_mib
        );
        return Ok((outcome, ExitCode::from(exit::FINDINGS)));
    }
    Ok((outcome, ExitCode::SUCCESS))
}

fn describe(summary: &Summary, report: &LaunchReport) {
    let raw = report.recorded * u64::from(warptrace_format::RAW_EVENT_BYTES);
    println!("events     {}", output::count(report.recorded));
    println!(
        "on device  {}, {:.1} times less than raw",
        output::bytes(report.payload_bytes),
        raw as f64 / report.payload_bytes.max(1) as f64
    );
    println!("in file    {}", output::bytes(summary.bytes));
    println!("kernel     {}", output::time(report.kernel));
    println!("copy       {}", output::time(report.copy));
    println!("write      {}", output::time(report.write));
}
