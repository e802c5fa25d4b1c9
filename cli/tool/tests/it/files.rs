//! Files that commands write, and files that they must not change.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

#[cfg(unix)]
use crate::no_room::run_with_room;
use crate::support::{Folder, recorded, refused, run, text};

fn names_of(folder: &Folder, path: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(folder.at("sub")).unwrap();
    let mut names = vec![path.to_owned(), folder.at("sub/..").join(path.file_name().unwrap())];
    let hard = folder.at("hard.wtrc");
    fs::hard_link(path, &hard).unwrap();
    names.push(hard);
    #[cfg(unix)]
    {
        let soft = folder.at("soft.wtrc");
        std::os::unix::fs::symlink(path, &soft).unwrap();
        names.push(soft);
    }
    names
}

#[test]
fn no_command_writes_to_what_it_reads() {
    let (folder, path) = recorded(&[]);
    let other = folder.recorded("b.wtrc", &[]);
    let whole = fs::read(&path).unwrap();
    for name in names_of(&folder, &path) {
        let (file, target, other) = (text(&path), text(&name), text(&other));
        let mut commands = vec![
            vec!["decode", file, "-o", target],
            vec!["report", file, "-o", target],
            vec!["report", other, "--against", file, "-o", target],
        ];
        for format in ["perfetto", "firefox", "lcov"] {
            commands.push(vec!["export", file, "--to", format, "-o", target]);
        }
        if cfg!(feature = "parquet") {
            commands.push(vec!["export", file, "--to", "parquet", "-o", target]);
        }
        for command in commands {
            let (code, output, errors) = run(&command);
            assert_eq!((code, output.as_str()), (1, ""), "{command:?}: {errors}");
            let read = if command.contains(&"--against") { "the trace of `--against`" } else { "the trace" };
            let both = format!("the output {target} and {read} {file} are one file: name another");
            assert!(errors.contains(&both), "{command:?}: {errors}");
            assert_eq!(fs::read(&path).unwrap(), whole, "{command:?}");
        }
    }
}

fn partition(name: &str) -> String {
    let unknown = "__HIVE_DEFAULT_PARTITION__";
    format!("job={unknown}/rank={unknown}/trace={name}")
}

#[test]
fn an_export_into_a_folder_does_not_replace_the_trace_in_it() {
    if !cfg!(feature = "parquet") {
        eprintln!("skipped: this tool was built without Parquet");
        return;
    }
    let folder = Folder::new();
    let into = &folder.at("tables");
    fs::create_dir_all(into.join("runs").join(partition("runs.parquet"))).unwrap();
    let path = folder.recorded(&format!("tables/runs/{}/runs.parquet", partition("runs.parquet")), &[]);
    let whole = fs::read(&path).unwrap();
    refused(&["export", text(&path), "--to", "parquet", "-o", text(into)], "are one file");
    assert_eq!(fs::read(&path).unwrap(), whole);
}

#[cfg(unix)]
#[test]
fn tables_of_an_export_are_apart_and_come_together() {
    if !cfg!(feature = "parquet") {
        eprintln!("skipped: this tool was built without Parquet");
        return;
    }
    let (folder, path) = recorded(&[]);
    let at = |table: &str| {
        let folder = folder.at("tables").join(table).join(partition("a.wtrc"));
        fs::create_dir_all(&folder).unwrap();
        folder.join(format!("{table}.parquet"))
    };
    let export = || run(&["export", text(&path), "--to", "parquet", "-o", text(&folder.at("tables"))]);
    let (runs, locations) = (at("runs"), at("locations"));
    let link: [fn(&Path, &Path); 2] = [
        |from, to| fs::hard_link(from, to).unwrap(),
        |from, to| std::os::unix::fs::symlink(from, to).unwrap(),
    ];
    for link in link {
        fs::write(&runs, "old").unwrap();
        link(&runs, &locations);
        let (code, _, errors) = export();
        assert!(code == 1 && errors.contains("are one file"), "{errors}");
        assert_eq!(fs::read(&runs).unwrap(), b"old");
        fs::remove_file(&locations).unwrap();
    }
    // The last table cannot be written: the first ones stay unchanged.
    fs::create_dir(at("losses")).unwrap();
    let (code, _, errors) = export();
    assert!(code == 1 && errors.contains("is a folder"), "{errors}");
    assert_eq!(fs::read(&runs).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.at("tables")).unwrap().count(), 3, "no folder is left");
    assert_eq!(fs::read_dir(runs.parent().unwrap()).unwrap().count(), 1, "no part is left");
}

#[cfg(unix)]
#[test]
fn standard_output_is_not_the_trace() {
    let (folder, path) = recorded(&[]);
    let other = folder.recorded("b.wtrc", &[]);
    let whole = fs::read(&path).unwrap();
    let (file, other) = (text(&path), text(&other));
    for command in [
        &["report", file, "-o", "-"][..],
        &["report", other, "--against", file, "-o", "-"],
        &["decode", file],
        &["info", file],
        &["verify", file],
        &["top", file],
        &["diff", other, file],
        &["export", file, "--to", "perfetto", "-o", "-"],
        &["export", other, "--to", "perfetto", "-o", file],
    ] {
        for is_appended in [true, false] {
            let out = File::options().write(true).append(is_appended).open(&path).unwrap();
            let output = Command::new(cargo_bin("warptrace")).args(command).stdout(out).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success() && errors.contains("and standard output are one file"),
                "{errors}"
            );
            assert_eq!(fs::read(&path).unwrap(), whole, "{command:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_no_file_yet_stays_a_link() {
    let (folder, path) = recorded(&[]);
    let (link, target) = (folder.at("link"), folder.at("target"));
    std::os::unix::fs::symlink("target", &link).unwrap();
    assert_eq!(run(&["decode", text(&path), "-o", text(&link)]).0, 0);
    assert!(link.is_symlink() && target.is_file());
    let circle = folder.at("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    let (code, _, errors) = run(&["decode", text(&path), "-o", text(&circle)]);
    assert!(code == 1 && errors.contains("cannot write") && circle.is_symlink(), "{errors}");
}

#[cfg(unix)]
#[test]
fn folders_made_for_files_that_fail_are_removed() {
    let (folder, path) = recorded(&[]);
    let made = folder.at("made/below");
    for command in [
        &["new", text(&made)][..],
        &["man", "-o", text(&made)],
        #[cfg(feature = "parquet")]
        &["export", text(&path), "--to", "parquet", "-o", &format!("{}/", text(&made))],
    ] {
        let (code, errors) = run_with_room(0, command);
        assert!(code == Some(1) && errors.contains("File too large"), "{command:?}: {errors}");
        assert!(!folder.at("made").exists(), "{command:?}");
    }
    assert!(path.exists());
    fs::create_dir_all(&made).unwrap();
    assert_eq!(run_with_room(0, &["new", text(&made)]).0, Some(1));
    assert!(made.is_dir() && fs::read_dir(&made).unwrap().next().is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_printed_is_an_error() {
    let (folder, path) = recorded(&[]);
    let file = text(&path);
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["decode", "--help"],
        &["info", file],
        &["decode", file],
        &["top", file],
        &["verify", file],
        &["devices"],
        &["completions", "bash"],
        &["export", file, "--to", "perfetto", "-o", "-"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(cargo_bin("warptrace")).args(arguments).stdout(full).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        let said = "cannot write to standard output: No space left on device";
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    }
    refused(&["demo", "--device", "sim", "--width", "16", "-o", "/dev/full"], "cannot write /dev/full: ");
    // A failure to print messages to standard error does not stop the command.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let made = folder.at("made.wtrc");
    let arguments = ["demo", "--device", "auto", "--width", "16", "--depth", "4", "-o", text(&made)];
    let status = Command::new(cargo_bin("warptrace")).args(arguments).stderr(full).status().unwrap();
    assert!(status.success() && made.exists(), "{status}");
}

#[test]
fn a_minus_is_standard_output() {
    let (folder, path) = recorded(&[]);
    let into = |arguments: &[&str]| {
        let output = Command::new(cargo_bin("warptrace"))
            .args(arguments)
            .current_dir(folder.at("."))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let file = text(&path);
    for command in [
        &["decode", file][..],
        &["report", file],
        &["export", file, "--to", "perfetto"],
        &["export", file, "--to", "firefox"],
        &["export", file, "--to", "lcov"],
    ] {
        let printed = into(&[command, &["-o", "-"]].concat());
        into(&[command, &["-o", "out"]].concat());
        assert!(!printed.is_empty() && printed == fs::read(folder.at("out")).unwrap(), "{command:?}");
    }
    assert!(!folder.at("-").exists(), "no file of that name");
}

#[cfg(unix)]
#[test]
fn what_is_being_recorded_is_not_replaced_and_rights_stay() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, path) = recorded(&[]);
    let out = folder.at("out");
    fs::write(&out, "a trace in the making").unwrap();
    let recording = File::options().write(true).open(&out).unwrap();
    recording.lock().unwrap();
    let decode = ["decode", text(&path), "-o", text(&out)];
    refused(&decode, "it is being recorded");
    assert_eq!(fs::read(&out).unwrap(), b"a trace in the making");

    recording.unlock().unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, _, errors) = run(&decode);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_called_so() {
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [text(&pipe), "/dev/zero", "/dev/null"] {
        for reader in ["info", "decode", "verify", "top"] {
            refused(&[reader, path], "it is no file, but a pipe or a device");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_without_a_path_of_its_own_is_written_to() {
    let (_folder, path) = recorded(&[]);
    let (code, decoded, _) = run(&["decode", text(&path)]);
    for output in ["/dev/stdout", "/proc/self/fd/1"] {
        // The test reads the output through a pipe.
        let (written, said, errors) = run(&["decode", text(&path), "-o", output]);
        assert_eq!((written, said.contains(&decoded)), (code, true), "{output}: {errors}");
    }
}

#[test]
fn a_page_has_sources_and_nothing_else_of_the_folder() {
    let folder = Folder::new();
    let home = folder.at("home");
    for (name, is_read) in
        [("k.cu", true), (".ssh/id_rsa", false), (".cache/k.cu", false), ("notes.txt", false)]
    {
        let secret = format!("the inside of {name}");
        fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
        fs::write(home.join(name), &secret).unwrap();
        let path = folder.at("a.wtrc");
        crate::terminal::trace_of(&path, "kernel", name);
        for page in ["page.html", "-"] {
            let output = Command::new(cargo_bin("warptrace"))
                .args(["report", text(&path), "-o", page])
                .current_dir(&home)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            let said = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            let html = if page == "-" { said.clone() } else { fs::read_to_string(home.join(page)).unwrap() };
            assert_eq!(html.contains(&secret), is_read, "{name}");
            let full = home.canonicalize().unwrap().join(name);
            assert_eq!(said.contains(text(&full)), is_read, "{name} is told: {said}");
            assert_eq!(said.contains("Source not read: "), !is_read, "{name}: {said}");
        }
        let report = |page: &str| {
            let arguments = ["report", text(&path), "-o", page];
            Command::new(cargo_bin("warptrace")).args(arguments).current_dir(&home).output().unwrap()
        };
        if is_read {
            fs::create_dir_all(home.join("sub")).unwrap();
            for page in ["k.cu", "sub/../k.cu"] {
                let refused = report(page);
                let errors = String::from_utf8_lossy(&refused.stderr);
                assert!(!refused.status.success() && errors.contains("are one file"), "{errors}");
                assert_eq!(fs::read_to_string(home.join(name)).unwrap(), secret);
            }
        }
    }
}
