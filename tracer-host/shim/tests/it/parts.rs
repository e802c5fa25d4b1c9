//! Tests of programs that begin and end the recording themselves.

use std::process::{Command, Output};

use warptrace_abi::run::{RUN_FILE, RUN_SPEC};

use super::{Built, ShimRun, built, data, launch_count, run, spec};

#[test]
fn a_program_says_which_part_of_it_is_recorded() {
    let Some(built) = built() else { return };
    let words = ["proc", &data("kernels.ptx"), "parts"];
    let told = |run: &ShimRun| String::from_utf8_lossy(&run.output.stderr).into_owned();
    let plain = run(built, false, &words, &[]);
    assert_eq!(told(&plain), "told 1\n".repeat(3));
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("own.wtrc");
    let own_text = own.to_str().expect("a plain name");
    for manual in [false, true] {
        let spec = spec(|spec| spec.manual = manual);
        let variables = [("OWN_TRACE", own_text), (RUN_SPEC, &*spec)];
        let traced = run(built, true, &words, &variables);
        if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
            eprintln!("skipped: built without a device compiler");
            return;
        }
        assert_eq!((traced.stdout(), told(&traced)), (plain.stdout(), "told 0\n".repeat(3)));
        assert_eq!(launch_count(&own), 1, "{:?}", traced.report());
        assert_eq!(traced.verified().0, 1, "{:?}", traced.report());
        std::fs::remove_file(&own).expect("it was made");
    }
    // Without a name from the program, traces have the name from the settings, with numbers.
    let traced = run(built, true, &words, &[]);
    assert_eq!(traced.verified().0, 1, "{:?}", traced.report());
    assert_eq!(launch_count(&traced.folder.path().join("t-2.wtrc")), 1, "{:?}", traced.report());
    let traced = run(built, true, &words, &[("OWN_TRACE", "/nowhere/own.wtrc")]);
    assert_eq!(traced.stdout(), plain.stdout());
    assert!(
        traced.report().iter().any(|line| line.contains("cannot create /nowhere/own.wtrc")),
        "{:?}",
        traced.report()
    );
}

fn python(built: &Built, traced: bool, text: &str) -> Option<Output> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("python3");
    command
        .args(["-W", "error", "-c", text])
        .env("PYTHONPATH", format!("{}/../../cli/python/python", env!("CARGO_MANIFEST_DIR")))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("LD_PRELOAD");
    if traced {
        command.env("LD_PRELOAD", &built.shim).env(RUN_FILE, folder.path().join("t.wtrc"));
    }
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no `python3`");
        return None;
    };
    Some(output)
}

#[test]
fn the_python_package_says_whether_anything_is_recorded() {
    let Some(built) = built() else { return };
    let text = "import warptrace\nprint(warptrace.is_traced(), warptrace.begin(), warptrace.end())\n\
        with warptrace.trace('t.wtrc'): print('inside')\n";
    let Some(output) = python(built, true, text) else { return };
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(words(&output.stdout), "True True True\ninside\n", "{}", words(&output.stderr));
    let Some(output) = python(built, false, text) else { return };
    assert_eq!(words(&output.stdout), "False False False\n");
    assert!(words(&output.stderr).contains("RuntimeWarning: nothing is recorded: start the program with"));
    let wrong = "import warptrace\nwarptrace.begin('')";
    let Some(output) = python(built, true, wrong) else { return };
    assert!(words(&output.stderr).contains("ValueError: '' cannot be the name of a file"));
}
