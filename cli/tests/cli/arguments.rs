//! Bad arguments: exit code 2, nothing on standard output, and a message from which to type the right ones.

use crate::support::{Folder, run, text};

#[test]
fn a_bad_argument_says_what_to_type() {
    for (arguments, part) in [
        (&["frobnicate"][..], "--help"),
        (&["record"], "fractal"),
        (&["record", "mandelbrot", "-o", "x"], "--help"),
        (&["record", "fractal"], "--output <FILE>"),
        (&["record", "fractal", "-o", "x", "--device", "gpu"], "`auto`, `sim`, `cuda` or `cuda:N`"),
        (&["record", "fractal", "-o", "x", "--device", "cuda:first"], "`warptrace devices`"),
        (&["record", "fractal", "-o", "x", "--codec", "zip"], "raw, ecl, predict"),
        (&["record", "fractal", "-o", "x", "--predict", "1"], "2 to 10"),
        (&["record", "fractal", "-o", "x", "--predict", "many"], "as in 5"),
        (&["record", "fractal", "-o", "x", "--ecl", "9,2"], "9,2,10"),
        (&["record", "fractal", "-o", "x", "--ecl", "99,2,10"], "must be 4 to 16"),
        (&["record", "fractal", "-o", "x", "--width", "0"], "1..=32768"),
        (&["record", "fractal", "-o", "x", "--width", "many"], "invalid digit"),
        (&["record", "fractal", "-o", "x", "--depth", "0"], "0"),
        (&["record", "fractal", "-o", "x", "--region", "1,2"], "-0.74395,-0.10461,0.00578"),
        (&["record", "fractal", "-o", "x", "--region", "0,0,-1"], "side above 0"),
        (&["record", "fractal", "-o", "x", "--region", "0,0,inf"], "three numbers"),
        (&["record", "fractal", "-o", "x", "--zstd", "20"], "0..=19"),
        (&["record", "fractal", "-o", "x", "--memory", "lots"], "as in 64MiB, 1GiB or 512M"),
        (&["record", "fractal", "-o", "x", "--memory", "64MB"], "as in 64MiB, 1GiB or 512M"),
        (&["record", "fractal", "-o", "x", "--memory", "99999999TiB"], "2^64"),
        (&["record", "nbody", "-o", "x", "--bodies", "0"], "1..="),
        (&["record", "nbody", "-o", "x", "--steps", "0"], "1.."),
        (&["record", "nbody", "-o", "x", "--sources", "0"], "1.."),
        (&["record", "matmul", "-o", "x", "--size", "0"], "8..=16384"),
        (&["record", "matmul", "-o", "x", "--size", "16392"], "8..=16384"),
        (&["record", "stress", "-o", "x", "--walks", "0"], "1..=1073741824"),
        (&["record", "stress", "-o", "x", "--rounds", "0"], "1.."),
        (&["record", "stress", "-o", "x", "--block", "48"], "a multiple of 32"),
        (&["record", "stress", "-o", "x", "--block", "2048"], "32 to 1024"),
        (&["record", "mis", "-o", "x", "--graph", "road"], "as in road:4096"),
        (&["record", "mis", "-o", "x", "--graph", "amazon:many"], "as in amazon:4096"),
        (&["record", "mst", "-o", "x", "--grid", "192"], "like 192x256"),
        (&["record", "mst", "-o", "x", "--grid", "192x48"], "a multiple of 32"),
        (&["record", "dmr", "-o", "x", "--points", "2"], "3..="),
        (&["record", "dmr", "-o", "x", "--mesh", "m", "--points", "9"], "cannot be used with"),
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
    let path = folder.recorded("a.wtrc", &[]);
    let before = std::fs::read(&path).unwrap();
    for (more, part) in [
        (["--codec", "raw", "--ecl", "9,2,10"], "--codec ecl"),
        (["--codec", "ecl", "--predict", "6"], "--codec predict"),
        (["--policy", "stop", "--open-runs", "--dual"], "--policy stream"),
        (["--policy", "ring", "--open-runs", "--dual"], "--policy stream"),
        (["--zstd", "1", "--chunk-bytes", "1000"], "a power of two from 512 to 1048576"),
    ] {
        let (_, (code, output, errors)) = folder.record("a.wtrc", &more);
        assert!((1..=2).contains(&code), "{more:?}: {code}");
        assert_eq!(output, "", "{more:?}");
        assert!(errors.contains(part), "{more:?}: {errors}");
        assert!(std::fs::read(&path).unwrap() == before, "{more:?} destroyed {}", text(&path));
    }
}
