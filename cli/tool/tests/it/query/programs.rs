//! `warptrace`, which `warptrace-query` replaces.

use std::path::Path;
use std::process::{Command, Stdio};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

use super::{mis, run, text};
use crate::support::{Folder, recorded};

const TOOL: &str = env!("CARGO_BIN_EXE_warptrace");
const QUERY: &str = env!("CARGO_BIN_EXE_warptrace-query");
/// Time for a process to start on a busy machine.
#[cfg(target_os = "linux")]
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn both_have_one_command_line() {
    let said = |program, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        (output.status.code(), output.stdout, output.stderr)
    };
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["query", "--help"],
        &["worker", "--help"],
        &["lines", "--help"],
        &["query"],
        &["nothing"],
    ] {
        let tool = said(TOOL, arguments);
        assert!(tool.1.len() + tool.2.len() > 10, "{arguments:?}");
        assert_eq!(tool, said(QUERY, arguments), "{arguments:?}");
    }
}

#[test]
fn it_is_found_through_a_link_and_its_exit_code_is_the_tools() {
    let folder = Folder::new();
    let link = folder.at("linked");
    std::os::unix::fs::symlink(TOOL, &link).unwrap();
    let ask = |sql: &str, trace: &Path| {
        let mut command = Command::new(&link);
        let output = command.args(["query", sql, text(trace), "--format", "csv"]).env_remove("PATH").output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let trace = folder.recorded("a.wtrc", &[]);
    assert_eq!(ask("select 7 as n", &trace), (Some(0), "n\n7\n".into()));
    assert_eq!(ask("selec", &trace), (Some(1), String::new()));
    assert_eq!(ask("select 7 as n", &folder.at("nothing.wtrc")), (Some(1), String::new()));
}

#[cfg(target_os = "linux")]
#[test]
fn signals_reach_the_program_in_its_place() {
    let (_folder, trace) = recorded(&[]);
    // This query would take years.
    let sql = "select count(*) from events a, events b, events c, events d \
               where a.event <> b.lanes + c.lanes + d.lanes";
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let mut command = Command::new(TOOL);
        command.args(["query", sql, text(&trace)]).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let begun = Instant::now();
        while !waits_for_signals(child.id()) {
            assert!(begun.elapsed() < LIMIT, "it does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{signal}");
        let errors = String::from_utf8(output.stderr).unwrap();
        let expected = if code.is_some() { "error: the query was stopped\n" } else { "" };
        assert_eq!(errors, expected, "{signal}");
    }
}

/// Returns true if the process has become `warptrace-query` and handles SIGINT.
#[cfg(target_os = "linux")]
fn waits_for_signals(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let caught = u64::from_str_radix(field("SigCgt:"), 16).unwrap_or(0);
    // The kernel keeps 15 bytes of a name, which is the whole name here.
    field("Name:") == "warptrace-query" && caught & (1 << (libc::SIGINT - 1)) != 0
}

#[test]
fn other_versions_and_other_commands_are_refused() {
    let run = |arguments: &[&str], caller: &str| {
        let mut command = Command::new(QUERY);
        let output = command.args(arguments).env("WARPTRACE_QUERY_CALLER", caller).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, errors) = run(&["query", "select 1", "a.wtrc"], "0.0.1");
    assert_eq!(code, Some(1));
    assert!(errors.contains(env!("CARGO_PKG_VERSION")) && errors.contains("warptrace 0.0.1"), "{errors}");
    for arguments in [&["info", "a.wtrc"][..], &["top", "a.wtrc"], &["devices"]] {
        let (code, errors) = run(arguments, env!("CARGO_PKG_VERSION"));
        assert_eq!(code, Some(1));
        assert!(errors.contains("call `warptrace`"), "{errors}");
    }
}

#[test]
fn figures_of_workers_are_printed_as_those_of_files() {
    let folder = Folder::new();
    for (name, seed) in [("a.2.wtrc", "1"), ("a.10.wtrc", "2"), ("b.wtrc", "3")] {
        mis(&folder, name, seed);
    }
    let token = folder.at("token");
    std::fs::write(&token, "a secret\n").unwrap();
    let root = token.parent().unwrap();
    let mut worker = Command::new(TOOL);
    worker.args(["worker", text(root), "--listen", "127.0.0.1:0", "--token-file", text(&token)]);
    let mut worker = worker.stderr(Stdio::piped()).spawn().unwrap();
    let said = std::io::BufReader::new(worker.stderr.take().unwrap());
    let said = std::io::BufRead::lines(said).next().unwrap().unwrap();
    let address = said.strip_prefix("listening on ").unwrap();
    let apart = ["--workers", address, "--token-file", text(&token)];
    for arguments in [
        &["top"][..],
        &["top", "--json"],
        &["lines", "--sort", "idle"],
        &["loops"],
        &["causes", "--kernel", "mis_find"],
        &["edges", "--json"],
        &["stats"],
    ] {
        let expected = run(&[&arguments[..1], &[text(root)], &arguments[1..]].concat());
        let found = run(&[&arguments[..1], &["."], &arguments[1..], &apart].concat());
        assert_eq!(expected.0, 0, "{arguments:?}: {}", expected.2);
        assert_eq!(found, expected, "{arguments:?}");
    }
    let (code, _, errors) = run(&["top", ".", "--workers", address]);
    assert_eq!(code, 1);
    assert!(errors.contains("wants a token") && errors.contains(address), "{errors}");
    let stopped = Command::new("kill").arg(worker.id().to_string()).status().unwrap();
    assert!(stopped.success() && worker.wait().unwrap().success());
}
