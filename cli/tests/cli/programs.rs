//! `warptrace record` of each program.

use serde_json::Value;

use crate::support::{Folder, run, text};

/// Each program on a small input, and what it says of input and result.
const PROGRAMS: [(&str, &[&str], &str, &str); 10] = [
    ("fractal", &["--width", "32", "--depth", "20"], "32 x 32 pixels, depth 20", "every pixel as on the CPU"),
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
    ("matmul", &["--size", "72"], "matrices of 72 x 72", "exact, by Freivalds' check (5,184 elements)"),
    ("triad", &["--elements", "700", "--grid", "2x64"], "700 elements, 1 pass", "exact: 700 elements"),
    (
        "stress",
        &["--walks", "70", "--rounds", "4", "--block", "64"],
        "70 walks of up to 4 rounds, seed 1",
        "every walk as on the CPU",
    ),
    ("dmr", &["--points", "40"], "random: 40 points, 75 triangles", "conforming and Delaunay"),
];

fn verify(path: &str) -> String {
    let (code, output, errors) = run(&["verify", path]);
    assert_eq!((code, errors.as_str()), (0, ""), "{output}");
    output
}

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
            let (path, (code, output, errors)) = folder.record_program(program, "a.wtrc", &arguments);
            assert_eq!((code, errors.as_str()), (0, ""), "{program} {arguments:?}");
            assert!(output.starts_with(&format!("recorded   {program} on ")), "{output}");
            for part in [input, result] {
                assert!(output.contains(part), "{program}: no `{part}` in\n{output}");
            }
            assert!(verify(text(&path)).contains("no problem found"));
            let (_, output, _) = run(&["info", text(&path)]);
            assert!(output.contains(&format!("workloads/kernels/src/{program}")), "{output}");
        }
    }
}

#[test]
fn options_are_in_the_trace() {
    let folder = Folder::new();
    let property = |program: &str, more: &[&str], name: &str| {
        let (path, (code, _, errors)) = folder.record_program(program, "a.wtrc", more);
        assert_eq!((code, errors.as_str()), (0, ""));
        let info: Value = serde_json::from_str(&run(&["info", text(&path), "--json"]).1).unwrap();
        let pairs = info["metadata"]["properties"].as_array().unwrap().clone();
        let found = pairs.iter().find(|pair| pair[0] == name).map(|pair| pair[1].clone());
        found.map(|value| value.as_str().unwrap().to_owned())
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
    assert_eq!(property("mst", &["--graph", "road:64", "--grid", "2x64"], "grid").as_deref(), Some("2x64"));
    assert_eq!(property("mst", &["--graph", "road:64"], "grid"), None);
    assert_eq!(property("dmr", &["--points", "20", "--angle", "25"], "angle").as_deref(), Some("25"));
}

#[test]
fn a_grid_is_the_one_of_the_launches() {
    let folder = Folder::new();
    for program in ["mis", "mst", "dmr"] {
        let (path, (code, ..)) = folder.record_program(program, "a.wtrc", &["--grid", "3x64"]);
        assert_eq!(code, 0);
        let info: Value = serde_json::from_str(&run(&["info", text(&path), "--json"]).1).unwrap();
        let launches = info["launches"].as_array().unwrap();
        assert!(launches.len() > 1);
        assert!(
            launches.iter().any(|launch| launch["grid"][0] == 3 && launch["block"][0] == 64),
            "{program}"
        );
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
        let (_, (code, output, errors)) = folder.record_program(program, "a.wtrc", more);
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
        let (path, (code, output, errors)) = folder.record_program(program, "none.wtrc", &arguments);
        assert_eq!((code, output.as_str()), (1, ""), "{arguments:?}");
        for part in parts {
            assert!(errors.contains(part), "{arguments:?}: no `{part}` in {errors}");
        }
        assert!(!path.exists() || arguments[0] == "--angle", "{arguments:?}");
    }
}

/// What a recording says of its events, and what `verify` says of the trace.
fn events_of(folder: &Folder, program: &str, more: &[&str]) -> String {
    let (path, (code, output, errors)) = folder.record_program(program, "a.wtrc", more);
    assert_eq!((code, errors.as_str()), (0, ""));
    verify(text(&path));
    let line = output.lines().find_map(|line| line.strip_prefix("events")).unwrap();
    line.trim().to_owned()
}

#[test]
fn events_are_as_many_as_the_formulas_say() {
    let folder = Folder::new();
    // Eight warps, each with ENTER, 16 steps, and four quadrants that are stored: 128^2 / 2048 * (128 / 8 +
    // 9).
    assert_eq!(events_of(&folder, "matmul", &["--size", "128"]), "200");
    // Four warps, each with ENTER; of 200 elements 128 are each lane's first, and 72 lanes of three warps
    // have a second.
    assert_eq!(events_of(&folder, "triad", &["--elements", "200", "--grid", "2x64"]), "11");
    // One block of four warps, three of them with bodies and two with lanes without: 2 * 4 + 2 * 2 + 3 * (9 +
    // 2).
    assert_eq!(events_of(&folder, "nbody", &["--bodies", "70", "--sources", "9", "--steps", "1"]), "45");
}

#[test]
fn walks_are_checked_only_if_asked_for() {
    let folder = Folder::new();
    let walks = ["--walks", "40", "--rounds", "3"];
    let output = |more: &[&str]| {
        let (_, (code, output, errors)) =
            folder.record_program("stress", "a.wtrc", &[&walks[..], more].concat());
        assert_eq!((code, errors.as_str()), (0, ""));
        output
    };
    assert!(output(&[]).contains("lanes at trace points)"));
    assert!(!output(&["--no-check"]).contains("result"));
}
