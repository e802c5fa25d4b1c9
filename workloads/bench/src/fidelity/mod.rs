//! `fidelity`: measures how well a trace represents the untraced kernel.
//!
//! ```text
//! for each program   untraced, marked ── ncu ── counts ─┐
//! and recording      traced, marked ──── ncu ── counts ─┼─ findings ── CSV, Markdown
//!                          └── trace ── decoder ─ counts ┘
//! ```
//!
//! A mark is an instruction that is only counted (`pmevent`). The untraced and the traced kernel have one at
//! each trace point, executed once per event. Each run is a separate process: this program under Nsight
//! Compute ([`child`]).

mod child;
mod counts;
mod decoded;
mod findings;
mod known;
mod masks;
mod modes;
mod ncu;
mod report;
mod rows;
mod slower;
mod source_page;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use warptrace_decoder::TraceFile;
use warptrace_host::{MARKS_VARIABLE, MemorySize};
use warptrace_workloads::ProgramInfo;

use self::child::{STORY, Story, TRACE};
use self::counts::Counts;
use self::findings::{Findings, Recording, percent};
use self::modes::Mode;
use self::ncu::{Ncu, NoPermission};
use self::report::Subject;
use self::rows::Rows;
pub(crate) use self::slower::Slower;
use crate::arguments::Fidelity;
use crate::machine::{self, Machine};
use crate::subject::Case;
use crate::{files, programs, progress, table};

/// Untraced runs of a synchronous program, which differ only in the order of warps.
const SYNCHRONOUS_RUNS: u32 = 2;
const RUN_LIMIT: Duration = Duration::from_secs(120);
/// Number of launches per run that are profiled; hundreds would take minutes.
const MAX_LAUNCHES: usize = 50;
/// Maximum memory for repeated runs after lost events.
const MAX_MEMORY: MemorySize = MemorySize(64 << 30);

/// Compares all programs and writes the tables. Returns true if every trace matches its kernel.
pub(crate) fn run(arguments: &Fidelity) -> anyhow::Result<bool> {
    if let Some(subject) = &arguments.subject {
        return child::run(arguments, subject).map(|()| true);
    }
    if !arguments.against.is_empty() {
        return masks::run(arguments);
    }
    let cases = programs::fidelity(&arguments.programs)?;
    let machine = {
        // Closes the device again: the runs open it, one after another.
        let device =
            machine::open(arguments.device).context("fidelity reads the hardware counters of a GPU")?;
        anyhow::ensure!(
            machine::is_gpu(&*device),
            "fidelity reads the hardware counters of a GPU, and the simulator has none: run it with --device cuda on a machine that has one"
        );
        Machine::new(&*device)
    };
    let ncu = Ncu::find(arguments.ncu.as_deref())?;
    println!("device     {} (driver {})\nprofiler   {}", machine.name, machine.driver, ncu.path().display());
    let out = &arguments.out;
    files::make_folder(out)?;
    let folder = files::scratch(arguments.scratch.as_deref())?;
    let deadline = arguments.time_limit.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut comparison = Comparison {
        program: std::env::current_exe().context("cannot find this program's own file")?,
        rows: Rows::create(out, &machine, &arguments.commit)?,
        arguments,
        ncu,
        machine,
        folder: folder.path(),
        deadline,
        subjects: Vec::new(),
        left_out: Vec::new(),
    };
    let bar = progress::steps(cases.len() as u64);
    for case in &cases {
        bar.set_message(case.name());
        comparison.compare(case)?;
        comparison.write()?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("\ntables     {}, fidelity.csv and fidelity-locations.csv", out.join("fidelity.md").display());
    Ok(comparison.is_faithful())
}

/// Value of `WARPTRACE_MARKS` for kernels without a slowdown.
const MARKS: &str = "1";

struct Comparison<'a> {
    arguments: &'a Fidelity,
    ncu: Ncu,
    machine: Machine,
    program: PathBuf,
    folder: &'a Path,
    deadline: Option<Instant>,
    rows: Rows,
    subjects: Vec<Subject>,
    left_out: Vec<String>,
}

struct Profiled {
    counts: Counts,
    story: Story,
}

impl Comparison<'_> {
    fn compare(&mut self, case: &Case) -> anyhow::Result<()> {
        let program = case.make()?.program();
        let mut findings = Findings {
            program: case.program,
            input: case.input.clone(),
            asynchronous: case.asynchronous,
            untraced: Vec::new(),
            slower: Vec::new(),
            recordings: Vec::new(),
        };
        let runs = self.arguments.runs;
        for _ in 0..if case.asynchronous { runs } else { runs.min(SYNCHRONOUS_RUNS) } {
            if self.leaves_out(case, "untraced") {
                break;
            }
            let mode = modes::untraced();
            match self.profile(case, program, &mode, mode.memory, MARKS) {
                Ok(profiled) => findings.untraced.push(profiled.counts),
                Err(error) => return self.failed(format!("{}, {}", case.name(), mode.name), error),
            }
        }
        if findings.untraced.is_empty() {
            return Ok(());
        }
        let total = findings.reference().total();
        println!(
            "{}: {} events untraced, {} lanes an event",
            case.name(),
            table::count(total.events),
            table::digits(total.lanes_an_event())
        );
        for mode in modes::recordings(case) {
            if self.leaves_out(case, &mode.name) {
                continue;
            }
            let name = mode.name.clone();
            let recording = match self.record(case, program, mode) {
                Ok(recording) => recording,
                Err(error) => {
                    self.failed(format!("{}, {name}", case.name()), error)?;
                    continue;
                }
            };
            self.rows.add(&findings, &recording, program).context("cannot write the table")?;
            let problems = findings.problems(&recording);
            let said =
                if problems.is_empty() { "ok".to_owned() } else { format!("FAIL: {}", problems.join("; ")) };
            let far: Vec<String> =
                recording.decoded.iter().map(|decoded| percent(findings.distance(decoded))).collect();
            println!("{}: {}: {} from untraced; {said}", case.name(), recording.mode.name, far.join(" and "));
            findings.recordings.push(recording);
        }
        for &more in self.arguments.slower.iter().filter(|_| case.asynchronous) {
            let (mode, name) = (modes::untraced(), format!("untraced, instructions more: {more}"));
            if self.leaves_out(case, &name) {
                continue;
            }
            match self.profile(case, program, &mode, mode.memory, &more.marks()) {
                Ok(profiled) => findings.slower.push((more, profiled.counts)),
                Err(error) => self.failed(format!("{}, {name}", case.name()), error)?,
            }
        }
        self.subjects.push(Subject { findings, program });
        Ok(())
    }

    /// Records a program once; repeats with more memory if events were lost.
    fn record(&self, case: &Case, program: &ProgramInfo, mode: Mode) -> anyhow::Result<Recording> {
        let mut memory = mode.memory;
        loop {
            let Profiled { counts: traced, story } = self.profile(case, program, &mode, memory, MARKS)?;
            if story.lost > 0 && memory < MAX_MEMORY {
                memory = MemorySize(memory.0 * 4).min(MAX_MEMORY);
                println!("{}: {}: events were lost; again with {memory}", case.name(), mode.name);
                continue;
            }
            let trace = TraceFile::open(self.folder.join(TRACE))?;
            let decoded =
                (0..mode.tracks()).map(|track| decoded::counts(&trace, track, story.profiled().len()));
            let decoded = decoded.collect::<anyhow::Result<Vec<Counts>>>()?;
            return Ok(Recording {
                mode,
                launches: story.profiled().len(),
                traced,
                decoded,
                lost: story.lost,
            });
        }
    }

    fn profile(
        &self,
        case: &Case,
        program: &ProgramInfo,
        mode: &Mode,
        memory: MemorySize,
        marks: &str,
    ) -> anyhow::Result<Profiled> {
        let arguments: Vec<OsString> = vec![
            "fidelity".into(),
            "--subject".into(),
            case.name().into(),
            "--mode".into(),
            mode.name.clone().into(),
            "--device".into(),
            self.arguments.device.to_string().into(),
            "--memory".into(),
            memory.0.to_string().into(),
            "--out".into(),
            self.folder.into(),
        ];
        for name in [TRACE, STORY] {
            // Removes the files of an earlier run, so that they are not mistaken for this run's.
            if let Err(error) = fs::remove_file(self.folder.join(name))
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(error).with_context(|| format!("cannot remove {name}"));
            }
        }
        let kernels: Vec<&str> = program.kernels().collect();
        let traced = mode.codec.is_some();
        let profiled = (&kernels[..], traced, MAX_LAUNCHES);
        let child = (self.program.as_path(), &arguments[..]);
        let tables = self.ncu.profile(profiled, child, marks, self.folder, RUN_LIMIT)?;
        let story = Story::read(self.folder)?;
        let launches = source_page::of_launches(tables, story.profiled(), traced)
            .map_err(|problem| anyhow::anyhow!(problem))?;
        let mut counts = Counts::default();
        for launch in &launches {
            counts.add_all(&launch.counts);
        }
        anyhow::ensure!(
            !counts.is_empty(),
            "no mark was executed in {} launches: kernels are marked where {MARKS_VARIABLE} is set, and this device did not mark them",
            launches.len()
        );
        Ok(Profiled { counts, story })
    }

    /// Notes a failed run and continues. Returns the error if it would affect all runs (missing permission).
    fn failed(&mut self, run: String, error: anyhow::Error) -> anyhow::Result<()> {
        if error.is::<NoPermission>() {
            return Err(error);
        }
        eprintln!("error: {run}: {error:#}");
        self.left_out.push(format!("{run}: {error:#}"));
        Ok(())
    }

    /// Returns true if the time limit is reached, so that a run must be left out.
    fn leaves_out(&mut self, case: &Case, what: &str) -> bool {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late {
            println!("{}: {what}: left out, the time limit is reached", case.name());
            self.left_out.push(format!("{}, {what}", case.name()));
        }
        late
    }

    fn write(&self) -> anyhow::Result<()> {
        let path = self.arguments.out.join("fidelity.md");
        let text = report::markdown(&self.subjects, &self.left_out, &self.machine, &self.arguments.commit);
        files::write(&path, text)
    }

    /// Returns true if everything was compared and no recording has a problem.
    fn is_faithful(&self) -> bool {
        let of = |subject: &Subject| {
            let findings = &subject.findings;
            findings.recordings.iter().all(|recording| findings.problems(recording).is_empty())
        };
        self.left_out.is_empty() && !self.subjects.is_empty() && self.subjects.iter().all(of)
    }
}
