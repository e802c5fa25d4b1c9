//! `warptrace record`.

use crate::support::{Folder, run, text};

#[test]
fn records_and_says_what_it_did() {
    let folder = Folder::new();
    let (path, (code, output, errors)) = folder.record("a.wtrc", &[]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(output.starts_with("recorded   fractal on "), "{output}");
    for line in ["events ", "on device ", "in file ", "kernel ", "trace "] {
        assert!(output.lines().any(|found| found.starts_with(line)), "no line `{line}` in\n{output}");
    }
    assert!(path.metadata().unwrap().len() > 0);
    assert_eq!(folder.files(), ["a.wtrc"], "nothing but the trace is left");
}

#[test]
fn every_way_to_record_verifies() {
    let folder = Folder::new();
    for (name, more) in [
        ("raw", &["--codec", "raw"][..]),
        ("ecl", &["--codec", "ecl"]),
        ("parameters", &["--ecl", "6,3,7"]),
        ("shared", &["--tables", "shared"]),
        ("dual", &["--dual"]),
        ("small chunks", &["--chunk-bytes", "512"]),
        ("not compressed", &["--zstd", "0"]),
        ("seed", &["--seed", "7"]),
    ] {
        let path = folder.recorded(name, more);
        let (code, output, errors) = run(&["verify", text(&path)]);
        assert_eq!((code, errors.as_str()), (0, ""), "{name}: {output}");
        assert!(output.contains("no problem found"), "{name}: {output}");
    }
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let folder = Folder::new();
    let decoded = |name: &str, more: &[&str]| {
        let path = folder.recorded(name, more);
        run(&["decode", text(&path), "--format", "csv"]).1
    };
    let first = decoded("a.wtrc", &["--seed", "1"]);
    assert!(first.lines().count() > 100);
    assert_eq!(first, decoded("b.wtrc", &["--seed", "1", "--codec", "raw"]));
}

#[test]
fn tracing_leaves_the_picture_alone() {
    let folder = Folder::new();
    let picture = |name: &str, more: &[&str]| {
        let png = folder.at(&format!("{name}.png"));
        folder.recorded(name, &[more, &["--picture", text(&png)]].concat());
        std::fs::read(png).unwrap()
    };
    let compressed = picture("ecl", &[]);
    assert_eq!(compressed[..4], *b"\x89PNG");
    assert!(compressed == picture("raw", &["--codec", "raw"]), "the pictures differ");
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    let folder = Folder::new();
    let (_, (code, output, errors)) = folder.record("no/such/folder/a.wtrc", &[]);
    assert_eq!((code, output.as_str()), (1, ""));
    assert!(errors.starts_with("error: cannot create "), "{errors}");
    assert!(errors.contains("no/such/folder/a.wtrc"), "{errors}");
}

#[test]
fn devices_lists_the_simulator() {
    let (code, output, errors) = run(&["devices"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(output.lines().any(|line| line.starts_with("sim ")), "{output}");
}
