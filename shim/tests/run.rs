//! Programs that use a driver, run with the shim in them: the same output and exit code as without, and traces that
//! are whole. The driver is a double (`driver/lib.rs`), which interprets the kernels.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;
use warptrace_decoder::TraceFile;

/// What the tests run: the compiled programs, and the driver beside them.
struct Built {
    folder: TempDir,
    shim: PathBuf,
}

/// Compiles the programs; `None`, and a word, without a C compiler.
fn built() -> Option<&'static Built> {
    static BUILT: OnceLock<Option<Built>> = OnceLock::new();
    BUILT.get_or_init(build).as_ref()
}

fn build() -> Option<Built> {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler, `cc`");
        return None;
    }
    let tests = std::env::current_exe().expect("a test has a path");
    let deps = tests.parent().expect("it is in a folder");
    let target = deps.parent().expect("which is in another");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(target.join("examples/libtest_driver.so"), folder.path().join("libcuda.so.1"))
        .expect("cargo builds examples with the tests");
    std::os::unix::fs::symlink("libcuda.so.1", folder.path().join("libcuda.so")).expect("a link");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/app.c");
    for (name, more) in [("app", &[][..]), ("app-linked", &["-DLINKED", "-lcuda"][..])] {
        let status = Command::new("cc")
            .args(["-w", "-o"])
            .arg(folder.path().join(name))
            .arg(&source)
            .arg(format!("-L{}", folder.path().display()))
            .args(more)
            .args(["-ldl", "-Wl,--allow-shlib-undefined"])
            .status();
        assert!(status.expect("cc runs").success(), "{name}");
    }
    let shim = deps.join("libwarptrace_shim.so");
    assert!(shim.is_file(), "cargo builds the library with its tests");
    Some(Built { folder, shim })
}

/// One run of the program.
struct Run {
    folder: TempDir,
    output: Output,
}

impl Run {
    fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).expect("text")
    }

    /// What reached the driver.
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What the processes reported, without the lines that name them.
    fn report(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in std::fs::read_dir(self.folder.path()).expect("a folder").flatten() {
            if entry.file_name().to_string_lossy().starts_with("process-") {
                let text = std::fs::read_to_string(entry.path()).expect("a report");
                lines.extend(text.lines().skip(1).map(str::to_owned));
            }
        }
        lines
    }

    fn trace(&self) -> TraceFile {
        TraceFile::open(self.folder.path().join("t.wtrc")).expect("a trace")
    }

    /// Checks that the trace is whole, and answers its launches and events.
    fn verified(&self) -> (u64, u64) {
        let trace = self.trace();
        let report = trace.verify();
        assert!(report.is_ok(), "{report}");
        (report.launches, report.events)
    }
}

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs the program, with the shim if `traced`.
fn run(built: &Built, traced: bool, words: &[&str], variables: &[(&str, &str)]) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    let program = if words[0] == "linked" { "app-linked" } else { "app" };
    let mut command = Command::new(built.folder.path().join(program));
    command
        .args(words)
        .env("LD_LIBRARY_PATH", built.folder.path())
        .env("TEST_DRIVER_LOG", folder.path().join("log"))
        .env_remove("LD_PRELOAD");
    if traced {
        command
            .env("LD_PRELOAD", &built.shim)
            .env("WARPTRACE_RUN_FILE", folder.path().join("t.wtrc"))
            .env("WARPTRACE_RUN_REPORT", folder.path())
            .env("WARPTRACE_RUN_MEMORY", "8MiB");
    }
    command.envs(variables.iter().copied());
    let output = command.output().expect("it runs");
    Run { folder, output }
}

/// Runs the program without and with the shim; the same comes out.
fn both(words: &[&str]) -> Option<Run> {
    let built = built()?;
    let plain = run(built, false, words, &[]);
    let traced = run(built, true, words, &[]);
    assert_eq!(plain.stdout(), traced.stdout(), "{words:?}: {:?}", traced.report());
    assert_eq!(plain.output.status, traced.output.status, "{words:?}");
    assert_eq!(String::from_utf8_lossy(&traced.output.stderr), "", "{words:?}");
    // The tracer's own kernels need a device compiler when this is built.
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    Some(traced)
}

#[test]
fn a_program_is_traced_however_it_finds_the_driver() {
    let image = data("kernels.ptx");
    for way in ["dlsym", "dlvsym", "proc", "thread", "linked"] {
        let Some(traced) = both(&[way, &image]) else { return };
        assert_eq!(traced.verified().0, 1, "{way}: {:?}", traced.report());
        assert!(traced.verified().1 > 100, "{way}: {:?}", traced.report());
        assert!(traced.log().contains("image traced PTX") && traced.log().contains("launch walk$traced"));
        assert!(traced.report()[0].contains("events of 1 launch, 1 kernel"), "{:?}", traced.report());
    }
}

#[test]
fn images_of_all_kinds_are_traced_or_said_not_to_be() {
    for (image, more) in [
        ("kernels-none.fatbin", "twice"),
        ("kernels-speed.fatbin", "library"),
        ("kernels-size.fatbin", "extra"),
    ] {
        for prefix in ["", "wrapped:"] {
            let Some(traced) = both(&["dlsym", &format!("{prefix}{}", data(image)), more]) else { return };
            assert!(traced.verified().1 > 100, "{image}: {:?}", traced.report());
        }
    }
    let Some(traced) = both(&["dlsym", &format!("file:{}", data("kernels-size.fatbin"))]) else { return };
    assert_eq!(traced.verified().0, 1);
    let Some(traced) = both(&["dlsym", &data("kernels-cubin.fatbin")]) else { return };
    let lines = traced.report();
    assert!(
        lines[0].contains("not traced: 1 launch of walk: only machine code; build with -gencode"),
        "{lines:?}"
    );
    assert!(!traced.folder.path().join("t.wtrc").exists());
}
