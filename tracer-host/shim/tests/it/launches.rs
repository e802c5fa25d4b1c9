//! Tests of programs with many launches, and with long launches.

use std::time::Duration;

use super::*;

#[test]
fn launches_are_not_waited_for() {
    let words = ["proc", &data("kernels.ptx"), "twice"];
    for (wait, milliseconds) in [(10, "0"), (10, "300"), (0, "300")] {
        let spec = spec(|spec| spec.wait = Duration::from_secs(wait));
        let variables = [("TEST_DRIVER_MILLISECONDS", milliseconds), (RUN_SPEC, &spec)];
        let Some(traced) = both_with(&words, &variables) else { return };
        assert_eq!(traced.verified().0, 2, "{wait}: {:?}", traced.report());
        assert!(traced.report().iter().all(|line| !line.contains("not traced")), "{:?}", traced.report());
    }
}

/// Records `launches` launches. Encoding starts only after `held` launches.
fn many(launches: u64, held: u64) -> Option<ShimRun> {
    let (launches, held) = (launches.to_string(), held.to_string());
    let spec = spec(|spec| {
        (spec.wait, spec.recording.memory) = (Duration::from_secs(600), Some(MemorySize(1 << 20)));
    });
    let variables = [("TEST_LAUNCHES", &*launches), ("TEST_DRIVER_HOLDS", &held), (RUN_SPEC, &*spec)];
    both_with(&["proc", &data("kernels.ptx"), "many"], &variables)
}

fn waited_for_room(run: &ShimRun) -> u64 {
    let report = run.report();
    let Some((_, rest)) = report[0].split_once(" ms in all, ") else { return 0 };
    rest.split(' ').next().and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn launches_go_on_while_encoding_is_held_back() {
    // All launches are made before encoding starts. A launch that waited for encoding would never return.
    let Some(traced) = many(24, 24) else { return };
    assert_eq!(traced.verified().0, 24, "{:?}", traced.report());
    assert_eq!(waited_for_room(&traced), 0, "{:?}", traced.report());
}

fn check_many(launches: u64) {
    let Some(traced) = many(launches, 24) else { return };
    assert_eq!(traced.verified().0, launches, "{:?}", traced.report());
    let report = traced.report();
    assert!(report.iter().all(|line| !line.contains("not traced") && !line.contains("lost")), "{report:?}");
    let trace = traced.trace();
    assert!((0..).zip(trace.launches()).all(|(number, launch)| launch.number() == number));
    let events = |launch| trace.totals(launch, 0).events;
    assert!((0..launches as u32).all(|launch| events(launch) == events(0) && events(0) > 0));
}

#[test]
fn of_many_launches_none_is_lost_or_out_of_order() {
    check_many(200);
}

mod full {
    use super::{both_with, data};

    #[test]
    fn of_launches_in_the_thousands_none_is_lost_or_out_of_order() {
        super::check_many(10_000);
    }

    // Slow: the shim waits five seconds for the kernel.
    #[test]
    fn a_process_that_does_not_wait_for_its_kernels_has_a_file_that_says_so() {
        let variables = [("TEST_DRIVER_MILLISECONDS", "60000")];
        let Some(traced) = both_with(&["proc", &data("kernels.ptx")], &variables) else { return };
        assert!(traced.report()[0].contains("launches that had not ended: 1"), "{:?}", traced.report());
        assert_eq!(traced.trace().launches().count(), 1);
    }
}

#[test]
fn the_file_knows_rank_process_and_device() {
    let words = ["proc", &data("kernels.ptx")];
    let Some(traced) = both_with(&words, &[("RANK", "3"), ("WORLD_SIZE", "8")]) else { return };
    let origin = traced.trace().metadata().origin.clone().expect("it is told");
    assert_eq!((origin.rank, origin.ranks, origin.launcher.as_deref()), (Some(3), Some(8), Some("torchrun")));
    let uuid = origin.device_uuid.as_deref();
    assert_eq!((origin.device, uuid), (Some(0), Some("GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00")));
    assert!(origin.process.is_some_and(|process| process != std::process::id()));
    assert!(origin.began.is_some() && origin.host.is_some());
    let Some(traced) = both_with(&words, &[("TEST_DRIVER_MIG", "1")]) else { return };
    let origin = traced.trace().metadata().origin.clone().expect("it is told");
    let uuid = origin.device_uuid.as_deref();
    assert_eq!((origin.rank, uuid), (None, Some("MIG-ffa1a2a3-a4a5-a6a7-a8a9-aaabacadae00")));
}
