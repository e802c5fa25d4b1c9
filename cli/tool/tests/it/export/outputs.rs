//! Outputs: files are written completely or not at all, are reproducible, and errors name the remedy.

use super::{export, mis, perfetto_file};
use crate::support::{Folder, run, text};

#[cfg(feature = "parquet")]
const FORMATS: [&str; 4] = ["parquet", "perfetto", "firefox", "lcov"];
#[cfg(not(feature = "parquet"))]
const FORMATS: [&str; 3] = ["perfetto", "firefox", "lcov"];

#[test]
fn exports_are_the_same_each_time() {
    let folder = Folder::new();
    let trace = mis(&folder);
    for format in FORMATS {
        let [a, b] = ["a", "b"].map(|name| {
            let out = folder.at(name);
            let said = export(&trace, format, &out, &[]);
            assert!(said.starts_with(&format!("{}: ", out.display())) && said.lines().count() == 1, "{said}");
            std::fs::read(out).unwrap()
        });
        assert!(!a.is_empty() && a == b, "{format}");
    }
}

#[test]
fn the_codec_of_a_trace_makes_no_difference() {
    let folder = Folder::new();
    let traces = ["raw", "ecl", "predict"].map(|codec| folder.recorded(codec, &["--codec", codec]));
    for format in FORMATS {
        let files = traces.each_ref().map(|trace| {
            let out = folder.at("out");
            export(trace, format, &out, &[]);
            std::fs::read(out).unwrap()
        });
        assert!(files[0] == files[1] && files[1] == files[2], "{format}");
    }
}

#[test]
fn a_damaged_trace_leaves_no_file_and_an_earlier_one_alone() {
    let folder = Folder::new();
    let trace = mis(&folder);
    let mut bytes = std::fs::read(&trace).unwrap();
    // In the first frame, which the index still finds.
    let at = bytes.windows(4).position(|tag| tag == b"FRAM").unwrap() + 200;
    bytes[at] ^= 0xff;
    let damaged = folder.at("damaged.wtrc");
    std::fs::write(&damaged, bytes).unwrap();
    std::fs::write(folder.at("earlier"), "earlier").unwrap();
    let before = folder.files();
    for format in FORMATS {
        for name in ["earlier", "new"] {
            let (code, output, errors) =
                run(&["export", text(&damaged), "--to", format, "-o", text(&folder.at(name))]);
            assert_eq!((code, output.as_str()), (1, ""), "{format}");
            assert!(errors.contains("cannot export") && errors.contains("FRAM"), "{errors}");
        }
    }
    assert_eq!(std::fs::read(folder.at("earlier")).unwrap(), b"earlier");
    assert_eq!(folder.files().len(), before.len());
}

#[test]
fn a_trace_that_was_cut_short_is_exported_with_a_warning() {
    let folder = Folder::new();
    let bytes = std::fs::read(mis(&folder)).unwrap();
    let cut = folder.at("cut.wtrc");
    std::fs::write(&cut, &bytes[..bytes.len() * 3 / 4]).unwrap();
    for format in FORMATS {
        let out = folder.at("out");
        let (code, _, errors) = run(&["export", text(&cut), "--to", format, "-o", text(&out)]);
        assert_eq!(code, 0, "{format}: {errors}");
        assert!(errors.contains("only the first") && errors.contains("warning"), "{format}: {errors}");
        assert!(!std::fs::read(out).unwrap().is_empty());
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let folder = Folder::new();
    let trace = mis(&folder);
    let fails = |arguments: &[&str], expected_code: i32, words: &str| {
        let (code, output, errors) = run(&[&["export", text(&trace)], arguments].concat());
        assert_eq!((code, output.as_str()), (expected_code, ""), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    let out = folder.at("out");
    let out = text(&out);
    fails(&["--to", "xml", "-o", out], 2, "possible values: parquet, perfetto, firefox, lcov");
    fails(&["--to", "perfetto"], 2, "--output");
    fails(&["--to", "perfetto", "-o", out, "--events"], 1, "`--events` is for `--to parquet`");
    fails(&["--to", "perfetto", "-o", out, "--weight", "idle"], 1, "`--weight` is for `--to firefox`");
    fails(&["--to", "perfetto", "-o", out, "--kernel", "no"], 1, "no kernel `no`; it has mis_init");
    fails(&["--to", "lcov", "-o", out, "--launch", "99"], 1, "no launch 99");
    fails(&["--to", "perfetto", "-o", text(&folder.at(""))], 1, "is a folder: name a file");
    fails(&["--to", "perfetto", "-o", text(&folder.at("no/out"))], 1, "there is no folder");
    fails(&["--to", "perfetto", "-o", text(&trace)], 1, "are one file");
    assert!(run(&["info", text(&trace)]).0 == 0, "the trace is still there");
    assert!(!folder.files().contains(&"out".to_owned()));
}

#[test]
fn warps_that_were_not_recorded_are_told() {
    let folder = Folder::new();
    let trace = folder.recorded("part.wtrc", &["--blocks", "0..2"]);
    let out = folder.at("out");
    let export = |chosen: &[&str]| {
        let (code, _, errors) =
            run(&[&["export", text(&trace), "--to", "perfetto", "-o", text(&out)], chosen].concat());
        assert_eq!(code, 0);
        errors
    };
    assert_eq!(export(&[]), "note: 16 warps were not chosen to be recorded, and are not in the export\n");
    assert_eq!(export(&["--block", "1"]), "");
    let note = "note: 2 warps were not chosen to be recorded, and are not in the export\n";
    assert_eq!(export(&["--warp", "3"]), note);
    let tracks = perfetto_file::tracks(&out);
    let about = perfetto_file::about(&tracks);
    assert_eq!(about["warps_not_chosen_to_be_recorded"], "2");
    assert_eq!(about["whole"], "true");
    assert_eq!(about["selection"], "--warp 3");
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_as_it_is() {
    let folder = Folder::new();
    let trace = mis(&folder);
    for format in FORMATS {
        let (code, output, errors) = run(&["export", text(&trace), "--to", format, "-o", "/dev/null"]);
        assert_eq!((code, output.as_str(), errors.as_str()), (0, "", ""), "{format}");
    }
}
