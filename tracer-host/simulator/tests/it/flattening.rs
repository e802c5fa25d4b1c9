//! Flat logs from streamed segments built by hand: natively, and by the kernels on simulated lanes.

use proptest::prelude::*;
use warptrace_abi::log::{Entry, FLAT_ENTRIES, RESERVED_ENTRIES};
use warptrace_abi::stream::{LOST_BEFORE, NONE_BEFORE, TAG_STEP, header_words, tagged};
use warptrace_encode::{FLATTENED, FlattenJob, HAS_LOST, NO_ROOM, flatten_call, link_call, native};
use warptrace_format::LANES;
use warptrace_sim::{Launch, Simulator};

const LAUNCH: u32 = 0;
const ENTRIES: u32 = 8;
const WARPS: u32 = 6;
const FLAT_LOGS: u32 = RESERVED_ENTRIES.next_multiple_of(FLAT_ENTRIES);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Original,
    Copy,
    Sole,
}

#[derive(Clone, Debug)]
struct Case {
    tracks: u32,
    /// By stream; few lanes have entries.
    lanes: Vec<Vec<(u32, Vec<Kind>)>>,
    round: Vec<u32>,
    /// A warp with a lane that lost events, and whether a header shows the loss (otherwise the table).
    lossy: Option<(u32, bool)>,
    room: u32,
    shuffle: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let kind = prop_oneof![Just(Kind::Original), Just(Kind::Copy), Just(Kind::Sole)];
    let lane = (0..LANES, prop::collection::vec(kind, 0..40));
    let stream = prop::collection::vec(lane, 0..5);
    let round = prop::sample::subsequence((0..WARPS).collect::<Vec<_>>(), 1..=WARPS as usize);
    (1..=2_u32).prop_flat_map(move |tracks| {
        let lanes = prop::collection::vec(stream.clone(), (tracks * WARPS) as usize);
        let lossy = prop::option::of((0..WARPS, any::<bool>()));
        let room = prop_oneof![Just(1 << 14), 1..600_u32];
        (Just(tracks), lanes, round.clone().prop_shuffle(), lossy, room, any::<u64>()).prop_map(
            |(tracks, mut lanes, round, lossy, room, shuffle)| {
                for stream in &mut lanes {
                    stream.sort_by_key(|(lane, _)| *lane);
                    stream.dedup_by_key(|(lane, _)| *lane);
                }
                Case { tracks, lanes, round, lossy, room, shuffle }
            },
        )
    })
}

#[derive(Clone)]
struct Memory {
    job: FlattenJob,
    segments: Vec<[u32; 4]>,
    arrays: Vec<Vec<u128>>,
    expected: Vec<Vec<Vec<[u32; 4]>>>,
}

fn words(count: usize, value: u32) -> Vec<u128> {
    let four = [value; 4].iter().rev().fold(0, |all: u128, word| all << 32 | u128::from(*word));
    vec![four; count.div_ceil(4).max(1)]
}

fn word(array: &[u128], index: usize) -> u32 {
    (array[index / 4] >> (32 * (index % 4))) as u32
}

fn set(array: &mut [u128], index: usize, value: u32) {
    let shift = 32 * (index % 4);
    array[index / 4] = array[index / 4] & !(0xffff_ffff << shift) | u128::from(value) << shift;
}

const ROUND: usize = 2;
const INDICES: usize = 3;
const OUTCOMES: usize = 4;
const LOST: usize = 5;
const FREED: usize = 6;
const LOGS: usize = 7;
const SEEN: usize = 9;
/// The segment whose header an earlier round has read.
const SEEN_BEFORE: usize = 4;
const NEW_HEADERS: usize = 10;

impl Memory {
    fn new(case: &Case) -> Self {
        let mut time = 0;
        let mut chains = Vec::new();
        let mut expected = Vec::new();
        for (stream, lanes) in (0..).zip(&case.lanes) {
            let mut logs = vec![Vec::new(); LANES as usize];
            for (lane, kinds) in lanes {
                let mut chain = Vec::new();
                for kind in kinds {
                    time += 1;
                    let mask = if *kind == Kind::Original { 1 << lane } else { 1 << (lane ^ 1) | 1 << lane };
                    let mask = if *kind == Kind::Copy { mask | 1 } else { mask };
                    let entry = Entry { mask, location: 5, count: 1 + time % 9, time };
                    // In lane 0, a `Copy` entry is an original, because its mask contains lane 0.
                    if *kind != Kind::Copy || mask.trailing_zeros() == *lane {
                        logs[*lane as usize].push(entry.to_words());
                    }
                    chain.push((entry, *kind == Kind::Sole));
                }
                chains.push((stream, *lane, chain));
            }
            expected.push(logs);
        }
        let uses: usize = chains.iter().map(|(.., chain)| chain.len().div_ceil(ENTRIES as usize - 1)).sum();
        let count = uses + 9;
        let mut order: Vec<usize> = (0..count).collect();
        let mut random = case.shuffle | 1;
        for last in (1..count).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, (random >> 33) as usize % (last + 1));
        }
        let old = tagged(Entry { mask: 1, location: 9, count: 9, time: 9 }, 3 * TAG_STEP, false);
        let mut segments = vec![old; count * ENTRIES as usize];
        // Headers of another launch and of a stream that does not exist.
        segments[order[0] * ENTRIES as usize] = header_words(1, LAUNCH + 1, 0, NONE_BEFORE, 3 * TAG_STEP);
        segments[order[1] * ENTRIES as usize] = header_words(99, LAUNCH, 0, NONE_BEFORE, 3 * TAG_STEP);
        segments[order[2] * ENTRIES as usize] = [0; 4];
        let (mut next, mut tag) = (3, 3 * TAG_STEP);
        for (stream, lane, chain) in chains {
            let mut before = NONE_BEFORE;
            for part in chain.chunks(ENTRIES as usize - 1) {
                let number = order[next];
                (next, tag) = (next + 1, tag + TAG_STEP);
                let lost = case.lossy == Some((stream % WARPS, true)) && before != NONE_BEFORE;
                let said = if lost { LOST_BEFORE } else { before };
                let at = number * ENTRIES as usize;
                segments[at] = header_words(stream, LAUNCH, lane, said, tag);
                for (offset, (entry, sole)) in part.iter().enumerate() {
                    segments[at + 1 + offset] = tagged(*entry, tag, *sole);
                }
                before = number as u32 + 1;
            }
        }
        let round = case.round.len();
        let streams = round * case.tracks as usize;
        let flat_from = FLAT_LOGS + streams as u32 * FLAT_ENTRIES;
        let mut arrays = vec![
            words(count, u32::MAX),
            words(32 * streams, u32::MAX),
            words(round, 0),
            words(WARPS as usize, u32::MAX),
            words(round, 0),
            words(2 * (WARPS * case.tracks) as usize, 0),
            words(4 + count, 0),
            words(4 * (flat_from + case.room) as usize, 0xa5a5_a5a5),
            words(4, 0),
            words(count, 0),
            words(4 + 2 * count, 0),
        ];
        for (index, warp) in case.round.iter().enumerate() {
            set(&mut arrays[ROUND], index, *warp);
            set(&mut arrays[INDICES], *warp as usize, index as u32);
        }
        let tag = segments[SEEN_BEFORE * ENTRIES as usize][3];
        set(&mut arrays[SEEN], SEEN_BEFORE, tag);
        if let Some((warp, false)) = case.lossy {
            set(&mut arrays[LOST], 2 * ((case.tracks - 1) * WARPS + warp) as usize + 1, 1);
        }
        let job = FlattenJob {
            launch_warps: WARPS,
            launch: LAUNCH,
            segment_count: count as u32,
            segment_entries: ENTRIES,
            round_warps: round as u32,
            tracks: case.tracks,
            flat_logs: FLAT_LOGS,
            flat_from,
            flat_end: flat_from + case.room,
            ..FlattenJob::default()
        };
        Self { job, segments, arrays, expected }
    }

    fn job(&mut self) -> FlattenJob {
        let segments = self.segments.as_mut_ptr().expose_provenance() as u64;
        let at = |array: &mut Vec<u128>| array.as_mut_ptr().expose_provenance() as u64;
        let [links, firsts, warps, indices, outcomes, lost, freed, logs, claimed, seen, new_headers] =
            &mut self.arrays[..]
        else {
            unreachable!()
        };
        FlattenJob {
            segments,
            links: at(links),
            firsts: at(firsts),
            warps: at(warps),
            indices: at(indices),
            outcomes: at(outcomes),
            lost: at(lost),
            freed: at(freed),
            logs: at(logs),
            claimed: at(claimed),
            seen: at(seen),
            new_headers: at(new_headers),
            ..self.job
        }
    }

    fn by_kernels(mut self) -> Self {
        let job = self.job();
        for (call, blocks, threads) in [(link_call(&job), 2, 32), (flatten_call(&job), 2, 64)] {
            let launch = Launch::new([blocks, 1, 1], [threads, 1, 1]).threads(1);
            // SAFETY: the job's memory has the implied sizes and is not shared.
            let thread = || unsafe { call.thread() }();
            Simulator::new().launch(&launch, &thread).expect("a correct kernel");
        }
        self
    }

    fn natively(mut self) -> Self {
        let job = self.job();
        // SAFETY: all memory has the sizes that the job implies and is not shared.
        unsafe { native::flatten(&job) };
        self
    }

    fn log(&self, stream: u32, lane: u32) -> Vec<[u32; 4]> {
        let logs = &self.arrays[LOGS];
        let head = 4 * (FLAT_LOGS + stream * FLAT_ENTRIES) as usize + 2 * lane as usize;
        let (first, count) = (word(logs, head), word(logs, head + 1));
        assert!(count == 0 || first >= self.job.flat_from && first + count <= self.job.flat_end);
        let entry = |index: u32| std::array::from_fn(|at| word(logs, 4 * index as usize + at));
        (first..first + count).map(entry).collect()
    }

    /// Returns the outcomes of the round's warps.
    fn check(&self, case: &Case) -> Vec<u32> {
        let mut freed = 0;
        let mut outcomes = Vec::new();
        for (index, warp) in (0..).zip(&case.round) {
            let outcome = word(&self.arrays[OUTCOMES], index as usize);
            let loses = |track: u32| {
                let lanes = &case.lanes[(track * WARPS + warp) as usize];
                lanes.iter().any(|(_, kinds)| kinds.len() >= ENTRIES as usize)
            };
            let has_lost = match case.lossy {
                Some((lossy, by_header)) if lossy == *warp => !by_header || (0..case.tracks).any(loses),
                _ => false,
            };
            assert_eq!(outcome == HAS_LOST, has_lost, "warp {warp}");
            for track in 0..case.tracks {
                let stream = (track * WARPS + warp) as usize;
                for lane in 0..LANES {
                    let log = self.log(track * self.job.round_warps + index, lane);
                    let expected = &self.expected[stream][lane as usize];
                    assert_eq!(&log[..], if outcome == FLATTENED { &expected[..] } else { &[] });
                }
                let uses =
                    case.lanes[stream].iter().map(|(_, kinds)| kinds.len().div_ceil(ENTRIES as usize - 1));
                freed += if outcome == FLATTENED { uses.sum::<usize>() } else { 0 };
            }
            outcomes.push(outcome);
        }
        let headers = self.segments.iter().step_by(ENTRIES as usize);
        let (seen, new) = (&self.arrays[SEEN], &self.arrays[NEW_HEADERS]);
        let mut listed: Vec<[u32; 2]> =
            (0..word(new, 0) as usize).map(|at| [word(new, 4 + 2 * at), word(new, 5 + 2 * at)]).collect();
        listed.sort_unstable();
        let mut expected = Vec::new();
        for (number, [.., tag]) in headers.enumerate() {
            assert_eq!(word(seen, number), *tag);
            if *tag != 0 && number != SEEN_BEFORE {
                expected.push([number as u32, *tag]);
            }
        }
        assert_eq!(listed, expected);
        let list = &self.arrays[FREED];
        assert_eq!(word(list, 0) as usize, freed);
        let mut numbers: Vec<u32> = (0..freed).map(|at| word(list, 4 + at)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), freed);
        outcomes
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn flat_logs_hold_the_originals_in_their_order(case in case()) {
        let memory = Memory::new(&case);
        let natively = memory.clone().natively().check(&case);
        let by_kernels = memory.by_kernels().check(&case);
        if case.room == 1 << 14 {
            prop_assert!(!natively.contains(&NO_ROOM));
            prop_assert_eq!(natively, by_kernels);
        }
    }

    #[test]
    fn damaged_segments_lead_nowhere(case in case(), damage in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize, any::<u32>()), 1..20)) {
        let mut memory = Memory::new(&case);
        for (at, word, value) in damage {
            let at = at.index(memory.segments.len() / ENTRIES as usize) * ENTRIES as usize;
            // Half of the values are close to valid numbers of segments and streams.
            memory.segments[at][word] = if value % 2 == 0 { value } else { value % 4096 };
        }
        memory.clone().natively();
        memory.by_kernels();
    }
}
