//! `warptrace run`: runs an unchanged program with the shim loaded.

pub(super) mod hang;
mod switches;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI32, AtomicU64};

use anyhow::{Context, bail};
use same_file::Handle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level;
use warptrace_abi::run::{REPORT_PREFIX, RUN_FILE, RUN_PTXAS, RUN_REPORT, RUN_SPEC};
use warptrace_format::file::COMMAND;
use warptrace_format::shown;
use warptrace_host::{Earlier, NameParts, TraceOutput, command_line, file_name, is_name_of_one};

use self::switches::NVTX_INJECTION;
use super::shim;
use crate::arguments::RunArguments;
use crate::output::{say, shown_name};
use crate::whole_file::{is_redirected, keep_apart};

/// Exit code that shells return for a program that does not exist.
const NOT_FOUND: u8 = 127;
/// A program that a signal ended has the exit code 128 plus the signal's number, as in shells.
const ENDED_BY: i32 = 128;
pub(crate) fn run(command: &RunArguments) -> anyhow::Result<ExitCode> {
    if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        bail!(
            "`run` is for Linux on x86-64 and aarch64: elsewhere, trace kernels of your own: `warptrace new` makes a package"
        );
    }
    if command.print_environment {
        for (name, value) in switches::to_set(|name| env::var_os(name), Path::new(shim::SHIM)) {
            say!("{name}={}", value.to_string_lossy())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    command.spec.check()?;
    let other = env::var_os(NVTX_INJECTION);
    if let Some(other) = other.as_deref().filter(|_| !command.spec.recording.window.nvtx.is_empty()) {
        bail!(
            "`--nvtx` needs {NVTX_INJECTION}, which names another library: {}; unset it",
            shown_name(other)
        );
    }
    let output = &command.output.clone().map_or_else(|| default_output(&command.program), Ok)?;
    if output == Path::new("-") {
        bail!("standard output is the program's own: name a file for the trace");
    }
    // The words may name files that the program reads.
    let words = command.program.iter().map(|word| ("the program or its argument", Path::new(word)));
    let loaded = [("the file of `--shim`", &command.shim), ("the file of `--ptxas`", &command.ptxas)];
    let loaded = loaded.into_iter().filter_map(|(what, path)| Some((what, path.as_deref()?)));
    keep_apart(output, &words.chain(loaded).collect::<Vec<_>>())?;
    // The program inherits the streams of this tool.
    for (stream, what) in [(Handle::stdin as fn() -> _, "input"), (Handle::stderr, "error")] {
        if is_redirected(output, stream) {
            bail!("{} is the program's standard {what}: name another file for the trace", shown_name(output));
        }
    }
    let earlier = check_output(output)?;
    let report =
        tempfile::tempdir().context("cannot make a folder for what the program's processes report")?;
    let shim = shim::find(command.shim.as_deref(), report.path())?;
    let mut program = prepared(command, output, &shim.path, report.path())?;
    let name = command.program.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    watch_signals()?;
    let watch = hang::Watch::start(report.path()).context("cannot start a thread")?;
    let mut child = match program.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            crate::output::tell!("error: cannot run {name}: {error}");
            return Ok(ExitCode::from(NOT_FOUND));
        }
        Err(error) => return Err(error).with_context(|| format!("cannot run {name}")),
    };
    let process = i32::try_from(child.id()).context("the program's number is not one of a process")?;
    PROGRAM.store(process, SeqCst);
    pass_on();
    let status = child.wait().with_context(|| format!("cannot wait for {name}"))?;
    PROGRAM.store(0, SeqCst);
    drop(watch);
    let lines = reported(report.path());
    if lines.is_empty() {
        crate::output::tell!("warptrace: nothing was traced: the program launched no CUDA kernel");
    }
    for line in lines.into_iter().chain(earlier.set_aside()) {
        crate::output::tell!("warptrace: {line}");
    }
    if command.output.is_none()
        && let Ok(file) = of_this_process(output)
        && file.is_file()
    {
        crate::output::tell!("warptrace: see the trace: warptrace top {}", shown_name(&file));
    }
    if let Some(other) = other {
        let other = shown_name(other);
        crate::output::tell!(
            "warptrace: launches have no labels: {NVTX_INJECTION} names another library, {other}"
        );
    }
    let code = status.code().or_else(|| status.signal().map(|signal| ENDED_BY + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Names the trace after the program or its Python script. Adds a number if a file with that name exists.
fn default_output(program: &[OsString]) -> anyhow::Result<PathBuf> {
    let is_script = |word: &&OsString| Path::new(word).extension().is_some_and(|ending| ending == "py");
    let named = program.iter().find(is_script).or(program.first()).map(Path::new).and_then(Path::file_stem);
    let mut name = named.unwrap_or(OsStr::new("trace")).to_string_lossy().replace('%', "%%");
    if warptrace_host::ranks().ranks.is_some_and(|ranks| ranks > 1) {
        name.push_str("-%r");
    }
    for number in 1.. {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let output = PathBuf::from(format!("{name}{suffix}.wtrc"));
        if !of_this_process(&output)?.exists() {
            return Ok(output);
        }
    }
    bail!("no file for the trace was named: -o FILE")
}

/// Expands a file name for this process, with device 0 and unknown ranks 0: both may be known only after the
/// program has started.
fn of_this_process(output: &Path) -> anyhow::Result<PathBuf> {
    let rank = warptrace_host::ranks().rank.or(Some(0));
    Ok(file_name(output, NameParts { process: std::process::id(), rank, device: 0 })?)
}

/// Checks that the trace can be written, before the program runs. Returns the earlier file of this name.
fn check_output(output: &Path) -> anyhow::Result<Earlier> {
    let ranks = warptrace_host::ranks();
    if let Some(ranks) = ranks.ranks.filter(|ranks| *ranks > 1)
        && !is_name_of_one(output)
    {
        bail!(
            "{ranks} ranks would write {}: put %r, the rank, or %p, the number of the process, into the name",
            shown_name(output)
        );
    }
    let path = of_this_process(output)?;
    // Opening a pipe would wait for its reader.
    if path.is_file() || path.is_dir() || !path.exists() {
        let file =
            TraceOutput::open(&path).with_context(|| format!("cannot create {}", shown_name(&path)))?;
        return Ok(file.earlier());
    }
    Ok(Earlier::default())
}

fn prepared(command: &RunArguments, output: &Path, shim: &Path, report: &Path) -> anyhow::Result<Command> {
    let Some((name, arguments)) = command.program.split_first() else { bail!("no program was named") };
    let mut preload = shim.as_os_str().to_owned();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let output = std::path::absolute(output).context("cannot tell where the trace is to be")?;
    let mut spec = command.spec.clone();
    spec.recording.properties.push((COMMAND.to_owned(), command_line()));
    let mut program = Command::new(name);
    program
        .args(arguments)
        .env("LD_PRELOAD", preload)
        .env(RUN_FILE, output)
        .env(RUN_REPORT, report)
        .env(RUN_SPEC, spec.to_text());
    if let Some(ptxas) = &command.ptxas {
        let cannot = || format!("cannot open {}", shown_name(ptxas));
        let ptxas = fs::canonicalize(ptxas).with_context(cannot)?;
        let found = fs::metadata(&ptxas).with_context(cannot)?;
        if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
            bail!("the assembler that --ptxas names is no program: {}", shown_name(&ptxas));
        }
        program.env(RUN_PTXAS, ptxas);
    }
    program.envs(switches::to_set(|name| env::var_os(name), shim));
    Ok(program)
}

/// Signals that are passed on to the program.
const PASSED: [i32; 3] = [SIGTERM, SIGHUP, SIGUSR2];
/// Process ID of the program; 0 if it does not run.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// Signals to pass on, one bit for each number.
static CAME: AtomicU64 = AtomicU64::new(0);

/// Installs signal handlers before the program starts. Signals of the keyboard reach the program directly;
/// like SIGUSR1, they also ask where a launch hangs.
fn watch_signals() -> anyhow::Result<()> {
    let failed = "cannot watch for signals";
    for signal in [SIGINT, SIGQUIT] {
        let count = || {
            hang::INTERRUPTS.fetch_add(1, SeqCst);
        };
        // SAFETY: the handler only adds to an atomic, which is async-signal-safe.
        unsafe { low_level::register(signal, count) }.context(failed)?;
    }
    let count = || {
        hang::QUESTIONS.fetch_add(1, SeqCst);
    };
    // SAFETY: the handler only adds to an atomic, which is async-signal-safe.
    unsafe { low_level::register(SIGUSR1, count) }.context(failed)?;
    for signal in PASSED {
        let came = move || {
            CAME.fetch_or(1 << signal, SeqCst);
            pass_on();
        };
        // SAFETY: the handler uses atomics and `pass_on`, which are async-signal-safe.
        unsafe { low_level::register(signal, came) }.context(failed)?;
    }
    Ok(())
}

/// Sends the signals that arrived to the program, if it runs. Async-signal-safe.
fn pass_on() {
    let program = PROGRAM.load(SeqCst);
    if program == 0 {
        return;
    }
    let came = CAME.swap(0, SeqCst);
    for signal in PASSED.into_iter().filter(|signal| came >> signal & 1 != 0) {
        // SAFETY: `kill` is async-signal-safe and accesses no memory of this process. The process ID is not
        // reused before the end of this tool, which waits for the program.
        let _ = unsafe { libc::kill(program, signal) };
    }
}

/// Returns the lines that the processes reported, with the processes' names if there are several.
fn reported(folder: &Path) -> Vec<String> {
    let is_report = |name: &OsStr| name.as_bytes().starts_with(REPORT_PREFIX.as_bytes());
    let mut names: Vec<OsString> = fs::read_dir(folder)
        .map(|entries| entries.filter_map(|entry| entry.ok().map(|entry| entry.file_name())).collect())
        .unwrap_or_default();
    names.retain(|name| is_report(name));
    names.sort_by_key(|name| (name.len(), name.clone()));
    let several = names.len() > 1;
    let mut lines = Vec::new();
    for name in names {
        let Ok(text) = fs::read(folder.join(name)) else { continue };
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut all = text.lines();
        let process = all.next().unwrap_or_default();
        // Names of kernels come from the program, so they are escaped.
        let all = all.map(shown);
        lines.extend(all.map(|line| if several { format!("({process}) {line}") } else { line.into_owned() }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_named_after_the_program_or_its_script() {
        let name = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            default_output(&words).expect("a name")
        };
        assert_eq!(name(&["./build/app", "--size", "9"]), Path::new("app.wtrc"));
        assert_eq!(name(&["python3", "-u", "models/train.py", "x.py"]), Path::new("train.wtrc"));
        assert_eq!(name(&["100%"]), Path::new("100%%.wtrc"));
    }

    #[test]
    fn reports_of_several_processes_name_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a report");
        write("process-99", "a, process 99\none");
        assert_eq!(reported(folder.path()), ["one"]);
        write("process-100", "b, process 100\ntwo\nthree");
        write("writes-x", "");
        let expected = ["(a, process 99) one", "(b, process 100) two", "(b, process 100) three"];
        assert_eq!(reported(folder.path()), expected);
    }
}
