//! Files that are not traces, and incomplete traces.

use crate::support::{Folder, recorded, run, text};

const READERS: [&str; 10] =
    ["info", "decode", "verify", "top", "lines", "loops", "warps", "paths", "edges", "stats"];

#[test]
fn a_missing_file_is_named_once() {
    for reader in READERS {
        let (code, output, errors) = run(&[reader, "no such file.wtrc"]);
        assert_eq!((code, output.as_str()), (1, ""), "{reader}");
        assert!(errors.starts_with("error: cannot open no such file.wtrc: "), "{reader}: {errors}");
        assert_eq!(errors.matches("No such file").count(), 1, "{reader} repeats itself: {errors}");
        assert_eq!(errors.lines().count(), 1, "{reader}: {errors}");
    }
}

#[test]
fn what_is_no_trace_is_refused_with_offset_or_field() {
    let folder = Folder::new();
    let whole = std::fs::read(folder.recorded("a.wtrc", &[])).unwrap();
    let mut newer = whole.clone();
    newer[8] = 99;
    for (name, bytes, part) in [
        ("empty", &[][..], "empty"),
        ("text", b"hello, this is no trace at all, only text", "not a .wtrc trace"),
        ("zeros", &[0; 4096], "not a .wtrc trace"),
        ("newer", &newer, "version"),
        ("short", &whole[..20], "20"),
    ] {
        let path = folder.at(name);
        std::fs::write(&path, bytes).unwrap();
        for reader in READERS {
            let (code, output, errors) = run(&[reader, text(&path)]);
            assert_eq!((code, output.as_str()), (1, ""), "{reader} {name}");
            assert!(errors.starts_with(&format!("error: cannot open {}", text(&path))), "{reader}: {errors}");
            assert!(errors.contains(part) || name == "empty" || name == "short", "{reader} {name}: {errors}");
            assert!(!errors.contains("panicked"), "{errors}");
        }
    }
}

#[test]
fn a_truncated_trace_gives_its_beginning_and_says_so() {
    let (_folder, path) = recorded(&[]);
    let all = run(&["decode", text(&path)]).1;
    let bytes = std::fs::read(&path).unwrap();
    // Removes the end of the file, which leads to the index.
    std::fs::write(&path, &bytes[..bytes.len() - 8]).unwrap();

    let (code, output, errors) = run(&["decode", text(&path)]);
    assert_eq!(code, 0, "{errors}");
    assert!(all.starts_with(&output), "what is there is the beginning of what was");
    assert!(errors.starts_with("warning: "), "{errors}");

    let (code, output, _) = run(&["verify", text(&path)]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("not whole"), "{output}");
}

#[test]
fn a_flipped_byte_is_found() {
    let (_folder, path) = recorded(&["--zstd", "0"]);
    let mut bytes = std::fs::read(&path).unwrap();
    let (code, ..) = run(&["verify", text(&path)]);
    assert_eq!(code, 0);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&path, &bytes).unwrap();
    let (code, output, errors) = run(&["verify", text(&path)]);
    assert!(code == 3 || code == 1, "{code}: {output}{errors}");
    assert!(!format!("{output}{errors}").contains("no problem found"), "{output}");
}
