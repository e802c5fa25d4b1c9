//! A traced kernel, from `trace_loc` to the bytes of its chunks.

use warptrace_device::{
    KernelCall, SLICE_UNITS, encode_call, encode_together_call, kernel, merge_call, simt, trace_loc,
};
use warptrace_format::chunk::{CHUNK_HEADER_BYTES, ChunkHeader};
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};
use warptrace_format::pool::{Claims, LOG_UNIT_BYTES, LeftLaunch, PoolDescriptor, WarpAccount};
use warptrace_format::{Event, RAW_EVENT_BYTES};
use warptrace_sim::{Interaction, Launch, Recording, Simulator};

const CHUNK_BYTES: usize = 512;
/// Threads of a block: a whole warp and one of eight lanes.
const THREADS: u32 = 40;
/// Units of log memory that nobody uses.
const FIRST_UNITS: u32 = 16;
const RAW: Recording = Recording { codec: CodecSpec::Raw, dual: false, counted: false };
const DUAL: Recording = Recording { dual: true, ..RAW };

kernel! {
    /// Rounds by lane, a branch, an early return.
    pub fn rounds(limit: u32) {
        trace_loc(1);
        if simt::global_thread_x() >= limit {
            trace_loc(2);
            return;
        }
        for _ in 0..simt::lane() {
            trace_loc(3);
        }
        trace_loc(4);
    }
}

kernel! {
    /// `times` times rounds by lane, which the highest lane keeps, and then as many by 31 - lane, each of which another lane keeps.
    pub fn staircases(times: u32) {
        for _ in 0..times {
            for _ in 0..simt::lane() {
                trace_loc(3);
            }
            trace_loc(4);
            for _ in simt::lane()..31 {
                trace_loc(5);
            }
            trace_loc(12);
        }
    }
}

kernel! {
    /// The same, but a lane leaves the kernel after `stay` times its number.
    pub fn departures(times: u32, stay: u32) {
        for time in 0..times {
            if time == stay * simt::lane() {
                trace_loc(6);
                return;
            }
            for _ in 0..simt::lane() {
                trace_loc(3);
            }
            trace_loc(4);
        }
    }
}

kernel! {
    /// Lanes whose numbers are odd, and the others, `times` times each on a way of its own.
    pub fn parted(times: u32) {
        if simt::lane() % 2 == 1 {
            for _ in 0..times {
                trace_loc(7);
                trace_loc(8);
            }
        } else {
            for _ in 0..times {
                trace_loc(9);
                trace_loc(10);
            }
        }
        trace_loc(11);
    }
}

/// 256 bytes, aligned as on a device.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C, align(256))]
struct Line([u32; 64]);

/// What memory holds that nobody has written: not zero, as on a GPU.
const UNTOUCHED: u32 = 0xcccc_cccc;
/// Bytes of a line.
const LINE: usize = size_of::<Line>();

/// Memory of a device with a line around it that nobody may write.
struct Guarded {
    lines: Vec<Line>,
    bytes: usize,
}

impl Guarded {
    fn new(bytes: usize) -> Self {
        Self { lines: vec![Line([UNTOUCHED; 64]); bytes.div_ceil(LINE) + 2], bytes }
    }

    fn zeroed(bytes: usize) -> Self {
        let mut memory = Self::new(bytes);
        let address = memory.address() as usize;
        // SAFETY: `bytes` bytes from the second line on are its own.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(0, bytes) };
        memory
    }

    fn address(&mut self) -> u64 {
        self.lines[1..].as_mut_ptr().expose_provenance() as u64
    }

    /// The bytes, of which those around are as they were.
    fn contents(&mut self) -> Vec<u8> {
        let whole = self.lines.as_mut_ptr().expose_provenance();
        // SAFETY: the lines' own bytes, all of them initialised, which no kernel writes now.
        let bytes = unsafe {
            let start = std::ptr::with_exposed_provenance::<u8>(whole);
            std::slice::from_raw_parts(start, self.lines.len() * LINE)
        };
        let (before, rest) = bytes.split_at(LINE);
        let (inside, behind) = rest.split_at(self.bytes);
        assert!(untouched(before) && untouched(behind), "memory is written outside its bounds");
        inside.to_vec()
    }
}

/// Whether nobody has written into memory.
fn untouched(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == UNTOUCHED as u8)
}

/// What there is for a trace.
#[derive(Clone, Copy, Debug)]
struct Room {
    chunks: usize,
    /// Units of a slice.
    slice: u32,
    /// Units of log memory for kernels behind the slices.
    units: u32,
    /// Units of log memory for what is merged.
    merged: u32,
}

/// Enough for anything here.
const AMPLE: Room = Room { chunks: 10_000, slice: SLICE_UNITS[0], units: 1 << 18, merged: 1 << 18 };

/// What a launch has left.
#[derive(Debug, PartialEq)]
struct Recorded {
    /// Events of the raw tracks, and accounts: track by track, warp by warp.
    streams: Vec<(Vec<Event>, WarpAccount)>,
    /// Claims when the kernel has ended.
    by_kernel: (u32, u32),
    /// Runs that were merged.
    merged: u32,
}

/// What the counters of claims say.
fn claims(memory: &mut Guarded) -> Claims {
    let bytes = memory.contents();
    let word = |at: usize| u32::from_le_bytes(bytes[4 * at..][..4].try_into().expect("four bytes"));
    Claims { chunks: word(0), log_units: word(1), merged_units: word(2), alone: word(3) }
}

/// Runs `call` in `blocks` blocks, and merges and encodes what warps have left. Whatever happens, memory is written only where it is due.
fn record(call: &KernelCall, blocks: u32, room: Room, recording: Recording, launch: Launch<'_>) -> Recorded {
    let warps = blocks * THREADS.div_ceil(32);
    let tracks = if recording.dual { 2 } else { 1 };
    let streams = (warps * tracks) as usize;
    let reserved = FIRST_UNITS + warps * tracks * room.slice;
    let for_kernels = reserved + room.units;
    let unit_bytes = LOG_UNIT_BYTES as usize;
    let mut chunks = Guarded::new(room.chunks * CHUNK_BYTES);
    let mut logs = Guarded::new((for_kernels + room.merged) as usize * unit_bytes);
    let mut accounts = Guarded::zeroed(streams * size_of::<WarpAccount>());
    let mut counters = Guarded::zeroed(size_of::<Claims>());
    let pool = PoolDescriptor {
        chunks: chunks.address(),
        claims: counters.address(),
        accounts: accounts.address(),
        logs: logs.address(),
        chunk_count: room.chunks as u32,
        chunk_bytes: CHUNK_BYTES as u32,
        warps,
        launch: 7,
        enabled: 1,
        log_units: for_kernels,
        log_reserved: reserved,
        slices: FIRST_UNITS,
        slice_units: room.slice,
        ..PoolDescriptor::default()
    };
    // SAFETY: all memory has the sizes given and outlives the launch.
    let launch = unsafe { launch.traced(&pool, recording) };
    Simulator::new().launch(&launch, &|| call.thread()()).expect("a correct kernel");
    let by_kernel = claims(&mut counters);
    let after_kernel = logs.contents();
    let (first, rest) = after_kernel.split_at(FIRST_UNITS as usize * unit_bytes);
    assert!(untouched(first), "no kernel writes the first units");
    let (_, for_merged) = rest.split_at((for_kernels - FIRST_UNITS) as usize * unit_bytes);
    assert!(untouched(for_merged), "no kernel writes what is for merging");

    let left = LeftLaunch {
        accounts: pool.accounts,
        slices: FIRST_UNITS,
        slice_units: room.slice,
        warps,
        launch: 7,
        first_stream: 0,
        tracks,
    };
    let mut table = Guarded::new(size_of::<LeftLaunch>());
    let table_at = table.address();
    // SAFETY: the table has room for one launch.
    unsafe { std::ptr::with_exposed_provenance_mut::<LeftLaunch>(table_at as usize).write(left) };
    let after = PoolDescriptor {
        accounts: 0,
        warps: 0,
        launch: 0,
        enabled: 0,
        log_units: for_kernels + room.merged,
        log_reserved: for_kernels,
        slices: 0,
        slice_units: 0,
        ..pool
    };
    let run = |call: &KernelCall, blocks: u32| {
        // SAFETY: as before.
        let launch = unsafe { Launch::new([blocks, 1, 1], [32, 1, 1]).threads(1).traced(&after, recording) };
        Simulator::new().launch(&launch, &|| call.thread()()).expect("a correct kernel of the tracer");
    };
    // Fewer blocks than streams, so that each does several.
    run(&merge_call(table_at, 1, streams as u32), (streams as u32).div_ceil(3));
    let by_merge = claims(&mut counters);
    let claimed = (by_merge.chunks as usize).min(room.chunks);
    if claimed != 0 {
        run(&encode_call(table_at, 1, claimed as u32), (claimed as u32).div_ceil(64));
        if let CodecSpec::Predict(_) = recording.codec {
            run(&encode_together_call(table_at, 1, claimed as u32), (claimed as u32).div_ceil(4));
        }
    }
    table.contents();
    let after_all = logs.contents();
    let kernels_bytes = for_kernels as usize * unit_bytes;
    assert!(after_all[..kernels_bytes] == after_kernel[..kernels_bytes], "merging writes into no log");
    let used = (claims(&mut counters).chunks as usize).min(room.chunks);
    let bytes = chunks.contents();
    assert!(untouched(&bytes[used * CHUNK_BYTES..]), "no chunk is written that nobody has claimed");
    Recorded {
        streams: streams_of(&bytes[..used * CHUNK_BYTES], &accounts.contents(), warps, recording),
        by_kernel: (by_kernel.chunks, by_kernel.log_units),
        merged: by_merge.merged_units,
    }
}

/// The streams of all tracks: what the chunks of the raw ones hold, and the accounts.
fn streams_of(
    chunks: &[u8],
    accounts: &[u8],
    warps: u32,
    recording: Recording,
) -> Vec<(Vec<Event>, WarpAccount)> {
    let mut found: Vec<_> = chunks.chunks(CHUNK_BYTES).collect();
    found.sort_by_key(|chunk| {
        ChunkHeader::read(chunk).map(|header| (header.track, header.warp, header.sequence))
    });
    let mut streams: Vec<_> = accounts
        .chunks(size_of::<WarpAccount>())
        .map(|bytes| {
            let long = |at: usize| u64::from_le_bytes(bytes[at..][..8].try_into().expect("eight bytes"));
            let (attempted, recorded, lost) = (long(0), long(8), long(16));
            let (chunks, finished) = (long(24) as u32, (long(24) >> 32) as u32);
            (Vec::new(), WarpAccount { attempted, recorded, lost, chunks, finished })
        })
        .collect();
    let mut in_chunks = vec![(0, 0); streams.len()];
    for chunk in found {
        let header = ChunkHeader::read(chunk).expect("a whole chunk");
        // A chunk in which nothing came to lie.
        if header.length == 0 {
            continue;
        }
        assert_eq!(header.launch, 7);
        let stream = (header.track * warps + header.warp) as usize;
        assert_eq!(header.sequence, in_chunks[stream].0, "chunks of a stream are numbered one by one");
        in_chunks[stream].0 += 1;
        in_chunks[stream].1 += u64::from(header.events);
        if header.track == 1 || recording.codec == CodecSpec::Raw {
            assert_eq!(header.length, header.events * RAW_EVENT_BYTES);
            let payload = &chunk[CHUNK_HEADER_BYTES as usize..][..header.length as usize];
            let events = payload.chunks(5).map(|cut| Event::from_cut(cut.try_into().expect("five bytes")));
            streams[stream].0.extend(events);
        }
    }
    for ((_, account), (chunks, events)) in streams.iter().zip(in_chunks) {
        assert_eq!(
            (account.chunks, account.recorded),
            (chunks, events),
            "the account says what is in chunks"
        );
    }
    streams
}

/// One warp after the other, in a fixed order.
fn in_turn(blocks: u32) -> Launch<'static> {
    Launch::new([blocks, 1, 1], [THREADS, 1, 1]).threads(1)
}

/// Lanes of a warp.
fn lanes(warp: u32) -> u32 {
    if warp.is_multiple_of(2) { 32 } else { THREADS - 32 }
}

/// The lanes of a warp for which something holds.
fn mask(warp: u32, holds: impl Fn(u32) -> bool) -> u32 {
    (0..lanes(warp)).filter(|&lane| holds(lane)).fold(0, |mask, lane| mask | 1 << lane)
}

/// Events at `location` of those lanes of a warp that come there at all: of a lane as many as `rounds` says.
fn round_by_round(warp: u32, location: u16, rounds: impl Fn(u32) -> u32) -> impl Iterator<Item = Event> {
    (0..)
        .map(move |round| Event { location, mask: mask(warp, |lane| rounds(lane) > round) })
        .take_while(|event| event.mask != 0)
}

fn expected_rounds(blocks: u32, warp: u32) -> Vec<Event> {
    let all = mask(warp, |_| true);
    if warp == blocks * 2 - 1 {
        return vec![Event { location: 1, mask: all }, Event { location: 2, mask: all }];
    }
    let mut events = vec![Event { location: 1, mask: all }];
    events.extend(round_by_round(warp, 3, |lane| lane));
    events.push(Event { location: 4, mask: all });
    events
}

fn expected_staircases(times: u32, warp: u32) -> Vec<Event> {
    let mut one: Vec<Event> = round_by_round(warp, 3, |lane| lane).collect();
    one.push(Event { location: 4, mask: mask(warp, |_| true) });
    one.extend(round_by_round(warp, 5, |lane| 31 - lane));
    one.push(Event { location: 12, mask: mask(warp, |_| true) });
    one.repeat(times as usize)
}

/// The locations at which a lane was, in order.
fn of_lane(events: &[Event], lane: u32) -> Vec<u16> {
    events.iter().filter(|event| event.mask >> lane & 1 != 0).map(|event| event.location).collect()
}

/// Nothing is lost, and each lane's events are as `expected` says of lane and warp.
fn check_lanes(found: &Recorded, warps: u32, expected: impl Fn(u32, u32) -> Vec<u16>) {
    for (stream, (events, account)) in found.streams.iter().enumerate() {
        let warp = stream as u32 % warps;
        assert_eq!((account.attempted, account.lost, account.finished), (events.len() as u64, 0, 1));
        for lane in 0..lanes(warp) {
            assert_eq!(of_lane(events, lane), expected(lane, warp), "lane {lane} of stream {stream}");
        }
        assert_eq!(events.iter().fold(0, |all, event| all | event.mask), mask(warp, |_| true));
    }
}

/// Nothing is lost, and each warp's events are as `expected` says.
fn check_whole(found: &Recorded, warps: u32, expected: impl Fn(u32) -> Vec<Event>) {
    for (stream, (events, account)) in found.streams.iter().enumerate() {
        let expected = expected(stream as u32 % warps);
        assert_eq!((account.attempted, account.lost), (expected.len() as u64, 0), "stream {stream}");
        assert_eq!((account.recorded, account.finished), (account.attempted, 1), "stream {stream}");
        let differ = events.iter().zip(&expected).position(|(event, expected)| event != expected);
        assert_eq!(
            (differ, events.len()),
            (None, expected.len()),
            "first event that differs in stream {stream}"
        );
    }
}

/// What each warp has recorded is a beginning of its events, and all others are counted as lost. Answers how many are.
fn check_beginnings(found: &Recorded, whole: &Recorded) -> u64 {
    assert_eq!(found.streams.len(), whole.streams.len());
    let mut lost = 0;
    for (stream, ((events, account), (all, _))) in found.streams.iter().zip(&whole.streams).enumerate() {
        assert!(all.starts_with(events), "stream {stream} of {} events: {events:?}", all.len());
        assert_eq!(account.attempted, all.len() as u64, "stream {stream}");
        assert_eq!(account.recorded, events.len() as u64, "stream {stream}");
        assert_eq!(account.attempted, account.recorded + account.lost, "stream {stream}");
        assert_eq!(account.finished, 1);
        lost += account.lost;
    }
    lost
}

#[test]
fn every_warp_delivers_its_events_in_order() {
    for interaction in [Interaction::Independent, Interaction::Global] {
        for threads in [1, 2] {
            for (recording, slice) in [(RAW, SLICE_UNITS[0]), (DUAL, SLICE_UNITS[1])] {
                let launch =
                    Launch::new([6, 1, 1], [THREADS, 1, 1]).interaction(interaction).threads(threads);
                let room = Room { slice, ..AMPLE };
                let found = record(&rounds(6 * THREADS - 8), 6, room, recording, launch);
                check_whole(&found, 12, |warp| expected_rounds(6, warp));
            }
        }
    }
}

#[test]
fn groups_that_part_for_long_keep_each_lanes_order() {
    for interaction in [Interaction::Independent, Interaction::Global] {
        for (times, seed) in [(1, 1), (20, 2), (300, 3)] {
            let launch = in_turn(2).interaction(interaction).seed(seed);
            let found = record(&parted(times), 2, AMPLE, DUAL, launch);
            check_lanes(&found, 4, |lane, _| {
                let own = if lane % 2 == 1 { [7, 8] } else { [9, 10] };
                [own.repeat(times as usize), vec![11]].concat()
            });
        }
    }
}

#[test]
fn a_pool_too_small_loses_the_same_events_each_time_on_one_thread() {
    let call = rounds(6 * THREADS - 8);
    let whole = record(&call, 6, AMPLE, RAW, in_turn(6));
    for chunks in [0, 1, 5, 11] {
        let room = Room { chunks, ..AMPLE };
        let first = record(&call, 6, room, RAW, in_turn(6));
        assert!(check_beginnings(&first, &whole) > 0);
        // Each warp needs one.
        let with_events = first.streams.iter().filter(|(events, _)| !events.is_empty()).count();
        assert_eq!(with_events, chunks);
        assert_eq!(record(&call, 6, room, RAW, in_turn(6)), first);
    }
    assert_eq!(check_beginnings(&record(&call, 6, Room { chunks: 12, ..AMPLE }, RAW, in_turn(6)), &whole), 0);
}

#[test]
fn a_stream_of_many_chunks_may_end_after_any_of_them() {
    let call = staircases(8);
    let whole = record(&call, 1, AMPLE, DUAL, in_turn(1));
    let needed: u32 = whole.streams.iter().map(|(_, account)| account.chunks).sum();
    assert!(needed > 16, "{needed} chunks say little");
    let mut lost = Vec::new();
    for chunks in 0..=needed {
        let found = record(&call, 1, Room { chunks: chunks as usize, ..AMPLE }, DUAL, in_turn(1));
        lost.push(check_beginnings(&found, &whole));
    }
    assert!(lost.is_sorted_by(|a, b| a > b), "each chunk more holds more: {lost:?}");
    assert_eq!(lost.last(), Some(&0));
}

#[test]
fn logs_of_many_segments_and_areas_hold_every_event_in_order() {
    // A segment has room for seven runs, a slice for 14 segments or none, an area for 31.
    for times in [1, 2, 9, 60] {
        for slice in SLICE_UNITS {
            for recording in [RAW, DUAL] {
                let room = Room { slice, ..AMPLE };
                let found = record(&staircases(times), 2, room, recording, in_turn(2));
                check_whole(&found, 4, |warp| expected_staircases(times, warp));
                // Nothing is handed to an encoder as long as there is room.
                let (chunks, units) = found.by_kernel;
                assert_eq!(chunks, 0);
                let areas = if times == 60 { 32 } else { 0 };
                assert!(units >= areas * 256, "{times} times in slices of {slice}: {units} units");
            }
        }
    }
}

#[test]
fn what_finds_no_log_memory_is_lost_and_counted() {
    let calls = [staircases(30), departures(60, 2), parted(150)];
    let (mut some, mut all, mut none) = (0, 0, 0);
    for call in &calls {
        for recording in [RAW, DUAL] {
            let whole = record(call, 2, AMPLE, recording, in_turn(2));
            for slice in SLICE_UNITS {
                for units in [0, 8, 255, 256, 511, 512, 700, 1000, 1500, 2500, 4000, 8000] {
                    let room = Room { slice, units, chunks: 1000, merged: 1 << 15 };
                    let found = record(call, 2, room, recording, in_turn(2));
                    let lost = check_beginnings(&found, &whole);
                    let recorded: u64 = found.streams.iter().map(|(_, account)| account.recorded).sum();
                    assert!(recorded > 0, "each lane has a segment");
                    some += u32::from(lost > 0);
                    none += u32::from(lost == 0);
                    all += u32::from(found.streams.iter().all(|(_, account)| account.lost > 0));
                }
            }
        }
    }
    assert!(some > 0 && none > 0 && all > 0, "some lost {some} times, none {none}, of all warps {all}");
}

#[test]
fn losses_are_counted_whatever_the_codec() {
    let call = staircases(30);
    for codec in
        [CodecSpec::Raw, CodecSpec::Ecl(EclParams::DEFAULT), CodecSpec::Predict(PredictParams::DEFAULT)]
    {
        let recording = Recording { codec, ..DUAL };
        let attempted = |warp| expected_staircases(30, warp).len() as u64;
        let mut some = 0;
        for (chunks, units, merged) in
            [(4000, 600, 1 << 18), (4000, 4000, 1 << 18), (9, 1 << 18, 1 << 18), (4000, 1 << 18, 3000)]
        {
            let room = Room { chunks, slice: SLICE_UNITS[1], units, merged };
            let found = record(&call, 2, room, recording, in_turn(2));
            let mut lost = 0;
            for (stream, (_, account)) in found.streams.iter().enumerate() {
                assert_eq!(account.attempted, attempted(stream as u32 % 4), "{codec:?}, {room:?}, {stream}");
                assert_eq!(
                    account.attempted,
                    account.recorded + account.lost,
                    "{codec:?}, {room:?}, {stream}"
                );
                lost += account.lost;
            }
            some += u32::from(lost > 0);
        }
        assert!(some >= 3, "{codec:?}");
    }
}

#[test]
fn what_finds_no_room_to_be_merged_in_is_lost_and_counted() {
    let call = staircases(9);
    let whole = record(&call, 2, AMPLE, RAW, in_turn(2));
    let mut lost = Vec::new();
    for merged in [0, 1, 300, 577, 1000, whole.merged - 1, whole.merged] {
        let found = record(&call, 2, Room { merged, ..AMPLE }, RAW, in_turn(2));
        lost.push(check_beginnings(&found, &whole));
    }
    let attempted: u64 = whole.streams.iter().map(|(_, account)| account.attempted).sum();
    assert_eq!((lost[0], lost[6]), (attempted, 0));
    assert!(lost[1..6].iter().all(|&lost| lost > 0), "{lost:?}");
}

/// Whether logs were emptied inside the kernel, more often than log memory could be filled: it has room for fewer runs than there are.
fn emptied(found: &Recorded, room: Room) -> bool {
    let events: usize = found.streams.iter().map(|(events, _)| events.len()).sum();
    found.by_kernel.0 > 1 && events > 2 * (room.units as usize + found.streams.len() * room.slice as usize)
}

#[test]
fn warps_empty_their_logs_in_the_kernel_where_memory_gets_short() {
    for interaction in [Interaction::Independent, Interaction::Global] {
        for recording in [RAW, DUAL] {
            for slice in SLICE_UNITS {
                // Each warp finds two areas beyond half of it, and memory to encode in.
                let room = Room { slice, units: 8000, ..AMPLE };
                let launch = in_turn(2).interaction(interaction);
                let found = record(&staircases(500), 2, room, recording, launch);
                check_whole(&found, 4, |warp| expected_staircases(500, warp));
                assert!(emptied(&found, room), "{:?} claims, {room:?}", found.by_kernel);
            }
        }
    }
}

#[test]
fn logs_are_emptied_also_by_the_lanes_that_are_left() {
    let call = departures(620, 20);
    let expected = |lane: u32, _: u32| {
        let times = (20 * lane).min(620);
        let mut events = [vec![3; lane as usize], vec![4]].concat().repeat(times as usize);
        if 20 * lane < 620 {
            events.push(6);
        }
        events
    };
    for recording in [RAW, DUAL] {
        let whole = record(&call, 2, AMPLE, recording, in_turn(2));
        check_lanes(&whole, 4, expected);
        let room = Room { slice: SLICE_UNITS[1], units: 8000, ..AMPLE };
        let found = record(&call, 2, room, recording, in_turn(2));
        check_lanes(&found, 4, expected);
        assert_eq!(check_beginnings(&found, &whole), 0);
        assert!(emptied(&found, room), "{:?} claims", found.by_kernel);
    }
}

#[test]
fn a_kernel_that_empties_its_logs_into_a_full_pool_counts_what_it_loses() {
    let call = staircases(300);
    for recording in [RAW, DUAL] {
        let whole = record(&call, 2, AMPLE, recording, in_turn(2));
        let room = Room { slice: SLICE_UNITS[1], units: 8000, ..AMPLE };
        let mut lost = Vec::new();
        for chunks in [0, 1, 7, 60, 200] {
            let found = record(&call, 2, Room { chunks, ..room }, recording, in_turn(2));
            assert!(found.by_kernel.0 > 0, "it has asked for chunks");
            lost.push(check_beginnings(&found, &whole));
        }
        assert!(lost.is_sorted_by(|a, b| a > b) && lost[4] > 0, "{lost:?}");
    }
}
