//! The example as a user's package, far from the workspace: it builds, runs, checks its result, and its trace
//! verifies. And the page of documentation has its files as they are.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use warptrace_build::Compiler;
use warptrace_decoder::TraceFile;

const FILES: [&str; 4] = ["Cargo.toml", "build.rs", "src/kernels.rs", "src/main.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join("examples/spmv").join(file)).unwrap()
}

/// Copies the example to a folder of its own, with the versions of packages that the workspace has.
fn copy_example() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("spmv package");
    fs::create_dir_all(folder.join("src")).unwrap();
    for file in FILES {
        // Of another folder, so that paths of the sources are absolute.
        let text = text(file).replace("\"../../", &format!("\"{}/", root().display()));
        if fs::read_to_string(folder.join(file)).is_ok_and(|found| found == text) {
            continue;
        }
        fs::write(folder.join(file), text).unwrap();
    }
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

#[test]
fn the_example_builds_runs_and_traces() {
    let folder = copy_example();
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target")).args(arguments);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        (String::from_utf8(output.stdout).unwrap(), said)
    };
    let (said, _) = cargo(&["run", "--", "spmv.wtrc"]);
    assert!(said.contains("every row is as on the CPU"), "{said}");
    let file = TraceFile::open(folder.join("spmv.wtrc")).unwrap();
    assert!(file.verify().is_ok(), "{}", file.verify());
    let locations = &file.metadata().locations;
    assert_eq!((locations.len(), locations[0].file.as_str()), (6, "src/kernels.rs"));

    // Nothing is compiled again without a change.
    let (_, said) = cargo(&["build"]);
    assert!(!said.contains("Compiling"), "{said}");

    let skips =
        std::env::var_os("WARPTRACE_NO_DEVICE_CODE").is_some_and(|value| !value.is_empty() && value != "0");
    if skips || Compiler::find().is_err() {
        eprintln!(
            "the PTX of the example was not looked at: there is no device compiler, or it is not wanted"
        );
        return;
    }
    let outputs = fs::read_dir(folder.join("target/debug/build")).unwrap();
    let ptx =
        outputs.flatten().filter_map(|output| fs::read_to_string(output.path().join("out/kernels.ptx")).ok());
    let ptx: Vec<String> = ptx.filter(|ptx| ptx.contains(".entry multiply(")).collect();
    assert!(!ptx.is_empty(), "the build script left no PTX");
    for id in [1, 2, 3, 5, 6] {
        assert!(ptx[0].contains(&format!("// warptrace.loc {id}\n")), "location {id} is lost");
    }
    assert!(ptx[0].contains("// warptrace.loop.tick 4 1\n"));
}

#[test]
fn the_page_has_the_files_as_they_are() {
    let page = fs::read_to_string(root().join("docs/users/own-kernel.md")).unwrap();
    for file in FILES {
        let at = page.find(&format!("`{file}`")).unwrap_or_else(|| panic!("{file} is not on the page"));
        let block = page[at..].split("```").nth(1).unwrap();
        let block = block.split_once('\n').unwrap().1;
        assert_eq!(block, text(file), "{file}");
    }
}
