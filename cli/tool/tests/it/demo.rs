//! `warptrace demo`.

use crate::support::{Folder, printed, run, text};

#[test]
fn records_and_says_what_it_did() {
    let folder = Folder::new();
    let (path, (code, output, errors)) = folder.demo("a.wtrc", &[]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(output.starts_with("recorded   mandelbrot on "), "{output}");
    let lines: Vec<&str> = output.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "recorded",
            "input",
            "events",
            "on device",
            "in file",
            "memory",
            "kernels",
            "encoding",
            "copy",
            "write",
            "whole run",
            "result",
            "trace"
        ]
    );
    assert!(output.contains("every pixel as on the CPU (1,024)"), "{output}");
    assert!(path.metadata().unwrap().len() > 0);
    assert_eq!(folder.files(), ["a.wtrc"], "nothing but the trace is left");
}

#[test]
fn every_way_to_record_verifies() {
    let folder = Folder::new();
    for (name, more) in [
        ("raw", &["--codec", "raw"][..]),
        ("ecl", &["--codec", "ecl"]),
        ("parameters", &["--codec", "ecl:6,3,7"]),
        ("predict", &["--codec", "predict"]),
        ("predict beside raw", &["--codec", "predict", "--dual"]),
        ("four slots", &["--codec", "predict:2"]),
        ("counted", &["--codec", "predict", "--counted"]),
        ("counted beside raw", &["--codec", "predict", "--counted", "--dual"]),
        ("dual", &["--dual"]),
        ("small chunks", &["--chunk-bytes", "512"]),
        ("not compressed", &["--zstd", "0"]),
        ("seed", &["--sim-seed", "7"]),
    ] {
        let (path, (code, _, errors)) = folder.demo(name, more);
        assert_eq!((code, errors.as_str()), (0, ""), "{name}");
        let output = printed(&["verify", text(&path)]);
        assert!(output.contains("no problem found"), "{name}: {output}");
    }
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let folder = Folder::new();
    let decoded = |name: &str, more: &[&str]| {
        let (path, (code, _, errors)) = folder.demo(name, more);
        assert_eq!((code, errors.as_str()), (0, ""), "{name}");
        run(&["decode", text(&path), "--format", "csv"]).1
    };
    let first = decoded("a.wtrc", &["--sim-seed", "1"]);
    assert!(first.lines().count() > 100);
    assert_eq!(first, decoded("b.wtrc", &["--sim-seed", "1", "--codec", "raw"]));
    assert_eq!(first, decoded("c.wtrc", &["--sim-seed", "1", "--codec", "predict"]));
    assert_eq!(first, decoded("d.wtrc", &["--sim-seed", "1", "--codec", "predict", "--counted"]));
}

#[test]
fn raw_is_not_compared_with_itself() {
    let folder = Folder::new();
    let device_line = |codec: &str| {
        let (_, (code, output, _)) = folder.demo("a.wtrc", &["--codec", codec]);
        assert_eq!(code, 0);
        output.lines().find(|line| line.starts_with("on device")).unwrap().to_owned()
    };
    assert!(device_line("raw").ends_with(", six bytes an event"), "{}", device_line("raw"));
    assert!(device_line("ecl").ends_with(" times less than raw"), "{}", device_line("ecl"));
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    let folder = Folder::new();
    let (_, (code, output, errors)) = folder.demo("no/such/folder/a.wtrc", &[]);
    assert_eq!((code, output.as_str()), (1, ""));
    assert!(errors.starts_with("error: cannot create "), "{errors}");
    assert!(errors.contains("no/such/folder/a.wtrc"), "{errors}");
}

#[test]
fn devices_lists_the_simulator() {
    let output = printed(&["devices"]);
    assert!(output.lines().any(|line| line.starts_with("sim ")), "{output}");
}
