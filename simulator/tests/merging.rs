//! Merging logs, made by hand, compared with a sort on the host.

use warptrace_device::{SLICE_UNITS, merge_call};
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};
use warptrace_format::pool::{Claims, LeftLaunch, PoolDescriptor, WarpAccount};
use warptrace_sim::{Launch, Recording, Simulator};

const LANES: usize = 32;
const CHUNK_BYTES: u32 = 1024;
/// Units that nobody has.
const FIRST_UNITS: u32 = 16;
/// Units of the lanes' ends in a slice, of a first segment, and of another, link included.
const ENDS: u32 = 8;
const FIRST_SEGMENT: u32 = 8;
const SEGMENT: u32 = 8;
/// In a lane's end: the log has been stopped.
const STOPPED: u32 = 1 << 31;
/// In an account: the warp has started.
const STARTED: u32 = 2;
/// In the header of a chunk that waits for its stretch: half a warp is to encode it, or one thread.
const TOGETHER: u32 = u32::MAX - 1;
const ALONE: u32 = u32::MAX;
/// What stands where nobody has written.
const UNTOUCHED: u32 = 0xcccc_cccc;

const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
const ECL: CodecSpec = CodecSpec::Ecl(EclParams::DEFAULT);

/// A run of a log. Its mask tells it from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    mask: u32,
    location: u32,
    count: u32,
    /// Without going round.
    time: u64,
}

impl Run {
    /// As it stands in a log.
    fn unit(self) -> [u32; 4] {
        // Some have their count in the key, some in a word of its own.
        let key = if self.mask.is_multiple_of(3) {
            1 << 31 | 1 << 9 | self.location
        } else {
            self.count << 10 | self.location
        };
        [self.mask, key, self.count, self.time as u32]
    }

    /// As it is merged.
    fn merged(self) -> [u32; 4] {
        [self.mask, self.location, self.count, 0]
    }
}

/// What a warp has left.
#[derive(Clone, Debug)]
struct Logs {
    lanes: Vec<Vec<Run>>,
    /// When a lane's first run was lost, of logs that have been stopped.
    lost_from: Vec<Option<u64>>,
}

impl Logs {
    fn new(lanes: Vec<Vec<Run>>) -> Self {
        Self { lanes, lost_from: vec![None; LANES] }
    }

    /// What is merged, and the numbers of events that are attempted and lost.
    fn expected(&self) -> (Vec<[u32; 4]>, u64, u64) {
        let mut runs: Vec<_> = self
            .lanes
            .iter()
            .enumerate()
            .flat_map(|(lane, runs)| runs.iter().map(move |&run| ((run.time, lane), run)))
            .collect();
        runs.sort_by_key(|&(key, _)| key);
        let lost_from = self.lost_from.iter().flatten().min().copied().unwrap_or(u64::MAX);
        let (kept, lost): (Vec<_>, Vec<_>) = runs.into_iter().partition(|(_, run)| run.time < lost_from);
        let events = |runs: &[((u64, usize), Run)]| runs.iter().map(|(_, run)| u64::from(run.count)).sum();
        let (kept_events, lost_events): (u64, u64) = (events(&kept), events(&lost));
        (kept.into_iter().map(|(_, run)| run.merged()).collect(), kept_events + lost_events, lost_events)
    }
}

/// Numbers that look like any.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Logs with so many runs each, that begin at times from `start` on, each at most so much after the one before it in its log.
fn logs(numbers: &mut Numbers, lengths: &[usize], start: u64, most_between: u64) -> Logs {
    let mut mask = 0;
    let mut lanes: Vec<Vec<_>> = lengths
        .iter()
        .map(|&length| {
            let mut time = start + numbers.below(most_between);
            let mut run = || {
                mask += 1;
                time += 1 + numbers.below(most_between);
                let (location, count) = (numbers.below(256) as u32, 1 + numbers.below(9) as u32);
                Run { mask, location, count, time }
            };
            (0..length).map(|_| run()).collect()
        })
        .collect();
    lanes.resize(LANES, Vec::new());
    Logs::new(lanes)
}

/// Log memory with logs in it.
struct Memory {
    units: Vec<[u32; 4]>,
    /// For each stream its next free unit of the area, and the area's end.
    free: Vec<(u32, u32)>,
}

impl Memory {
    fn new(streams: &[Logs]) -> Self {
        let slices = FIRST_UNITS as usize + streams.len() * SLICE_UNITS[2] as usize;
        let mut memory = Self { units: vec![[UNTOUCHED; 4]; slices], free: Vec::new() };
        for number in 0..streams.len() as u32 {
            let slice = FIRST_UNITS + number * SLICE_UNITS[2];
            memory.free.push((slice + ENDS + FIRST_SEGMENT * LANES as u32 + SEGMENT, slice + SLICE_UNITS[2]));
        }
        // As warps do that run at the same time: all runs in the order of their times.
        let mut all: Vec<_> = Vec::new();
        for (stream, logs) in streams.iter().enumerate() {
            for (lane, runs) in logs.lanes.iter().enumerate() {
                all.extend(runs.iter().enumerate().map(|(number, run)| (run.time, stream, lane, number)));
            }
        }
        all.sort_unstable();
        let first =
            |stream, lane| FIRST_UNITS + stream as u32 * SLICE_UNITS[2] + ENDS + FIRST_SEGMENT * lane as u32;
        // For each lane the next unit, and its segment's link.
        let mut cursors: Vec<Vec<(u32, u32)>> = (0..streams.len())
            .map(|stream| (0..LANES).map(|lane| (first(stream, lane) + 1, first(stream, lane) + 7)).collect())
            .collect();
        for (_, stream, lane, number) in all {
            // Some logs take a segment when the one before is full, others when they need it.
            let (mut next, mut link) = cursors[stream][lane];
            let further = |memory: &mut Self, next: &mut u32, link: &mut u32| {
                if next == link {
                    let segment = memory.segment(stream);
                    memory.units[*link as usize][0] = segment;
                    (*next, *link) = (segment, segment + SEGMENT - 1);
                }
            };
            further(&mut memory, &mut next, &mut link);
            memory.units[next as usize] = streams[stream].lanes[lane][number].unit();
            next += 1;
            if lane % 2 == 0 {
                further(&mut memory, &mut next, &mut link);
            }
            cursors[stream][lane] = (next, link);
        }
        for (stream, logs) in streams.iter().enumerate() {
            for (lane, cursor) in cursors[stream].iter().enumerate() {
                let mut end = if logs.lanes[lane].is_empty() { 0 } else { cursor.0 };
                if let Some(from) = logs.lost_from[lane] {
                    memory.units[first(stream, lane) as usize] = [end, 0, from as u32, 2];
                    end |= STOPPED;
                }
                let slice = FIRST_UNITS + stream as u32 * SLICE_UNITS[2];
                memory.units[slice as usize + lane / 4][lane % 4] = end;
            }
        }
        memory
    }

    /// A free segment for a stream.
    fn segment(&mut self, stream: usize) -> u32 {
        if self.free[stream].0 == self.free[stream].1 {
            let area = self.units.len() as u32;
            self.units.resize(self.units.len() + 256, [UNTOUCHED; 4]);
            self.free[stream] = (area + SEGMENT, area + 256);
        }
        self.free[stream].0 += SEGMENT;
        self.free[stream].0 - SEGMENT
    }
}

/// What merging has left of a stream.
#[derive(Debug, PartialEq, Eq)]
struct Merged {
    runs: Vec<[u32; 4]>,
    /// Runs of each stretch.
    stretches: Vec<u32>,
    attempted: u64,
    lost: u64,
}

/// What there is for merging.
#[derive(Clone, Copy)]
struct Room {
    chunks: u32,
    /// Units for what is merged.
    merged: u32,
    /// Threads of a block.
    threads: u32,
}

const AMPLE: Room = Room { chunks: 2000, merged: 1 << 16, threads: 128 };

/// Merges the logs in `memory`, of so many streams.
fn merge(memory: &Memory, streams: usize, codec: CodecSpec, room: Room) -> Vec<Merged> {
    let for_kernels = memory.units.len() as u32;
    // Behind the last unit comes one that nobody may write.
    let mut units = memory.units.clone();
    units.resize((for_kernels + room.merged) as usize + 1, [UNTOUCHED; 4]);
    let mut chunks = vec![[UNTOUCHED; 4]; (room.chunks * CHUNK_BYTES / 16) as usize];
    // Aligned, as `[u64; 2]` on the host may not be.
    let mut accounts =
        vec![WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: STARTED }; streams];
    let mut claims = Claims { chunks: 0, log_units: 0, merged_units: 0, alone: 0 };
    let pool = PoolDescriptor {
        chunks: chunks.as_mut_ptr().expose_provenance() as u64,
        claims: (&raw mut claims).expose_provenance() as u64,
        logs: units.as_mut_ptr().expose_provenance() as u64,
        chunk_count: room.chunks,
        chunk_bytes: CHUNK_BYTES,
        log_units: for_kernels + room.merged,
        log_reserved: for_kernels,
        ..PoolDescriptor::default()
    };
    let mut table = [LeftLaunch {
        accounts: accounts.as_mut_ptr().expose_provenance() as u64,
        slices: FIRST_UNITS,
        slice_units: SLICE_UNITS[2],
        warps: streams as u32,
        launch: 3,
        first_stream: 0,
        tracks: 1,
    }];
    let call = merge_call(table.as_mut_ptr().expose_provenance() as u64, 1, streams as u32);
    let recording = Recording { codec, dual: false, counted: false };
    // SAFETY: all memory has the sizes given and outlives the launch.
    let launch = unsafe { Launch::new([2, 1, 1], [room.threads, 1, 1]).threads(1).traced(&pool, recording) };
    Simulator::new().launch(&launch, &|| call.thread()()).expect("a correct kernel of the tracer");

    assert!(units[..for_kernels as usize] == memory.units, "merging writes into no log");
    assert_eq!(units[(for_kernels + room.merged) as usize], [UNTOUCHED; 4], "nor behind its memory");
    let mut merged: Vec<_> = accounts
        .iter()
        .map(|account| Merged {
            runs: Vec::new(),
            stretches: Vec::new(),
            attempted: account.attempted,
            lost: account.lost,
        })
        .collect();
    let mut found: Vec<_> = chunks
        .chunks((CHUNK_BYTES / 16) as usize)
        .take(claims.chunks.min(room.chunks) as usize)
        .map(|chunk| (chunk[0], chunk[1]))
        .collect();
    found.sort_unstable();
    let alone = found.iter().filter(|(header, _)| header[3] == ALONE).count();
    assert_eq!(claims.alone as usize, alone, "who encodes knows how many are for one thread");
    for ([warp, sequence, runs, left], [launch, track, low, high]) in found {
        let stream = &mut merged[warp as usize];
        assert_eq!((launch, track, sequence), (3, 0, stream.stretches.len() as u32));
        let first = ((u64::from(low) | u64::from(high) << 32) - pool.logs) / 16;
        assert!(first >= u64::from(for_kernels) && first + u64::from(runs) <= u64::from(pool.log_units));
        let runs_here = &units[first as usize..][..runs as usize];
        // With predict all counts together stay below 2^24, if each is below that by the number of runs.
        let fits = runs_here.iter().all(|run| run[2] < (1 << 24) / 80);
        assert_eq!(left, if codec == PREDICT && fits { TOGETHER } else { ALONE });
        stream.runs.extend(runs_here);
        stream.stretches.push(runs);
    }
    merged
}

/// Merges logs, and compares what comes of it with what is to come.
fn check(streams: &[Logs], codec: CodecSpec, room: Room) -> Vec<Merged> {
    let merged = merge(&Memory::new(streams), streams.len(), codec, room);
    for (number, (found, logs)) in merged.iter().zip(streams).enumerate() {
        let (runs, attempted, lost) = logs.expected();
        let wrong = found.runs.iter().zip(&runs).position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "the first run of stream {number} that is wrong");
        assert_eq!(found.runs.len(), runs.len(), "runs of stream {number}");
        assert_eq!((found.attempted, found.lost), (attempted, lost), "events of stream {number}");
        // 11 bytes an event with ecl, 12 a run with predict.
        let fits = (CHUNK_BYTES - CHUNK_HEADER_BYTES - 64) / 12;
        if codec == PREDICT && !runs.is_empty() {
            assert!(found.stretches.iter().rev().skip(1).all(|&runs| runs == fits), "chunks are full");
        }
    }
    merged
}

#[test]
fn one_log_is_taken_as_it_is() {
    let mut numbers = Numbers(1);
    let streams: Vec<_> = [1, 2, 3, 9, 10, 100, 1500]
        .into_iter()
        .enumerate()
        .map(|(stream, runs)| {
            let mut lengths = vec![0; LANES];
            lengths[5 * stream] = runs;
            logs(&mut numbers, &lengths, 100, 50)
        })
        .collect();
    for codec in [PREDICT, ECL, CodecSpec::Raw] {
        check(&streams, codec, AMPLE);
    }
}

#[test]
fn logs_of_any_lengths_become_one_sequence() {
    let mut numbers = Numbers(2);
    let mut streams = Vec::new();
    // Alone and together.
    for runs in [1, 2, 3, 15, 16, 17, 100] {
        streams.push(logs(&mut numbers, &[runs; LANES], 1 << 20, 64));
    }
    for count in [2, 3, 5, 16, 17, 31] {
        streams.push(logs(&mut numbers, &vec![40; count], 7, 1000));
    }
    let mut uneven = vec![3; LANES];
    uneven[7] = 5000;
    streams.push(logs(&mut numbers, &uneven, 0, 30));
    streams.push(logs(&mut numbers, &[0, 1000, 0, 1000], 0, 30));
    for _ in 0..12 {
        let lengths: Vec<_> = (0..LANES).map(|_| numbers.below(40) * numbers.below(2)).collect();
        let lengths: Vec<_> = lengths.into_iter().map(|length| length as usize).collect();
        streams.push(logs(&mut numbers, &lengths, 0, 100));
    }
    check(&streams, PREDICT, AMPLE);
    check(&streams, ECL, Room { threads: 32, ..AMPLE });
    check(&streams, CodecSpec::Raw, Room { threads: 64, ..AMPLE });
}

#[test]
fn times_may_go_round() {
    let mut numbers = Numbers(3);
    // Once, in the middle; for half of all there is; and again and again, so that no base is before all.
    let streams = [
        logs(&mut numbers, &[30; LANES], (1 << 32) - 500, 64),
        logs(&mut numbers, &[90; LANES], (1 << 32) - 500, 64),
        logs(&mut numbers, &[30; LANES], (1 << 31) - 500, (1 << 31) / 31),
        logs(&mut numbers, &[30; LANES], (1 << 31) - 500, 1 << 29),
        logs(&mut numbers, &[90; 3], 5, 1 << 30),
        logs(&mut numbers, &[90], 5, 1 << 31),
    ];
    check(&streams, PREDICT, AMPLE);
}

#[test]
fn of_the_same_time_the_lower_lane_comes_first() {
    let mut numbers = Numbers(4);
    let streams: Vec<_> = [20, 200]
        .into_iter()
        .map(|runs| {
            // Times are the same again and again, but never in one log.
            let mut logs = logs(&mut numbers, &[runs; LANES], 0, 2);
            for runs in &mut logs.lanes {
                for (number, run) in runs.iter_mut().enumerate() {
                    run.time = number as u64;
                }
            }
            logs
        })
        .collect();
    check(&streams, PREDICT, AMPLE);
}

#[test]
fn from_the_first_loss_on_all_is_lost() {
    let mut numbers = Numbers(5);
    let mut streams = Vec::new();
    for lengths in [vec![20; LANES], vec![70; LANES], vec![100]] {
        let whole = logs(&mut numbers, &lengths, (1 << 32) - 1000, 50);
        let mut times: Vec<_> = whole.lanes.iter().flatten().map(|run| run.time).collect();
        times.sort_unstable();
        // Before all, at some run, behind all.
        for from in [0, times[0], times[times.len() / 2], times[times.len() - 1], times[times.len() - 1] + 1]
        {
            let mut logs = whole.clone();
            logs.lost_from[0] = Some(from.max(1 << 31));
            logs.lost_from[9] = Some(from.max(1 << 31) + 300);
            streams.push(logs);
        }
    }
    check(&streams, ECL, AMPLE);
    // Times that are too far from the loss to say what comes after it: each event is recorded or lost all the same.
    let mut logs = logs(&mut numbers, &[40], 0, 1 << 28);
    logs.lost_from[0] = Some(logs.lanes[0][20].time);
    let found = &merge(&Memory::new(&[logs]), 1, ECL, AMPLE)[0];
    let recorded: u64 = found.runs.iter().map(|run| u64::from(run[2])).sum();
    assert_eq!(found.attempted, recorded + found.lost);
}

#[test]
fn what_finds_no_memory_or_no_chunk_is_lost() {
    let mut numbers = Numbers(6);
    let streams = [
        logs(&mut numbers, &[20; LANES], 0, 50),
        logs(&mut numbers, &[50; LANES], 0, 50),
        logs(&mut numbers, &[50], 0, 50),
    ];
    let memory = Memory::new(&streams);
    // For the first and the third, but not for the second.
    let few = merge(&memory, 3, PREDICT, Room { merged: 1000, ..AMPLE });
    let [first, second, third] = [0, 1, 2].map(|stream: usize| streams[stream].expected());
    assert_eq!((&few[0].runs, few[0].lost), (&first.0, 0));
    assert_eq!((few[1].runs.len(), few[1].attempted, few[1].lost), (0, second.1, second.1));
    assert_eq!((&few[2].runs, few[2].lost), (&third.0, 0));
    for chunks in 0..12 {
        let found = merge(&memory, 2, CodecSpec::Raw, Room { chunks, ..AMPLE });
        assert!(found.iter().map(|stream| stream.stretches.len()).sum::<usize>() == chunks as usize);
        for (found, expected) in found.iter().zip([&first, &second]) {
            assert!(expected.0.starts_with(&found.runs), "what is there is a beginning");
            let rest: u64 = expected.0[found.runs.len()..].iter().map(|run| u64::from(run[2])).sum();
            assert_eq!((found.attempted, found.lost), (expected.1, rest));
        }
    }
}

#[test]
fn a_run_that_fits_into_no_chunk_makes_one_stretch_of_all() {
    let mut numbers = Numbers(7);
    let mut logs = logs(&mut numbers, &[20; LANES], 0, 50);
    logs.lanes[3][9].count = 1 << 20;
    let found = check(&[logs.clone()], ECL, AMPLE);
    assert_eq!(found[0].stretches, [640]);
    // With predict it is the counts that may be too many.
    assert!(merge(&Memory::new(&[logs]), 1, PREDICT, AMPLE)[0].stretches == [640]);
}

#[test]
fn logs_that_are_damaged_lead_nowhere() {
    let mut numbers = Numbers(8);
    let streams: Vec<_> = (0..4).map(|_| logs(&mut numbers, &[60; LANES], 0, 50)).collect();
    let whole = Memory::new(&streams);
    for _ in 0..24 {
        let mut memory = Memory { units: whole.units.clone(), free: Vec::new() };
        for _ in 0..20 {
            // Links, runs and ends, for all of them lie there: out of memory, into other logs, and back.
            let unit = numbers.below(memory.units.len() as u64) as usize;
            let near = (unit as u64 + 64).saturating_sub(numbers.below(128)) / 8 * 8;
            memory.units[unit][0] =
                [u32::MAX, 0, near as u32, numbers.below(1 << 13) as u32][numbers.below(4) as usize];
        }
        // That nothing else is written is checked there.
        merge(&memory, 4, PREDICT, Room { merged: 1 << 14, ..AMPLE });
    }
}
