//! Writes without enough space: existing files stay.

use std::fs;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use crate::support::{Folder, recorded, run, text};

fn run_with_little_room(arguments: &[&str]) -> (Option<i32>, String) {
    run_with_room(4, arguments)
}

pub(crate) fn run_with_room(kib: u32, arguments: &[&str]) -> (Option<i32>, String) {
    let limited = format!("ulimit -f {kib}; exec \"$@\"");
    let output = Command::new("bash")
        .args(["-c", &limited, "bash"])
        .arg(cargo_bin("warptrace"))
        .args(arguments)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_write_that_fails_is_an_error_and_leaves_what_was_there() {
    let (folder, path) = recorded(&[]);
    let out = folder.at("out");
    fs::write(&out, "what was there").unwrap();
    let before = folder.files().len();
    for command in [&["decode"][..], &["report"], &["export", "--to", "perfetto"]] {
        let arguments = [command, &[text(&path), "-o", text(&out)]].concat();
        let (code, errors) = run_with_little_room(&arguments);
        assert_eq!(code, Some(1), "{command:?}: {errors}");
        assert!(errors.contains(text(&out)) && errors.contains("File too large"), "{command:?}: {errors}");
        assert_eq!(fs::read(&out).unwrap(), b"what was there", "{command:?}");
        assert_eq!(folder.files().len(), before, "{command:?} left something: {:?}", folder.files());
    }
    let (code, errors) = run_with_little_room(&["man", "-o", text(&folder.at("pages"))]);
    assert!(code == Some(1) && errors.contains("File too large"), "{errors}");
}

/// Recordings that fail before they begin rename the existing trace, whatever the reason.
#[test]
fn a_recording_that_does_not_begin_sets_the_trace_that_was_there_aside() {
    let (folder, path) = recorded(&[]);
    let aside = path.with_extension("earlier.wtrc");
    let whole = fs::read(&path).unwrap();
    let demo = ["demo", "--device", "sim"];
    let refused = [&demo[..], &["--width", "4096", "--memory", "64MiB", "-o", text(&path)]].concat();
    let large = [&demo[..], &["--width", "128", "--codec", "raw", "--zstd", "0", "-o", text(&path)]].concat();
    for (room, command, why) in [(None, refused, "takes at least"), (Some(16), large, "file too large")] {
        let (code, errors) = match room {
            Some(room) => run_with_room(room, &command),
            None => {
                let (code, _, errors) = run(&command);
                (Some(code), errors)
            }
        };
        assert!(code == Some(1) && errors.contains(why), "{errors}");
        let named = format!("nothing was recorded; the earlier trace of this name is now {}", text(&aside));
        assert!(errors.contains(&named), "{errors}");
        assert!(fs::read(&aside).unwrap() == whole && !path.exists());
        assert_eq!(folder.files().len(), 1, "{:?}", folder.files());
        fs::rename(&aside, &path).unwrap();
    }
    // A new file contains the reason.
    let new = folder.at("new.wtrc");
    let refused = [&demo[..], &["--width", "4096", "--memory", "64MiB", "-o", text(&new)]].concat();
    let (code, _, errors) = run(&refused);
    assert!(code == 1 && !errors.contains("as it was"), "{errors}");
    assert!(run(&["info", text(&new)]).1.contains("takes at least"), "{:?}", run(&["info", text(&new)]));
}

/// Uses a full disk, where a file system can be mounted.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_trace_that_was_there() {
    let folder = Folder::new();
    let disk = folder.at("disk");
    fs::create_dir(&disk).unwrap();
    let whole = fs::read(folder.recorded("a.wtrc", &[])).unwrap();
    let mounted = "mount -t tmpfs -o size=256k tmpfs \"$1\" && cp \"$2\" \"$1/a.wtrc\" || exit 99; \
        head -c 200k /dev/urandom > \"$1/other\"; \"$3\" demo --device sim --width 128 --codec raw --zstd 0 -o \"$1/a.wtrc\"; \
        code=$?; cmp \"$1/a.earlier.wtrc\" \"$2\" && ls -A \"$1\" && exit $code";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "bash", "-c", mounted, "bash"])
        .args([&disk, &folder.at("a.wtrc")])
        .arg(cargo_bin("warptrace"))
        .output();
    let Some(output) = output.ok().filter(|output| ![Some(99), None].contains(&output.status.code())) else {
        eprintln!("not tested: no file system can be mounted here");
        return;
    };
    let errors = String::from_utf8(output.stderr).unwrap();
    if errors.contains("unshare failed") {
        eprintln!("not tested: no file system can be mounted here");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("No space left on device") && errors.contains("a.earlier.wtrc"), "{errors}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a.earlier.wtrc\nother\n");
    assert!(whole.len() < 40 << 10, "it finds room beside the other file");
}

#[test]
fn a_recording_that_finds_no_room_is_named_and_leaves_no_husk() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    let demo = ["demo", "--device", "sim", "--width", "16", "-o", text(&path)];
    for old in [None, Some("an earlier trace")] {
        if let Some(old) = old {
            fs::write(&path, old).unwrap();
        }
        let (code, errors) = run_with_room(0, &demo);
        let named = format!("cannot write {}: ", text(&path));
        assert!(code == Some(1) && errors.contains(&named), "{errors}");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), old);
    }
}

#[test]
fn manual_pages_that_find_no_room_leave_the_old_ones() {
    let folder = Folder::new();
    let pages = folder.at("man1");
    fs::create_dir(&pages).unwrap();
    let old = pages.join("warptrace-demo.1");
    fs::write(&old, "old").unwrap();
    let (code, errors) = run_with_little_room(&["man", "-o", text(&pages)]);
    assert!(code == Some(1) && errors.contains("cannot write manual pages to"), "{errors}");
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
}
