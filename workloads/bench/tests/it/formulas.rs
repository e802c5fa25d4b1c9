//! Numbers in views of a recording must match the results of the program.

use std::path::Path;

use serde_json::Value;
use warptrace_workloads::fractal::{FractalOptions, Paths};
use warptrace_workloads::nbody::{EventCounts, NbodyOptions};

use crate::support::{Folder, run, text};

fn rows(view: &str, rows: &str, trace: &Path) -> Vec<Value> {
    let (code, output, errors) = run(&[view, text(trace), "--json"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let found: Value = serde_json::from_str(&output).unwrap();
    found[rows].as_array().unwrap().clone()
}

fn named(rows: &[Value], name: &str) -> Value {
    rows.iter().find(|row| row["name"] == name).unwrap().clone()
}

fn events(trace: &Path) -> u64 {
    rows("stats", "kernels", trace).iter().map(|row| row["visits"].as_u64().unwrap()).sum()
}

#[test]
fn visits_lanes_and_trips_of_a_fractal_follow_from_its_picture() {
    let folder = Folder::new();
    let (trace, (code, ..)) = folder.record("fractal", "a.wtrc", &["--width", "20", "--depth", "90"]);
    assert_eq!(code, 0);
    let paths = Paths::new(&FractalOptions::new(20, 90));
    let steps: Vec<u64> = paths.image().map(u64::from).collect();
    let iterate = named(&rows("stats", "locations", &trace), "ITERATE");
    let slowest = steps.chunks(32).map(|warp| warp.iter().copied().max().unwrap()).sum::<u64>();
    assert_eq!((&iterate["visits"], &iterate["lanes"]), (&slowest.into(), &steps.iter().sum::<u64>().into()));
    let trips = &named(&rows("loops", "loops", &trace), "ITERATE")["trips"];
    assert_eq!(
        (&trips["count"], &trips["max"]),
        (&steps.len().into(), &(*steps.iter().max().unwrap()).into())
    );
    assert_eq!(events(&trace), paths.expected_events());
}

#[test]
fn visits_of_warps_and_trips_of_an_n_body_simulation_follow_from_its_sizes() {
    let folder = Folder::new();
    let (trace, (code, ..)) = folder.record("nbody", "a.wtrc", &["--bodies", "50", "--steps", "2"]);
    assert_eq!(code, 0);
    let counts = EventCounts::new(50, &NbodyOptions::new(2));
    assert_eq!(events(&trace), counts.total());
    for row in rows("warps", "warps", &trace) {
        let warp = row["warp"].as_u64().unwrap();
        let is_force = row["launch"].as_u64().unwrap() % 2 == 0;
        let expected = if is_force { counts.force_warp(warp) } else { counts.integrate_warp(warp) };
        assert_eq!(row["visits"], expected, "{row}");
    }
    let trips = &named(&rows("loops", "loops", &trace), "INTERACT")["trips"];
    assert_eq!((&trips["min"], &trips["max"]), (&50.into(), &50.into()));
    assert_eq!(named(&rows("stats", "locations", &trace), "INTERACT")["lanes"], 2 * 50 * 50);
}
