//! A file with frames of runs has the same figures as the same recording with its chunks listed one by one.

use std::collections::BTreeMap;

use warptrace_analysis::{Analysis, Selection, analyse, by_label, compare};
use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::encode_stream;
use warptrace_format::file::{ChunkRef, ClassChunk, Compression, LaunchInfo, WarpRun, encode_frame_of_runs};

use crate::support::sections::Sections;
use crate::support::{event, metadata};

/// Three warps: the last one has 8 lanes.
const THREADS: u32 = 72;

fn classes() -> [Vec<Event>; 4] {
    let walk = |seed: u16| {
        let step = move |at: u16| event(1 + at * seed % 4, u32::MAX >> (at * seed % 7));
        (0..u16::from(seed > 2) * 60 + 5).map(step).collect()
    };
    [walk(1), walk(2), walk(3), vec![event(4, 0xff); 40]]
}

/// Writes launches with runs of these lengths, in frames of up to 5,000 runs. Continues each fortieth warp.
fn file(blocks: &[u32], length: u32, by_runs: bool) -> TraceFile {
    let metadata = metadata(&[(1, "a", 3), (2, "b", 3), (3, "c", 4), (4, "d", 5)]);
    let encoded = classes().map(|events| encode_stream(metadata.tracks[0], &events, 60));
    let lists = encoded.each_ref().map(|chunks| {
        chunks.iter().map(|(events, payload)| ClassChunk { events: *events, payload }).collect::<Vec<_>>()
    });
    let mut file = Sections::new(&metadata);
    for (number, &blocks) in (0..).zip(blocks) {
        let launch = LaunchInfo::new(number, 0, [blocks, 1, 1], [THREADS, 1, 1], 0).expect("a launch");
        file.put(&launch.encode_section());
        let (mut runs, mut accounts) = (Vec::new(), Vec::new());
        while accounts.len() < launch.warps() as usize {
            let (first, at) = (accounts.len() as u32, runs.len() as u32);
            let warps = (1 + at % length).min(launch.warps() - first);
            let class = (at % 5 * (1 + at / 7 % 3) % 5).checked_sub(1);
            runs.extend(Some(WarpRun { first, warps, class: class.unwrap_or(u32::MAX) }));
            for warp in first..first + warps {
                let own = class.map_or(&[][..], |class| &lists[class as usize][..]);
                let recorded = own.iter().map(|chunk| u64::from(chunk.events)).sum();
                let lost = u64::from(warp % 1000 > 900);
                let finished = u32::from(warp % 1300 < 1250);
                let chunks = own.len() as u32;
                accounts.push(WarpAccount { attempted: recorded + lost, recorded, lost, chunks, finished });
            }
        }
        runs.retain(|run| run.class != u32::MAX);
        for runs in runs.chunks(5000) {
            put_frame(&mut file, number, runs, &lists, by_runs);
        }
        let (mut chunks, (events, payload)) = (Vec::new(), &encoded[0][0]);
        for (warp, account) in (0..).zip(&mut accounts).step_by(40) {
            if account.chunks == 0 {
                continue;
            }
            chunks.push(ChunkRef { track: 0, warp, sequence: account.chunks, events: *events, payload });
            account.chunks += 1;
            account.recorded += u64::from(*events);
            account.attempted += u64::from(*events);
        }
        file.put_frame(number, &chunks);
        file.put_accounts(&launch, 0, &accounts, &[]);
    }
    TraceFile::from_bytes(file.finish()).expect("the file is whole")
}

fn put_frame(
    file: &mut Sections,
    launch: u32,
    runs: &[WarpRun],
    lists: &[Vec<ClassChunk<'_>>],
    by_runs: bool,
) {
    if by_runs {
        let mut used: Vec<u32> = Vec::new();
        let number = |run: &WarpRun| {
            let class = used.iter().position(|class| *class == run.class).unwrap_or_else(|| {
                used.push(run.class);
                used.len() - 1
            });
            WarpRun { class: class as u32, ..*run }
        };
        let runs: Vec<_> = runs.iter().map(number).collect();
        let lists: Vec<_> = used.iter().map(|class| &lists[*class as usize][..]).collect();
        let frame = encode_frame_of_runs(launch, 0, &runs, &lists, Compression::None);
        return file.put(&frame.expect("the runs fit").section);
    }
    let mut chunks = Vec::new();
    for run in runs {
        for warp in run.first..=run.last() {
            for (sequence, chunk) in (0..).zip(&lists[run.class as usize]) {
                let &ClassChunk { events, payload } = chunk;
                chunks.push(ChunkRef { track: 0, warp, sequence, events, payload });
            }
        }
    }
    file.put_frame(launch, &chunks);
}

fn assert_equal(blocks: &[u32], length: u32) {
    let [by_runs, listed] = [true, false].map(|by_runs| file(blocks, length, by_runs));
    let page = |trace: &TraceFile| {
        let report = trace.verify();
        let bytes = report.bytes;
        report.to_string().replace(&format!("{bytes} bytes"), "")
    };
    let said = page(&listed);
    assert_eq!(page(&by_runs), said);
    assert!(said.contains("lost") && said.contains("not finished") && !said.contains("sequence"), "{said}");
    let block = Some([blocks[0] / 2, 0, 0]);
    for selection in [
        Selection::default(),
        Selection { warp: Some(1), ..Selection::default() },
        Selection { block, ..Selection::default() },
        Selection { block, warp: Some(2), ..Selection::default() },
        Selection { focus: Some(2), ..Selection::default() },
    ] {
        let of = |trace| -> Analysis { analyse(trace, &selection).expect("the trace is sound") };
        let [one, other] = [of(&by_runs), of(&listed)];
        assert_eq!(one, other, "{selection:?}");
        assert_eq!(one.losses.is_whole(), selection.block.is_some());
        assert!(one.warps.len() > 100 || selection.block.is_some());
        assert_eq!(by_label(&by_runs, &one), by_label(&listed, &other));
        // Entries that several warps share add up to the figures of single warps.
        let mut paths: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        one.warps.iter().for_each(|warp| *paths.entry((warp.path, warp.counts.visits)).or_default() += 1);
        let grouped = one.paths.iter().map(|group| ((group.path, group.counts.visits), group.warps));
        assert_eq!(grouped.collect::<BTreeMap<_, _>>(), paths);
    }
    let same = compare([&by_runs, &listed], &Selection::default()).expect("the traces are sound");
    assert!(same.changed.is_empty() && same.single_warps == [0, 0]);
}

#[test]
fn figures_of_runs_are_those_of_their_warps() {
    assert_equal(&[700, 3, 1200], 12);
}

#[test]
fn figures_of_several_windows_are_those_of_their_warps() {
    // A window holds at most 131,072 runs.
    assert_equal(&[50_000], 2);
}
