//! Bad arguments: exit code 2, no standard output, and a message that names the right arguments.

use crate::support::{Folder, run, text};

#[test]
fn a_bad_argument_says_what_to_type() {
    for (arguments, part) in [
        (&["frobnicate"][..], "--help"),
        (&["demo"], "--output <FILE>"),
        (&["demo", "-o", "x", "--device", "gpu"], "`auto`, `sim`, `cuda` or `cuda:N`"),
        (&["demo", "-o", "x", "--device", "cuda:first"], "`warptrace devices`"),
        (&["demo", "-o", "x", "--codec", "zip"], "raw, ecl or predict"),
        (&["demo", "-o", "x", "--codec", "predict:1"], "2 to 10"),
        (&["demo", "-o", "x", "--codec", "predict:many"], "predict:6"),
        (&["demo", "-o", "x", "--codec", "ecl:9,2"], "ecl:9,2,10"),
        (&["demo", "-o", "x", "--codec", "ecl:99,2,10"], "must be 4 to 16"),
        (&["demo", "-o", "x", "--width", "0"], "1..=32768"),
        (&["demo", "-o", "x", "--width", "many"], "invalid digit"),
        (&["demo", "-o", "x", "--depth", "0"], "0"),
        (&["demo", "-o", "x", "--zstd", "20"], "0..=19"),
        (&["demo", "-o", "x", "--memory", "lots"], "as in 64MiB, 1GiB or 512M"),
        (&["demo", "-o", "x", "--memory", "64MB"], "as in 64MiB, 1GiB or 512M"),
        (&["demo", "-o", "x", "--memory", "99999999TiB"], "2^64"),
        (&["decode"], "<FILE>"),
        (&["decode", "x", "--format", "xml"], "text, jsonl, csv"),
        (&["decode", "x", "--block", "a"], "as in 12 or 3,4"),
        (&["decode", "x", "--block", "1,2,3,4"], "one to three"),
        (&["decode", "x", "--warp", "-1"], "--help"),
        (&["info"], "<FILE>"),
        (&["verify"], "<FILE>"),
    ] {
        let (code, output, errors) = run(arguments);
        assert_eq!((code, output.as_str()), (2, ""), "{arguments:?}: {errors}");
        assert!(errors.contains(part), "{arguments:?} does not say `{part}`: {errors}");
    }
}

#[test]
fn a_bad_combination_leaves_an_existing_trace_alone() {
    let folder = Folder::new();
    let path = folder.demo("a.wtrc", &[]).0;
    let before = std::fs::read(&path).unwrap();
    for (more, part) in [
        (["--policy", "stop", "--stall-limit", "3"], "choose the policy `stream`"),
        (["--policy", "ring", "--stall-limit", "3"], "choose the policy `stream`"),
        (["--after", "1:3", "--counted", "--dual"], "leave `counted` out"),
        (["--zstd", "1", "--chunk-bytes", "1000"], "a power of two from 512 to 1048576"),
    ] {
        let (_, (code, output, errors)) = folder.demo("a.wtrc", &more);
        assert!((1..=2).contains(&code), "{more:?}: {code}");
        assert_eq!(output, "", "{more:?}");
        assert!(errors.contains(part), "{more:?}: {errors}");
        assert!(std::fs::read(&path).unwrap() == before, "{more:?} destroyed {}", text(&path));
    }
}
