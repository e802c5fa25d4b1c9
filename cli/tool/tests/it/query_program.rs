//! Commands that the separate program `warptrace-query` executes.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{self, Folder};

const COMMANDS: [&[&str]; 4] = [
    &["query", "select 1", "a.wtrc", "-o", "b"],
    &["worker", "."],
    &["top", ".", "--workers", "127.0.0.1:1"],
    &["loops", ".", "--location", "A B", "--workers", "a:1,b:2"],
];

#[test]
fn it_is_found_beside_the_tool_or_in_the_path_or_missed() {
    let folder = Folder::new();
    let (alone, path) = (folder.at("alone"), folder.at("path"));
    fs::create_dir(&alone).unwrap();
    fs::create_dir(&path).unwrap();
    let copy = alone.join("warptrace");
    fs::copy(env!("CARGO_BIN_EXE_warptrace"), &copy).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&copy);
        let output = command.args(arguments).env("PATH", &path).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for arguments in COMMANDS {
        let (code, output, errors) = run(arguments);
        assert_eq!((code, output.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(errors.starts_with("error: `warptrace-query` is neither beside"), "{errors}");
    }
    let called = |folder: &std::path::Path, name| {
        let program = folder.join("warptrace-query");
        let script =
            format!("#!/bin/sh\necho {name} $WARPTRACE_QUERY_CALLER\nprintf '%s\\n' \"$@\"\nexit 7\n");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        for arguments in COMMANDS {
            let (code, output, errors) = run(arguments);
            let expected = format!("{name} {}\n{}\n", env!("CARGO_PKG_VERSION"), arguments.join("\n"));
            assert_eq!((code, output, errors), (Some(7), expected, String::new()), "{arguments:?}");
        }
    };
    called(&path, "in-path");
    called(&alone, "beside");
    // Without workers, `warptrace` computes the figures.
    let (code, output, errors) = run(&["top", "nothing.wtrc"]);
    assert_eq!((code, output.as_str()), (Some(1), ""));
    assert!(errors.contains("nothing.wtrc"), "{errors}");
}

#[test]
fn only_figures_that_workers_have_are_asked_of_them() {
    for command in ["warps", "paths", "waits", "accesses", "values"] {
        let (code, output, errors) = support::run(&[command, ".", "--workers", "127.0.0.1:1"]);
        assert_eq!((code, output.as_str()), (1, ""), "{command}");
        assert!(errors.starts_with("error: workers have figures for"), "{command}: {errors}");
    }
    let (code, _, errors) = support::run(&["top", ".", "--token-file", "token"]);
    assert_eq!(code, 2);
    assert!(errors.contains("--workers"), "{errors}");
}
