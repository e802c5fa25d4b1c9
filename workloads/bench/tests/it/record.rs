//! `record` with each program.

use crate::support::{Folder, SMALL, bench, text, verified};

/// Each program with a small input, and expected text about input and result.
const PROGRAMS: [(&str, &[&str], &str, &str); 10] = [
    ("fractal", &SMALL, "32 x 32, depth 20", "every pixel as on the CPU"),
    (
        "nbody",
        &["--bodies", "100", "--steps", "3"],
        "100 bodies, 3 steps",
        "from double precision: positions",
    ),
    ("mis", &["--graph", "road:100"], "road:100: 100 nodes, ", "independent, maximal, as on the CPU"),
    ("mis", &["--graph", "internet:200", "--seed", "5"], "internet:200: 200 nodes, ", "of 200 nodes"),
    (
        "mst",
        &["--graph", "amazon:64", "--random-weights"],
        "amazon:64: 64 nodes, ",
        "Kruskal's forest: 63 edges",
    ),
    (
        "nbody",
        &["--bodies", "70", "--sources", "9"],
        "70 bodies x 9 sources, 2 steps",
        "from double precision: positions",
    ),
    ("matmul", &["--size", "72"], "72 x 72", "exact, by Freivalds' check (5,184 elements)"),
    ("triad", &["--elements", "700", "--grid", "2x64"], "700 elements, 1 pass", "exact: 700 elements"),
    (
        "stress",
        &["--walks", "70", "--rounds", "4", "--block", "64"],
        "70 walks, 4 rounds",
        "every walk as on the CPU",
    ),
    ("dmr", &["--points", "40"], "random: 40 points, 75 triangles", "conforming and Delaunay"),
];

#[test]
fn every_program_is_recorded_checked_and_verified() {
    let folder = Folder::new();
    for (program, arguments, input, result) in PROGRAMS {
        for codec in [
            &["--codec", "raw"][..],
            &["--codec", "ecl", "--dual"],
            &["--codec", "predict", "--dual"],
            &["--codec", "predict", "--counted", "--dual"],
        ] {
            let arguments = [arguments, codec].concat();
            let (path, (code, output, errors)) = folder.record(program, "a.wtrc", &arguments);
            assert_eq!((code, errors.as_str()), (0, ""), "{program} {arguments:?}");
            assert!(output.starts_with(&format!("recorded   {program} on ")), "{output}");
            for part in [input, result] {
                assert!(output.contains(part), "{program}: no `{part}` in\n{output}");
            }
            let trace = verified(&path);
            let from_here = |file: &str| file.contains(&format!("workloads/kernels/src/{program}"));
            assert!(
                trace.metadata().kernels.iter().all(|kernel| from_here(&kernel.source_file)),
                "{program}"
            );
        }
    }
}

#[test]
fn options_are_in_the_trace() {
    let folder = Folder::new();
    let property = |program: &str, more: &[&str], name: &str| {
        let (path, (code, _, errors)) = folder.record(program, "a.wtrc", more);
        assert_eq!((code, errors.as_str()), (0, ""));
        let trace = verified(&path);
        let pairs = &trace.metadata().properties;
        pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    assert_eq!(property("nbody", &["--bodies", "33"], "bodies").as_deref(), Some("33"));
    assert_eq!(property("nbody", &["--bodies", "3", "--seed", "9"], "seed").as_deref(), Some("9"));
    assert_eq!(property("nbody", &["--bodies", "3", "--sources", "2"], "sources").as_deref(), Some("2"));
    assert_eq!(property("nbody", &["--bodies", "3"], "sources"), None);
    assert_eq!(property("matmul", &["--size", "8", "--seed", "9"], "seed").as_deref(), Some("9"));
    assert_eq!(property("stress", &["--walks", "3", "--seed", "9"], "seed").as_deref(), Some("9"));
    assert_eq!(property("stress", &["--walks", "3", "--block", "32"], "block").as_deref(), Some("32"));
    assert_eq!(property("triad", &["--elements", "3", "--passes", "2"], "passes").as_deref(), Some("2"));
    assert_eq!(property("mis", &["--graph", "road:64"], "graph").as_deref(), Some("road:64"));
    let command = property("mis", &["--graph", "road:64"], "command").unwrap();
    assert!(
        command.starts_with("warptrace-bench record mis ") && command.contains(" --graph road:64"),
        "{command}"
    );
    assert_eq!(property("mst", &["--graph", "road:64", "--grid", "2x64"], "grid").as_deref(), Some("2x64"));
    assert_eq!(property("mst", &["--graph", "road:64"], "grid"), None);
    assert_eq!(property("dmr", &["--points", "20", "--angle", "25"], "angle").as_deref(), Some("25"));
}

#[test]
fn a_grid_is_the_one_of_the_launches() {
    let folder = Folder::new();
    for program in ["mis", "mst", "dmr"] {
        let (path, (code, ..)) = folder.record(program, "a.wtrc", &["--grid", "3x64"]);
        assert_eq!(code, 0);
        let trace = verified(&path);
        assert!(trace.launches().len() > 1);
        assert!(trace.launches().any(|launch| (launch.grid()[0], launch.block()[0]) == (3, 64)), "{program}");
    }
}

#[test]
fn graphs_and_meshes_come_from_files() {
    let folder = Folder::new();
    let (graph, mesh) = (folder.at("square.gr"), folder.at("square"));
    std::fs::write(&graph, "p sp 4 4\na 1 2 5\na 2 3 6\na 3 4 7\na 4 1 8\n").unwrap();
    std::fs::write(mesh.with_extension("node"), "4 2 0 0\n1 0 0\n2 9 0\n3 9 9\n4 0 9\n").unwrap();
    std::fs::write(mesh.with_extension("ele"), "2 3 0\n1 1 2 3\n2 1 3 4\n").unwrap();
    let output = |program: &str, more: &[&str]| {
        let (_, (code, output, errors)) = folder.record(program, "a.wtrc", more);
        assert_eq!((code, errors.as_str()), (0, ""));
        output
    };
    assert!(output("mis", &["--graph", text(&graph)]).contains("2 of 4 nodes"));
    assert!(output("mst", &["--graph", text(&graph)]).contains("3 edges, weight 18"));
    assert!(output("dmr", &["--mesh", text(&mesh)]).contains("4 points, 2 triangles"));
}

#[test]
fn what_cannot_be_loaded_is_named_and_leaves_nothing() {
    let folder = Folder::new();
    let broken = folder.at("broken.gr");
    std::fs::write(&broken, "p sp 4 2\na 1 9 5\na 1 2 3\n").unwrap();
    for (program, arguments, parts) in [
        ("mis", ["--graph", "no such file.gr"], ["no such file.gr", "road:NODES"]),
        ("mst", ["--graph", text(&broken)], ["broken.gr", "line 2"]),
        ("mis", ["--graph", "road:2"], ["cannot generate road:2", "16 to"]),
        ("dmr", ["--mesh", "no/such/mesh"], ["no/such/mesh", "cannot load the mesh"]),
        ("nbody", ["--sources", "9999"], ["--sources is 9999", "there are 2000 bodies"]),
        ("matmul", ["--size", "12"], ["size is 12", "a multiple of 8"]),
        ("dmr", ["--angle", "60"], ["angle is 60", "at most 34"]),
    ] {
        let (path, (code, output, errors)) = folder.record(program, "none.wtrc", &arguments);
        assert_eq!((code, output.as_str()), (1, ""), "{arguments:?}");
        for part in parts {
            assert!(errors.contains(part), "{arguments:?}: no `{part}` in {errors}");
        }
        assert!(!path.exists() || arguments[0] == "--angle", "{arguments:?}");
    }
}

fn events_of(folder: &Folder, program: &str, more: &[&str]) -> String {
    let (path, (code, output, errors)) = folder.record(program, "a.wtrc", more);
    assert_eq!((code, errors.as_str()), (0, ""));
    verified(&path);
    let line = output.lines().find_map(|line| line.strip_prefix("events")).unwrap();
    line.trim().to_owned()
}

#[test]
fn events_are_as_many_as_the_formulas_say() {
    let folder = Folder::new();
    // Eight warps, each with ENTER, 16 steps, and four stored quadrants: 128^2 / 2048 * (128 / 8 + 9).
    assert_eq!(events_of(&folder, "matmul", &["--size", "128"]), "200");
    // Four warps with one ENTER each. Each of the 128 lanes has a first element, and 72 lanes in three warps
    // have a second.
    assert_eq!(events_of(&folder, "triad", &["--elements", "200", "--grid", "2x64"]), "11");
    // One block of four warps, three with bodies and two with lanes without one: 2 * 4 + 2 * 2 + 3 * (9 + 2).
    assert_eq!(events_of(&folder, "nbody", &["--bodies", "70", "--sources", "9", "--steps", "1"]), "45");
}

#[test]
fn walks_are_checked_only_if_asked_for() {
    let folder = Folder::new();
    let walks = ["--walks", "40", "--rounds", "3"];
    let output = |more: &[&str]| {
        let (_, (code, output, errors)) = folder.record("stress", "a.wtrc", &[&walks[..], more].concat());
        assert_eq!((code, errors.as_str()), (0, ""));
        output
    };
    assert!(output(&[]).contains("lanes at trace points)"));
    assert!(!output(&["--no-check"]).contains("result"));
}

#[test]
fn the_check_can_be_left_out() {
    let folder = Folder::new();
    let (_, (code, output, _)) = folder.record("fractal", "a.wtrc", &[&SMALL[..], &["--no-check"]].concat());
    assert_eq!(code, 0);
    assert!(!output.contains("result"), "{output}");
}

#[test]
fn tracing_leaves_the_picture_alone() {
    let folder = Folder::new();
    let picture = |name: &str, more: &[&str]| {
        let png = folder.at(&format!("{name}.png"));
        let (_, (code, ..)) =
            folder.record("fractal", name, &[&SMALL[..], more, &["--picture", text(&png)]].concat());
        assert_eq!(code, 0);
        std::fs::read(png).unwrap()
    };
    let compressed = picture("ecl", &[]);
    assert_eq!(compressed[..4], *b"\x89PNG");
    assert!(compressed == picture("raw", &["--codec", "raw"]), "the pictures differ");
}

#[test]
fn a_bad_argument_says_what_to_type() {
    for (arguments, part) in [
        (&["record"][..], "fractal"),
        (&["record", "mandelbrot", "-o", "x"], "--help"),
        (&["record", "fractal", "-o", "x", "--region", "1,2"], "-0.74395,-0.10461,0.00578"),
        (&["record", "fractal", "-o", "x", "--region", "0,0,-1"], "side above 0"),
        (&["record", "fractal", "-o", "x", "--region", "0,0,inf"], "three numbers"),
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
    ] {
        let (code, output, errors) = bench(arguments);
        assert_eq!((code, output.as_str()), (2, ""), "{arguments:?}: {errors}");
        assert!(errors.contains(part), "{arguments:?} does not say `{part}`: {errors}");
    }
}

#[test]
fn loops_that_are_counted_as_if_in_lock_step_have_no_times() {
    let folder = Folder::new();
    let (_, (code, _, errors)) =
        folder.record("mis", "a.wtrc", &["--graph", "road:64", "--times", "runs", "--counted"]);
    assert!(code == 2 || code == 1, "{code}");
    assert!(errors.contains("leave it or `times` out"), "{errors}");
}
