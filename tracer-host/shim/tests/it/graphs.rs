//! Tests of programs that launch graphs.

use std::time::Duration;

use warptrace_abi::run::RUN_SPEC;
use warptrace_spec::MemorySize;

use super::{both, built, data, run, spec};

#[test]
fn a_launch_into_a_graph_is_the_programs_own() {
    let Some(traced) = both(&["dlsym", &data("kernels.ptx"), "capture"]) else { return };
    assert!(traced.log().contains("launch walk [") && !traced.log().contains("launch walk$traced"));
}

#[test]
fn launches_of_graphs_are_recorded_kernel_by_kernel() {
    for (change, blocks) in [("", &[3; 5][..]), ("change", &[3, 3, 3, 3, 3, 3, 1])] {
        for (way, kind) in [("proc", "module"), ("dlsym", "library")] {
            let words = [way, &data("kernels.ptx"), "graph", change, kind];
            let Some(traced) = both(&words) else { return };
            // One plain launch, and for each graph launch two kernels.
            assert_eq!(traced.verified().0, blocks.len() as u64, "{:?}", traced.report());
            let (log, trace) = (traced.log(), traced.trace());
            assert!(!log.contains("launch walk ["), "{log}");
            let found: Vec<u32> = trace.launches().map(|launch| launch.grid()[0]).collect();
            assert_eq!(found, blocks);
            // The graph is destroyed before its executable graph.
            assert!(log.contains("graph destroyed"), "{log}");
        }
    }
}

#[test]
fn a_graph_for_which_there_is_no_room_runs_as_it_is() {
    let Some(built) = built() else { return };
    let words = ["proc", &data("kernels.ptx"), "graph"];
    let plain = run(built, false, &words, &[]);
    let spec = spec(|spec| {
        (spec.wait, spec.recording.memory) = (Duration::ZERO, Some(MemorySize(134 << 10)));
    });
    let variables = [("TEST_DRIVER_MILLISECONDS", "2000"), (RUN_SPEC, &*spec)];
    let traced = run(built, true, &words, &variables);
    assert_eq!((plain.stdout(), plain.output.status), (traced.stdout(), traced.output.status));
    let log = traced.log();
    assert!(log.contains("launch walk [") && log.contains("launch walk$traced"), "{log}");
    assert!(traced.report().iter().any(|line| line.contains("not traced")), "{:?}", traced.report());
    assert!(traced.trace().verify().launches >= 1);
}
