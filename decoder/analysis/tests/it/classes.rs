//! Warps with equal events are analysed once, and the figures count each of these warps.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warptrace_analysis::{Analysis, Selection, analyse};
use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::encode_stream;
use warptrace_format::file::{ChunkRef, LaunchInfo};

use crate::support::sections::Sections;
use crate::support::{event, metadata};

const BLOCKS: u32 = 9;
/// Three warps: the last one has 8 lanes.
const THREADS: u32 = 72;

/// Analyses a launch of `warps`, whose chunks end at the event that `cut` returns, and where they are full.
fn figures(warps: &[Vec<Event>], cut: impl Fn(usize) -> usize) -> Analysis {
    let metadata = metadata(&[(1, "a", 3), (2, "b", 3), (3, "c", 4), (4, "d", 5)]);
    let launch = LaunchInfo::new(0, 0, [BLOCKS, 1, 1], [THREADS, 1, 1], 0).expect("the launch is valid");
    let mut file = Sections::new(&metadata);
    file.put(&launch.encode_section());
    let (mut accounts, mut chunks) = (Vec::new(), Vec::new());
    for (warp, events) in warps.iter().enumerate() {
        let (front, back) = events.split_at(cut(warp).min(events.len()));
        let of_warp: Vec<_> =
            [front, back].into_iter().flat_map(|part| encode_stream(metadata.tracks[0], part, 60)).collect();
        let (recorded, lost) = (events.len() as u64, u64::from(warp % 7 == 3));
        accounts.push(WarpAccount {
            attempted: recorded + lost,
            recorded,
            lost,
            chunks: of_warp.len() as u32,
            finished: u32::from(warp % 5 != 4),
        });
        chunks.push(of_warp);
    }
    let mut refs = Vec::new();
    for (warp, chunks) in (0..).zip(&chunks) {
        for (sequence, (events, payload)) in (0..).zip(chunks) {
            refs.push(ChunkRef { track: 0, warp, sequence, events: *events, payload });
        }
    }
    // Frames of several batches.
    refs.chunks(20).for_each(|batch| file.put_frame(0, batch));
    file.put_accounts(&launch, 0, &accounts, &[]);
    let trace = TraceFile::from_bytes(file.finish()).expect("the file is whole");
    analyse(&trace, &Selection::default()).expect("the trace is sound")
}

proptest! {
    #[test]
    fn figures_are_those_of_each_warp(
        paths in prop::collection::vec(
            prop::collection::vec((1_u16..5, prop_oneof![Just(u32::MAX), Just(0xff), 1..=u32::MAX], 1_usize..6), 8..40),
            1..5,
        ),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), (BLOCKS * 3) as usize),
    ) {
        // Each path is repeated, so that there are cycles and loops.
        let streams: Vec<Vec<Event>> = paths
            .iter()
            .map(|path| {
                let once = path.iter().flat_map(|&(location, mask, times)| vec![event(location, mask); times]);
                once.clone().chain(once).collect()
            })
            .collect();
        let warps: Vec<_> = chosen.iter().map(|index| streams[index.index(streams.len())].clone()).collect();
        let together = figures(&warps, |_| usize::MAX);
        // Warps with the same path differ in their first chunks.
        let apart = figures(&warps, |warp| warp + 1);
        prop_assert_eq!(&together, &apart);
        let paths: BTreeMap<_, _> = together.paths.iter().map(|path| ((path.path, path.counts.visits), path.warps)).collect();
        prop_assert!(paths.len() <= streams.len());
    }
}
