//! `run`: the behaviour of the tool itself. `tracer-host/shim/tests/it.rs` traces programs.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), target_env = "gnu"))]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use warptrace_spec::RunSpec;

use crate::support::{Folder, refused, run, text, tool};

/// Builds an empty library that replaces the shim: how the tool runs a program does not depend on the shim.
fn empty_shim(folder: &Folder) -> Option<PathBuf> {
    let (source, library) = (folder.at("empty.c"), folder.at("empty.so"));
    std::fs::write(&source, "int warptrace_test_loaded;\n").unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    if compiled.is_err() {
        eprintln!("skipped: there is no C compiler, `cc`");
        return None;
    }
    assert!(compiled.unwrap().success());
    Some(library)
}

#[test]
fn a_program_keeps_its_output_and_its_exit_code() {
    let folder = Folder::new();
    let Some(shim) = empty_shim(&folder) else { return };
    let trace = folder.at("t.wtrc");
    let shell =
        |script: &str| run(&["run", "-o", text(&trace), "--shim", text(&shim), "--", "sh", "-c", script]);
    let (code, output, errors) = shell("echo out; echo err >&2; exit 7");
    assert_eq!((code, output.as_str()), (7, "out\n"));
    assert_eq!(errors, "err\nwarptrace: nothing was traced: the program launched no CUDA kernel\n");
    assert_eq!(shell("kill -9 $$").0, 137);
    let script = "echo $LD_PRELOAD $WARPTRACE_RUN_SPEC $WARPTRACE_RUN_FILE";
    let (code, output, _) = shell(script);
    let mut spec = RunSpec::default();
    let command = format!("warptrace run -o {} --shim {} -- sh -c '{script}'", text(&trace), text(&shim));
    spec.recording.properties.push(("command".to_owned(), command));
    let spec = spec.to_text();
    let expected = format!("{} {spec} {}\n", shim.canonicalize().unwrap().display(), trace.display());
    assert_eq!((code, output), (0, expected));
    assert!(!trace.exists());
}

#[test]
fn what_cannot_be_recorded_is_refused_before_the_program_runs() {
    let folder = Folder::new();
    let Some(shim) = empty_shim(&folder) else { return };
    let (ran, folder_there, trace) = (folder.at("ran"), folder.at("there"), folder.at("t.wtrc"));
    std::fs::create_dir(&folder_there).unwrap();
    let script = format!("touch {}", text(&ran));
    let (absent, unknown) = (folder.at("nowhere/%p.wtrc"), folder.at("t%x.wtrc"));
    for (arguments, problem) in [
        (&["-o", text(&absent)][..], "cannot create"),
        (&["-o", text(&folder_there)], "cannot create"),
        (&["-o", text(&unknown)], "`%x` in the name of the trace stands for nothing: %p is the number"),
        (&["--print-environment"], "cannot be used with"),
        (
            &["-o", text(&trace), "--property", "command=mine"],
            "the recorder itself writes the property `command`",
        ),
        (&["-o", text(&trace), "--property", "memory_peak=1"], "the recorder itself writes the property"),
    ] {
        let program = ["--shim", text(&shim), "--", "sh", "-c", &script];
        let program = if arguments == ["--print-environment"] { &program[2..] } else { &program };
        let (code, _, errors) = run(&[&["run"], arguments, program].concat());
        assert!(code != 0 && errors.contains(problem), "{arguments:?}: {errors}");
        assert!(!ran.exists() && !trace.exists(), "{arguments:?}");
    }
    // The input of a program must not be the trace.
    std::fs::write(&trace, "input").unwrap();
    let output = Command::new(tool().get_program())
        .args(["run", "-o", text(&trace), "--shim", text(&shim), "--", "sh", "-c", &script])
        .stdin(std::fs::File::open(&trace).unwrap())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("is the program's standard input"), "{errors}");
    assert!(!ran.exists() && std::fs::read(&trace).unwrap() == b"input");
    assert!(run(&["run", "--print-environment"]).0 == 0);
}

#[test]
fn ranks_do_not_write_one_file() {
    let folder = Folder::new();
    let Some(shim) = empty_shim(&folder) else { return };
    for (name, problem) in [
        ("t.wtrc", Some("8 ranks would write ")),
        ("t.%d.wtrc", Some("put %r, the rank, or %p, the number of the process, into the name")),
        ("t.%r.wtrc", None),
        ("t.%p.wtrc", None),
    ] {
        let trace = folder.at(name);
        let mut command = tool();
        command.args(["run", "-o", text(&trace), "--shim", text(&shim), "--", "true"]);
        let output = command.env("RANK", "3").env("WORLD_SIZE", "8").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), problem.is_none(), "{name}: {errors}");
        assert!(problem.is_none_or(|problem| errors.contains(problem)), "{name}: {errors}");
    }
}

#[test]
fn the_tool_alone_is_enough() {
    let folder = Folder::new();
    let alone = folder.at("warptrace");
    std::fs::copy(tool().get_program(), &alone).unwrap();
    let loaded = |cache: &Path| {
        let script = "grep -c /libwarptrace_shim /proc/self/maps > /dev/null && echo $LD_PRELOAD";
        let mut command = Command::new(&alone);
        command.args(["run", "-o", text(&folder.at("t.wtrc")), "--", "sh", "-c", script]);
        let output = command.env("XDG_CACHE_HOME", cache).env("TMPDIR", folder.at("")).output().unwrap();
        let [printed, errors] = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        assert!(output.status.success(), "{errors}");
        assert_eq!(errors, "warptrace: nothing was traced: the program launched no CUDA kernel\n");
        PathBuf::from(printed.trim())
    };
    let cache = folder.at("cache");
    let library = loaded(&cache);
    let written = library.metadata().unwrap().modified().unwrap();
    assert!(library.starts_with(cache.canonicalize().unwrap()), "{library:?}");
    assert_eq!((loaded(&cache), library.metadata().unwrap().modified().unwrap()), (library.clone(), written));
    let right = std::fs::read(&library).unwrap();
    std::fs::write(&library, "changed").unwrap();
    assert_eq!((loaded(&cache), std::fs::read(&library).unwrap() == right), (library, true));
    // No cache is possible, or others could change it.
    let open = folder.at("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    for cache in [&alone, &open, &folder.at("a folder")] {
        let library = loaded(cache);
        assert!(library.ends_with("libwarptrace_shim.so") && !library.starts_with(cache), "{library:?}");
        assert!(!library.exists(), "it is removed after the run");
    }
}

#[test]
fn what_was_preloaded_stays() {
    let folder = Folder::new();
    let Some(shim) = empty_shim(&folder) else { return };
    let other = folder.at("other.so");
    std::fs::copy(&shim, &other).unwrap();
    let trace = folder.at("t.wtrc");
    let words = ["run", "-o", text(&trace), "--shim", text(&shim), "sh", "-c", "echo $LD_PRELOAD"];
    let output = tool().args(words).env("LD_PRELOAD", &other).output().unwrap();
    let expected = format!("{}:{}\n", shim.canonicalize().unwrap().display(), other.display());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn nvtx_is_told_of_the_library_unless_it_knows_another() {
    let folder = Folder::new();
    let Some(shim) = empty_shim(&folder) else { return };
    let (name, words) = ("NVTX_INJECTION64_PATH", ["sh", "-c", "echo $NVTX_INJECTION64_PATH"]);
    let of = |other: Option<&str>, more: &[&str]| {
        let mut command = tool();
        command.args(["run", "-o", text(&folder.at("t.wtrc")), "--shim", text(&shim)]).args(more).args(words);
        command.env_remove(name).envs(other.map(|other| (name, other)));
        let output = command.output().unwrap();
        [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap())
    };
    let [printed, errors] = of(None, &["--nvtx", "step*"]);
    assert_eq!(printed, format!("{}\n", shim.canonicalize().unwrap().display()), "{errors}");
    assert!(!errors.contains("labels"), "{errors}");
    let [printed, errors] = of(Some("/other.so"), &[]);
    assert_eq!(printed, "/other.so\n");
    assert!(
        errors.contains("launches have no labels: NVTX_INJECTION64_PATH names another library, /other.so")
    );
    let [printed, errors] = of(Some("/other.so"), &["--nvtx", "step*"]);
    assert!(printed.is_empty() && errors.contains("`--nvtx` needs NVTX_INJECTION64_PATH"), "{errors}");
    let environment = run(&["run", "--print-environment"]).1;
    assert!(environment.contains("NVTX_INJECTION64_PATH=libwarptrace_shim.so\n"), "{environment}");
}

#[test]
fn signals_reach_the_program() {
    let folder = Folder::new();
    let Some(shim) = empty_shim(&folder) else { return };
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("warptrace"))
        .args(["run", "-o", text(&folder.at("t.wtrc")), "--shim", text(&shim), "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn what_is_missing_is_said() {
    let folder = Folder::new();
    let Some(shim) = empty_shim(&folder) else { return };
    let trace = folder.at("t.wtrc");
    let trace = text(&trace);
    let (code, _, errors) = run(&["run", "-o", trace, "--shim", text(&shim), "--", "/no/such/program"]);
    assert_eq!(code, 127);
    assert!(errors.starts_with("error: cannot run /no/such/program"), "{errors}");
    let (code, _, errors) = run(&["run", "-o", trace, "--shim", "/no/such/shim.so", "--", "true"]);
    assert_eq!(code, 1);
    assert!(errors.contains("/no/such/shim.so") && errors.contains("--shim"), "{errors}");
    assert_eq!(run(&["run", "-o", trace]).0, 2);
    assert_eq!(run(&["run"]).0, 2);
    // Without `-o`, the trace would be named after the program, but nothing was traced.
    let (code, _, errors) = run(&["run", "--shim", text(&shim), "--", "true"]);
    assert_eq!(code, 0, "{errors}");
    assert!(!Path::new("true.wtrc").exists() && !errors.contains("see the trace"), "{errors}");
}

#[test]
fn the_trace_is_none_of_the_files_that_the_program_is_given() {
    let folder = Folder::new();
    let input = folder.at("input");
    std::fs::write(&input, "data").unwrap();
    let link = folder.at("link");
    std::fs::hard_link(&input, &link).unwrap();
    refused(&["run", "-o", text(&link), "--", "cat", text(&input)], "are one file");
    assert_eq!(std::fs::read(&input).unwrap(), b"data");
    refused(&["run", "-o", "-", "--", "true"], "standard output is the program's own");
}

#[test]
fn what_is_no_library_and_no_assembler_is_refused_and_kept() {
    let folder = Folder::new();
    let Some(shim) = empty_shim(&folder) else { return };
    let (words, nasty, trace) = (folder.at("words"), folder.at("a\u{1b}[2Jb.so"), folder.at("t.wtrc"));
    std::fs::write(&words, "no library").unwrap();
    std::fs::copy(&shim, &nasty).unwrap();
    let (library, words, nasty) = (text(&shim), text(&words), text(&nasty));
    let trace = text(&trace);
    let whole = std::fs::read(library).unwrap();
    for (arguments, problem) in [
        (["-o", trace, "--shim", words], "is no library for Linux on "),
        (["-o", trace, "--shim", nasty], "a control character in its path"),
        (["-o", trace, "--ptxas", "."], "is no program"),
        (["-o", trace, "--ptxas", words], "is no program"),
        (["-o", library, "--shim", library], "and the file of `--shim` "),
        (["-o", library, "--ptxas", library], "and the file of `--ptxas` "),
    ] {
        let (code, output, errors) = run(&[&["run"], &arguments[..], &["--", "echo", "ran"]].concat());
        assert_eq!((code, output.as_str()), (1, ""), "{arguments:?}: {errors}");
        assert!(errors.contains(problem) && !errors.contains('\u{1b}'), "{arguments:?}: {errors:?}");
    }
    assert_eq!(std::fs::read(library).unwrap(), whole);
}
