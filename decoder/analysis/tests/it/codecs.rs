//! Figures depend on the events, not on how a codec divides them into chunks, runs and cycles.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{PREDICT, event, metadata, written};
use proptest::prelude::*;
use warptrace_analysis::{Analysis, Selection, analyse};
use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, EclParams};
use warptrace_format::file::LaunchInfo;

fn stream() -> impl Strategy<Value = Vec<Event>> {
    let mask = prop_oneof![Just(u32::MAX), 1_u32..16, any::<u32>().prop_map(|mask| mask | 1)];
    let body = proptest::collection::vec((1_u16..6, mask), 1..5);
    let parts = proptest::collection::vec((body, prop_oneof![1_usize..4, 1_usize..300]), 1..6);
    parts.prop_map(|parts| {
        let repeat = |(body, times): (Vec<(u16, u32)>, usize)| {
            let events: Vec<Event> = body.into_iter().map(|(location, mask)| event(location, mask)).collect();
            events.repeat(times)
        };
        parts.into_iter().flat_map(repeat).collect()
    })
}

fn analysed(codec: CodecSpec, warps: &BTreeMap<u32, Vec<Event>>) -> Analysis {
    let mut metadata = metadata(&[(1, "a", 1), (2, "b", 2), (3, "c", 2)]);
    metadata.tracks = vec![codec];
    let launch = LaunchInfo::new(0, 0, [2, 1, 1], [90, 1, 1], 0).unwrap();
    let bytes = written(&metadata, &launch, warps, |_, _| {});
    analyse(&TraceFile::from_bytes(bytes).unwrap(), &Selection::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_codec_does_not_matter(streams in proptest::collection::vec(stream(), 1..6), again in 0_usize..6) {
        // The last warp has the events of another one.
        let mut warps: BTreeMap<u32, Vec<Event>> = (0..).zip(streams.iter().cloned()).collect();
        warps.insert(5, streams[again % streams.len()].clone());
        let raw = analysed(CodecSpec::Raw, &warps);
        prop_assert_eq!(&analysed(PREDICT, &warps), &raw);
        prop_assert_eq!(&analysed(CodecSpec::Ecl(EclParams::DEFAULT), &warps), &raw);

        let all: Vec<&Event> = warps.values().flatten().collect();
        prop_assert_eq!(raw.counts.visits, all.len() as u64);
        for location in &raw.locations {
            let here = all.iter().filter(|event| event.location == location.point.location);
            let lanes: u64 = here.clone().map(|event| u64::from(event.mask.count_ones())).sum();
            prop_assert_eq!((location.counts.visits, location.counts.lanes), (here.count() as u64, lanes));
        }
        // Warps of different roles are in different groups, even with the same path.
        let paths: BTreeSet<&Vec<Event>> = warps.values().collect();
        let found: BTreeSet<u64> = raw.paths.iter().map(|group| group.path).collect();
        prop_assert_eq!(found.len(), paths.len());
    }
}
