//! Python call stacks of launches.

use std::path::PathBuf;
use std::process::Command;

use warptrace_decoder::TraceFile;

use super::{built, data, run_command};

/// A frame as the program prints it: file, line, function.
type Printed = (String, u32, String);

/// `python3`, those of pyenv, and a list of paths in `WARPTRACE_TEST_PYTHONS`.
fn interpreters() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("python3")];
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = pyenv.and_then(|root| root.join("versions").read_dir().ok());
    found.extend(versions.into_iter().flatten().flatten().map(|entry| entry.path().join("bin/python3")));
    found.extend(std::env::var_os("WARPTRACE_TEST_PYTHONS").iter().flat_map(std::env::split_paths));
    found
}

fn version(python: &PathBuf) -> Option<(u32, u32)> {
    let output =
        Command::new(python).args(["-c", "import sys; print(*sys.version_info[:2])"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn printed(line: &str) -> Vec<Printed> {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn in_trace(trace: &TraceFile, launch: u32) -> Vec<Printed> {
    trace.stack(launch).map(|frame| (frame.file.clone(), frame.line, frame.function.clone())).collect()
}

#[test]
fn launches_have_the_stack_of_the_python_code_that_makes_them() {
    let Some(built) = built() else { return };
    let program = format!("{}/tests/programs/stacks.py", env!("CARGO_MANIFEST_DIR"));
    let ways = [
        "function",
        "method",
        "property",
        "generator",
        "comprehension",
        "deep",
        "names",
        "generated",
        "replaced",
        "sorted",
        "deleted",
        "coroutine",
        "threads",
        "at_exit",
    ];
    let mut tested = Vec::new();
    for python in interpreters() {
        let Some(version) = version(&python) else { continue };
        if version < (3, 9) || tested.contains(&version) {
            continue;
        }
        let run = |ways: &[&str]| {
            let mut command = Command::new(&python);
            command.args([&program, &data("kernels.ptx")]).args(ways).env("PYTHONHASHSEED", "0");
            run_command(built, true, &mut command, &[])
        };
        let traced = run(&ways);
        let (stdout, report) = (traced.stdout(), traced.report());
        let errors = String::from_utf8_lossy(&traced.output.stderr);
        assert!(traced.output.status.success(), "{version:?}: {errors}");
        if report.iter().any(|line| line.contains("carries no GPU code")) {
            eprintln!("skipped: built without a device compiler");
            return;
        }
        let trace = traced.trace();
        let expected: Vec<Vec<Printed>> = stdout.lines().map(printed).collect();
        assert_eq!(trace.launches().len(), expected.len(), "{version:?}: {report:?}");
        for (launch, expected) in (0..).zip(expected) {
            let found = in_trace(&trace, launch);
            if version >= (3, 11) {
                assert_eq!(found, expected, "{version:?}: launch {launch}");
            } else {
                assert_eq!(found, [], "{version:?} has no layout");
            }
        }
        // While the interpreter ends, and in a second one, a stack is right or missing.
        for way in ["as_it_ends", "subinterpreter"] {
            let traced = run(&[way]);
            let errors = String::from_utf8_lossy(&traced.output.stderr);
            assert!(traced.output.status.success(), "{version:?} {way}: {errors}");
            let trace = traced.trace();
            let inner = traced.stdout().lines().map(printed).next().unwrap_or_default();
            for launch in 0..trace.launches().len() as u32 {
                let stack = in_trace(&trace, launch);
                let functions: Vec<&str> = stack.iter().map(|(.., function)| &**function).collect();
                let is_outer = functions.last() == Some(&"<module>")
                    || functions.first() == Some(&"as_it_ends.<locals>.forever");
                assert!(stack.is_empty() || stack == inner || is_outer, "{version:?} {way}: {stack:?}");
            }
        }
        tested.push(version);
    }
    for minor in 11..=14 {
        if !tested.contains(&(3, minor)) {
            eprintln!("skipped: there is no CPython 3.{minor}");
        }
    }
    assert!(!tested.is_empty() || version(&"python3".into()).is_none());
}
