//! Properties of every analysis: views agree, threads have no influence, losses are reported.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::collections::BTreeMap;

use crate::support::{event, metadata, recorded, written};
use warptrace_analysis::{
    Analysis, AnalysisError, Counts, Measure, Selection, WarpEnd, WarpFigures, Watch, Weight, analyse,
    analyse_watched, compare,
};
use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::file::{LaunchInfo, LocationCode, Metadata};

fn walks() -> TraceFile {
    recorded("stress")
}

fn all(trace: &TraceFile) -> Analysis {
    analyse(trace, &Selection::default()).unwrap()
}

fn sum(counts: impl Iterator<Item = Counts>) -> Counts {
    counts.fold(Counts::default(), |sum, counts| Counts {
        visits: sum.visits + counts.visits,
        lanes: sum.lanes + counts.lanes,
        idle: sum.idle + counts.idle,
        slots: sum.slots + counts.slots,
    })
}

#[test]
fn all_views_add_up_to_the_same() {
    let trace = walks();
    let analysis = all(&trace);
    let counts = analysis.counts;
    assert_eq!(sum(analysis.locations.iter().map(|location| location.counts)), counts);
    assert_eq!(sum(analysis.lines.iter().map(|line| line.counts)), counts);
    assert_eq!(sum(analysis.kernels.iter().map(|kernel| kernel.counts)), counts);
    assert_eq!(sum(analysis.warps.iter().map(|warp| warp.counts)), counts);
    assert_eq!(analysis.causes.iter().map(|cause| cause.idle).sum::<u64>(), counts.idle);
    assert_eq!(analysis.warp_events.sum(), counts.visits);
    assert_eq!(analysis.active.iter().sum::<u64>(), counts.visits);
    let lanes: u64 = (0..).zip(&analysis.active).map(|(lanes, visits)| lanes * visits).sum();
    assert_eq!(lanes, counts.lanes);
    let weight = |id| trace.metadata().location(id).unwrap().code.map_or(1, |code| code.instructions.into());
    for location in &analysis.locations {
        let Counts { visits, lanes, idle, slots } = location.counts;
        let weight = if analysis.weight == Weight::Events { 1 } else { weight(location.point.location) };
        assert_eq!((idle, slots), ((32 * visits - lanes) * weight, 32 * visits * weight));
    }
    assert_eq!(analysis.paths.iter().map(|group| group.warps).sum::<u64>(), analysis.warps.len() as u64);
    for location in &analysis.locations {
        let id = Some(location.point.location);
        let into: u64 = analysis.edges.iter().filter(|edge| edge.to == id).map(|edge| edge.lanes).sum();
        let out: u64 = analysis.edges_from(location.point.location).iter().map(|edge| edge.lanes).sum();
        assert_eq!((into, out), (location.counts.lanes, location.counts.lanes), "{}", location.point.name);
        assert_eq!(location.trips.sum(), location.counts.lanes);
        assert_eq!(location.warp_visits.sum(), location.counts.visits);
        assert_eq!(location.active.iter().sum::<u64>(), location.counts.visits);
        assert_eq!(location.cut_lanes, 0);
    }
}

#[test]
fn parts_add_up_to_the_whole() {
    let trace = walks();
    let whole = all(&trace);
    let blocks = [0, 1]
        .map(|x| analyse(&trace, &Selection { block: Some([x, 0, 0]), ..Selection::default() }).unwrap());
    assert_eq!(sum(blocks.iter().map(|block| block.counts)), whole.counts);
    // The median is over the selected warps.
    let without = |warp: WarpFigures| WarpFigures { median: 0, ..warp };
    let warps: Vec<_> = blocks.iter().flat_map(|block| block.warps.iter().map(without)).collect();
    assert_eq!(warps, whole.warps.iter().map(without).collect::<Vec<_>>());
    let warps = (0..8)
        .map(|warp| analyse(&trace, &Selection { warp: Some(warp), ..Selection::default() }).unwrap().counts);
    assert_eq!(sum(warps), whole.counts);
    let head = whole.loops().next().unwrap();
    let focus = Selection { focus: Some(head.point.location), ..Selection::default() };
    let focus = analyse(&trace, &focus).unwrap();
    assert_eq!(sum(focus.warps.iter().map(|warp| warp.counts)), head.counts);
    assert_eq!(focus.warps.len() as u64, head.warps);
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let trace = walks();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| all(&trace))
    };
    let one = on(1);
    for threads in [2, 3, 8] {
        assert_eq!(on(threads), one, "{threads} threads");
    }
}

/// Returns a launch of one block with 40 threads: a warp of 32 lanes and one of 8.
fn launch() -> LaunchInfo {
    LaunchInfo::new(0, 0, [1, 1, 1], [40, 1, 1], 0).unwrap()
}

fn two_warps() -> BTreeMap<u32, Vec<Event>> {
    let short = vec![event(1, 0xff), event(2, 0x0f), event(3, 0xf0), event(4, 0xff)];
    let long = [&[event(1, u32::MAX)][..], &[event(2, u32::MAX); 9], &[event(4, 1)]].concat();
    BTreeMap::from([(0, long), (1, short)])
}

const TABLE: [(u16, &str, u32); 4] = [(1, "enter", 3), (2, "then", 5), (3, "else", 5), (4, "leave", 9)];

#[test]
fn lanes_that_a_warp_does_not_have_are_not_idle() {
    let bytes = written(&metadata(&TABLE), &launch(), &two_warps(), |_, _| {});
    let analysis = all(&TraceFile::from_bytes(bytes).unwrap());
    let idle: Vec<u64> = analysis.locations.iter().map(|location| location.counts.idle).collect();
    assert_eq!(idle, [0, 4, 4, 31]);
    let line = &analysis.lines[1];
    assert_eq!((line.line, &line.names[..], line.warps), (5, &["then".to_owned(), "else".to_owned()][..], 2));
    assert_eq!((line.counts.visits, line.counts.lanes, line.counts.idle), (11, 9 * 32 + 8, 8));
    assert_eq!(analysis.location(1).unwrap().splits, 1);
}

#[test]
fn slots_are_of_instructions_where_all_locations_say_theirs() {
    let mut metadata = metadata(&TABLE);
    let weight = |id: u16| 2 * u64::from(id) - 1;
    let bytes = |metadata: &Metadata| written(metadata, &launch(), &two_warps(), |_, _| {});
    let analysed = |metadata: &Metadata| all(&TraceFile::from_bytes(bytes(metadata)).unwrap());
    for location in &mut metadata.locations {
        let instructions = u32::try_from(weight(location.id)).unwrap();
        location.code = Some(LocationCode { instructions, counted: false });
    }
    let known = metadata.locations[1].code.take();
    let plain = analysed(&metadata);
    assert_eq!(plain.weight, Weight::Events, "one location does not say it");
    metadata.locations[1].code = known;
    let weighed = analysed(&metadata);
    assert_eq!(weighed.weight, Weight::Instructions);
    for (weighed, plain) in weighed.locations.iter().zip(&plain.locations) {
        let (weighed, plain, weight) = (weighed.counts, plain.counts, weight(plain.point.location));
        assert_eq!((weighed.visits, weighed.lanes), (plain.visits, plain.lanes));
        assert_eq!((weighed.idle, weighed.slots), (plain.idle * weight, plain.slots * weight));
    }
    for analysis in [&weighed, &plain] {
        assert_eq!(sum(analysis.warps.iter().map(|warp| warp.counts)), analysis.counts);
        assert_eq!(analysis.causes.iter().map(|cause| cause.idle).sum::<u64>(), analysis.counts.idle);
    }
    let place = |analysis: &Analysis| -> BTreeMap<(u16, u16), u64> {
        let places = analysis.causes.iter().flat_map(|cause| {
            cause.places.iter().map(|place| ((cause.point.location, place.location), place.idle))
        });
        places.collect()
    };
    let expected = place(&plain).into_iter().map(|((cause, at), idle)| ((cause, at), idle * weight(at)));
    assert_eq!(place(&weighed), expected.collect());
    // A comparison uses weights only if both traces have them.
    let with = TraceFile::from_bytes(bytes(&metadata)).unwrap();
    metadata.locations[1].code = None;
    let without = TraceFile::from_bytes(bytes(&metadata)).unwrap();
    for traces in [[&with, &without], [&without, &with]] {
        let same = compare(traces, &Selection::default()).unwrap();
        assert_eq!(same.analyses.map(|analysis| analysis.counts), [plain.counts; 2]);
    }
}

#[test]
fn losses_and_unfinished_warps_are_told() {
    let bytes = written(&metadata(&TABLE), &launch(), &two_warps(), |warp, account| match warp {
        0 => account.finished = 0,
        _ => (account.lost, account.attempted) = (5, account.attempted + 5),
    });
    let analysis = all(&TraceFile::from_bytes(bytes).unwrap());
    let losses = &analysis.losses;
    assert!(!losses.is_whole());
    assert_eq!((losses.lost_events, losses.lossy_warps, losses.unfinished_warps), (5, 1, 1));
    assert_eq!(
        analysis.warps.iter().map(|warp| warp.end).collect::<Vec<_>>(),
        [WarpEnd::Unfinished, WarpEnd::Lossy]
    );
    // The lanes of these warps have no known destination after their last events.
    assert!(analysis.edges.iter().all(|edge| edge.to.is_some()));
    assert_eq!((analysis.location(2).unwrap().cut_lanes, analysis.location(4).unwrap().cut_lanes), (31, 9));
}

#[test]
fn warps_that_have_not_begun_are_counted() {
    let bytes = written(&metadata(&TABLE), &launch(), &BTreeMap::new(), |_, account| account.finished = 0);
    let analysis = all(&TraceFile::from_bytes(bytes).unwrap());
    assert_eq!((analysis.losses.unfinished_warps, analysis.warps.len()), (2, 0));
}

#[test]
fn a_file_that_is_cut_off_is_analysed_up_to_there() {
    let bytes = written(&metadata(&TABLE), &launch(), &two_warps(), |_, _| {});
    let mut last = None;
    for length in (0..bytes.len()).step_by(7) {
        let Ok(trace) = TraceFile::from_bytes(bytes[..length].to_vec()) else { continue };
        let analysis = all(&trace);
        assert!(analysis.losses.cut_off.is_some() && !analysis.losses.is_whole());
        let warps = analysis.warps.len() as u64;
        assert!(
            analysis.losses.unaccounted_warps >= warps || analysis.edges.iter().any(|edge| edge.to.is_none())
        );
        last = Some(analysis.counts.visits);
    }
    assert_eq!(last, Some(15));
}

#[test]
fn damage_is_an_error_that_says_what_to_do() {
    let bytes = written(&metadata(&TABLE), &launch(), &two_warps(), |_, _| {});
    let mut errors = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        let Ok(trace) = TraceFile::from_bytes(damaged) else { continue };
        if let Err(error) = analyse(&trace, &Selection::default()) {
            assert!(error.to_string().contains("warptrace verify"), "{error}");
            errors += 1;
        }
    }
    assert!(errors > 0, "some byte of a frame or an account was changed");
}

#[test]
fn what_the_trace_does_not_have_is_named() {
    let bytes = written(&metadata(&TABLE), &launch(), &two_warps(), |_, _| {});
    let trace = TraceFile::from_bytes(bytes).unwrap();
    let refused = |selection: &Selection| analyse(&trace, selection).unwrap_err().to_string();
    let none = Selection::default();
    let kernel = refused(&Selection { kernel: Some("j".into()), ..none.clone() });
    assert_eq!(kernel, "the trace has no kernel `j`; it has k");
    assert!(refused(&Selection { launch: Some(1), ..none.clone() }).contains("no launch 1"));
    assert!(refused(&Selection { block: Some([0, 1, 0]), ..none.clone() }).contains("no block 0,1: "));
    assert!(refused(&Selection { warp: Some(2), ..none }).contains("warps 0 to 1, not 2"));
}

#[test]
fn too_many_edges_are_refused() {
    // Slightly more than 2^20 steps between locations.
    let locations = 1_100_u32;
    let mut events = Vec::new();
    for from in 1..=locations {
        for to in from..=locations {
            events.extend([event(from as u16, 1), event(to as u16, 1)]);
        }
    }
    let bytes = written(&metadata(&[]), &launch(), &BTreeMap::from([(0, events)]), |_, _| {});
    let error = analyse(&TraceFile::from_bytes(bytes).unwrap(), &Selection::default()).unwrap_err();
    assert!(matches!(error, AnalysisError::TooManyEdges), "{error}");
}

#[test]
fn a_comparison_finds_the_first_event_that_differs() {
    let old = metadata(&TABLE);
    // Ids and lines moved, and a new location.
    let new = metadata(&[(2, "enter", 4), (3, "then", 6), (4, "else", 6), (9, "leave", 12), (1, "fresh", 1)]);
    let moved = |events: &[Event]| -> Vec<Event> {
        let id = |location| [0, 2, 3, 4, 9][usize::from(location)];
        events.iter().map(|&Event { location, mask }| event(id(location), mask)).collect()
    };
    let warps = two_warps();
    let mut after: BTreeMap<u32, Vec<Event>> =
        warps.iter().map(|(&warp, events)| (warp, moved(events))).collect();
    let write =
        |metadata, warps: &_| TraceFile::from_bytes(written(metadata, &launch(), warps, |_, _| {})).unwrap();
    let before = write(&old, &warps);
    let same = compare([&before, &write(&new, &after)], &Selection::default()).unwrap();
    assert_eq!((same.changed.len(), same.common_warps, same.greatest_percent()), (0, 2, 0.0));

    after.get_mut(&1).unwrap()[2] = event(1, 0xf0);
    let other = write(&new, &after);
    let found = compare([&before, &other], &Selection::default()).unwrap();
    assert_eq!(found.changed.len(), 1);
    let change = found.first_change([&before, &other], found.changed[0]).unwrap().unwrap();
    assert_eq!((change.warp.warp, change.event), (1, 2));
    assert_eq!((change.before, change.after), (Some((3, 0xf0)), Some((1, 0xf0))));
    // One visit of 15 went from `else` to `fresh`.
    let greatest = found.greatest().unwrap();
    assert_eq!((greatest.measure, greatest.percent), (Measure::Visits, 100.0 / 15.0));
    let changed: Vec<_> =
        found.locations.iter().filter(|change| change.counts[0] != change.counts[1]).collect();
    let names = |change: &warptrace_analysis::LocationChange| {
        let name = |point: &Option<warptrace_analysis::Point>| point.as_ref().map(|point| point.name.clone());
        (name(&change.before), name(&change.after))
    };
    let expected = [(Some("else".to_owned()), Some("else".to_owned())), (None, Some("fresh".to_owned()))];
    assert_eq!(changed.into_iter().map(names).collect::<Vec<_>>(), expected);

    // A warp that ends earlier, and a warp that only one trace has.
    let part = BTreeMap::from([(0, warps[&0][..5].to_vec())]);
    let part = write(&old, &part);
    let found = compare([&before, &part], &Selection::default()).unwrap();
    assert_eq!((found.common_warps, found.single_warps), (1, [1, 0]));
    let change = found.first_change([&before, &part], found.changed[0]).unwrap().unwrap();
    assert_eq!((change.event, change.after), (5, None));
}

/// Returns a trace of random walks with increasing numbers of lanes, long enough for several watch updates.
fn long_walks() -> TraceFile {
    let walk = |warp: u32| -> Vec<Event> {
        let mut state = warp;
        let mut next = |number: u32| {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            event(1 + (state >> 28) as u16, u32::MAX >> (31 - number / 64))
        };
        (0..2048).map(&mut next).collect()
    };
    let warps: BTreeMap<u32, Vec<Event>> = (0..160).map(|warp| (warp, walk(warp))).collect();
    let launch = LaunchInfo::new(0, 0, [160, 1, 1], [32, 1, 1], 0).unwrap();
    TraceFile::from_bytes(written(&metadata(&TABLE), &launch, &warps, |_, _| {})).unwrap()
}

#[test]
fn a_watch_ends_with_the_figures_of_the_analysis() {
    let trace = long_walks();
    let watch = Watch::default();
    let analysis = analyse_watched(&trace, &Selection::default(), &watch).unwrap().unwrap();
    assert_eq!(analysis, all(&trace));
    assert!(analysis.counts.visits > 1 << 18);
    for id in 0..=u16::MAX {
        let counts = analysis.location(id).map_or_else(Counts::default, |location| location.counts);
        assert_eq!(watch.counts(id), counts, "{id}");
    }
    assert_eq!(watch.total(), analysis.counts);
    assert_eq!(watch.losses(), Some(&analysis.losses));
}

#[test]
fn a_watch_stops_an_analysis() {
    let trace = long_walks();
    let watch = Watch::default();
    let whole = all(&trace).counts.visits;
    std::thread::scope(|scope| {
        let analysis = scope.spawn(|| analyse_watched(&trace, &Selection::default(), &watch).unwrap());
        while watch.total().visits == 0 && !analysis.is_finished() {
            std::hint::spin_loop();
        }
        watch.stop();
        // The analysis may have finished before the stop.
        assert_eq!(analysis.join().unwrap().is_none(), watch.total().visits < whole);
    });
    // A watch that was stopped before the analysis counts nothing.
    let watch = Watch::default();
    watch.stop();
    assert!(analyse_watched(&trace, &Selection::default(), &watch).unwrap().is_none());
    assert_eq!(watch.total(), Counts::default());
}
