//! Device memory of a traced launch, merged and encoded natively and by the kernels on simulated lanes.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;

use warptrace_abi::log::{
    ENTRY_BYTES, FirstSegments, Fixed, LaunchLogs, LoggedLaunch, RESERVED_ENTRIES, STOPPED,
};
use warptrace_abi::pool::{Claims, PARTED, PoolDescriptor};
use warptrace_encode::native::{self, Schedule};
use warptrace_encode::{
    Codec, PREDICT_THREADS, encode_predict_call, encode_serial_call, find_classes_call, merge_call,
};
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::chunk::{CHUNK_HEADER_BYTES, ChunkHeader, DeviceTimes, bytes_of_times};
use warptrace_format::codec::{CodecSpec, Decoder};
use warptrace_format::file::{
    Compression, FrameTimes, SECTION_HEADER_BYTES, SectionHeader, SectionKind, Tie,
};
use warptrace_sim::{Launch, Recording, Simulator};

use warptrace_device::KernelCall;

pub(crate) const LAUNCH: u32 = 7;
/// Content of memory that was never written: not zero, as on a GPU.
pub(crate) const UNTOUCHED: u32 = 0xcccc_cccc;

#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C, align(2048))]
struct Line([u32; 512]);

const LINE: usize = size_of::<Line>();

#[derive(Clone)]
pub(crate) struct Guarded {
    lines: Vec<Line>,
    bytes: usize,
}

impl Guarded {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { lines: vec![Line([UNTOUCHED; 512]); bytes.div_ceil(LINE) + 2], bytes }
    }

    pub(crate) fn zeroed(bytes: usize) -> Self {
        let mut memory = Self::new(bytes);
        memory.write(&vec![0; bytes]);
        memory
    }

    pub(crate) fn address(&mut self) -> u64 {
        self.lines[1..].as_mut_ptr().expose_provenance() as u64
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.bytes);
        let target = std::ptr::with_exposed_provenance_mut::<u8>(self.address() as usize);
        // SAFETY: these bytes, from the second line on, belong to this allocation.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub(crate) fn contents(&mut self) -> Vec<u8> {
        let whole = self.lines.as_mut_ptr().expose_provenance();
        // SAFETY: the lines' bytes, all initialized; no kernel writes them now.
        let bytes = unsafe {
            let start = std::ptr::with_exposed_provenance::<u8>(whole);
            std::slice::from_raw_parts(start, self.lines.len() * LINE)
        };
        let (before, rest) = bytes.split_at(LINE);
        let (inside, after) = rest.split_at(self.bytes);
        assert!(untouched(before) && untouched(after), "memory is written outside its bounds");
        inside.to_vec()
    }
}

pub(crate) fn untouched(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == UNTOUCHED as u8)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) chunks: u32,
    pub(crate) chunk_bytes: u32,
    pub(crate) lanes: u32,
    /// Entries of a first segment, and of any other segment.
    pub(crate) first: u32,
    pub(crate) segment: u32,
    pub(crate) ring: bool,
    pub(crate) claimable: u32,
    pub(crate) merged: u32,
    pub(crate) times: bool,
    /// The track of addresses and values; 0 if there is none.
    pub(crate) data_track: u32,
}

pub(crate) const AMPLE: Room = Room {
    chunks: 4000,
    chunk_bytes: 512,
    lanes: 1,
    first: 16,
    segment: 32,
    ring: false,
    claimable: 1 << 16,
    merged: 1 << 18,
    times: true,
    data_track: 0,
};

impl Room {
    pub(crate) const fn rings(self, entries: u32) -> Self {
        Self { lanes: 32, first: entries, segment: entries / 2, ring: true, claimable: 0, ..self }
    }
}

#[derive(Clone)]
pub(crate) struct DeviceMemory {
    pub(crate) room: Room,
    pub(crate) warps: u32,
    pub(crate) tracks: u32,
    pub(crate) block_threads: u32,
    /// The warps that record, in blocks of `block_threads` recording threads. `NONE`: all warps.
    pub(crate) chosen: ChosenWarps,
    pub(crate) logs: Guarded,
    pub(crate) chunks: Guarded,
    accounts: Guarded,
    claims: Guarded,
    /// Classes of streams and their table; empty if classes are not used.
    classes: Guarded,
}

pub(crate) struct LogWriter {
    memory: DeviceMemory,
    launch: LoggedLaunch,
    entries: Vec<[u32; 4]>,
    free: u32,
    /// For each lane of each stream: the next entry and the segment's link; 0 if the lane has no segment.
    pointers: Vec<[u32; 2]>,
    stopped: BTreeMap<u32, u32>,
}

impl LogWriter {
    pub(crate) fn new(mut memory: DeviceMemory) -> Self {
        let launch = memory.logged_launch();
        let mut entries = vec![[UNTOUCHED; 4]; memory.merged_from() as usize];
        let streams = memory.warps * memory.tracks;
        let mut pointers = vec![[0; 2]; 32 * streams as usize];
        for stream in 0..streams {
            entries[launch.first_segment(stream, 0) as usize] = [1, 0, 0, 0];
            for lane in 0..launch.first_lanes {
                let first = launch.first_segment(stream, lane);
                pointers[(32 * stream + lane) as usize] = [first + 1, first + launch.first_entries - 1];
            }
        }
        Self { free: memory.claims_from(), memory, launch, entries, pointers, stopped: BTreeMap::new() }
    }

    pub(crate) fn reserve(&mut self, stream: u32, lane: u32) {
        let head = self.launch.first_segment(stream, 0) as usize;
        let [next, link] = &mut self.pointers[(32 * stream + lane) as usize];
        if next == link {
            let is_first = *link == 0;
            *next = self.free + u32::from(is_first);
            if is_first {
                self.entries[self.free as usize] = [self.entries[head][2], lane, 0, 0];
                self.entries[head][2] = self.free;
            } else {
                self.entries[*link as usize][0] = self.free;
            }
            *link = self.free + self.launch.segment_entries - 1;
            self.free += self.launch.segment_entries;
        }
    }

    pub(crate) fn append(&mut self, stream: u32, lane: u32, words: [u32; 4]) {
        self.reserve(stream, lane);
        let [next, _] = &mut self.pointers[(32 * stream + lane) as usize];
        self.entries[*next as usize] = words;
        *next += 1;
        if self.launch.first_lanes > 1 {
            self.entries[self.launch.first_segment(stream, 0) as usize][2] |= 1 << lane;
        }
    }

    /// Stores the time of a lane's first lost run: in its link, or in the stream's head if its log is empty.
    pub(crate) fn lose(&mut self, stream: u32, lane: u32, time: Option<u64>) {
        let Some(time) = time else { return };
        if self.holds_entries(stream, lane) {
            self.stopped.insert(32 * stream + lane, time as u32);
            return;
        }
        let head = &mut self.entries[self.launch.first_segment(stream, 0) as usize];
        let noted = u64::from(head[0]) | u64::from(head[1]) << 32;
        let noted = noted.max(!time);
        [head[0], head[1]] = [noted as u32, (noted >> 32) as u32];
    }

    /// Returns true if a lane has a segment and, if all lanes have one, an entry in it.
    fn holds_entries(&self, stream: u32, lane: u32) -> bool {
        let [_, _, holders, _] = self.entries[self.launch.first_segment(stream, 0) as usize];
        let [_, link] = self.pointers[(32 * stream + lane) as usize];
        link != 0 && (self.launch.first_lanes == 1 || holders >> lane & 1 != 0)
    }

    pub(crate) fn finish(mut self) -> DeviceMemory {
        for (number, [next, link]) in (0..).zip(self.pointers.clone()) {
            if self.holds_entries(number / 32, number % 32) {
                let (free, stopped) = (link - next, self.stopped.get(&number));
                let free = if stopped.is_some() { free | STOPPED } else { free };
                let words = [0, free, *stopped.unwrap_or(&UNTOUCHED), 0];
                self.entries[link as usize] = words;
            }
        }
        let bytes: Vec<u8> = self.entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        self.memory.logs.write(&bytes);
        self.memory
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stream {
    pub(crate) events: Vec<Event>,
    pub(crate) account: WarpAccount,
}

#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) streams: Vec<Stream>,
    /// Header and payload of each chunk that holds events, by track, warp and sequence.
    pub(crate) chunks: Vec<(ChunkHeader, Vec<u8>)>,
    pub(crate) rounds: Vec<Claims>,
}

impl Encoded {
    pub(crate) fn lost(&self) -> u64 {
        self.streams.iter().map(|stream| stream.account.lost).sum()
    }

    /// Asserts that the results are equal, regardless of the rounds.
    pub(crate) fn assert_same(&self, other: &Self) {
        for (one, other) in self.chunks.iter().zip(&other.chunks) {
            assert_eq!(one, other, "a chunk");
        }
        assert_eq!(self.chunks.len(), other.chunks.len(), "chunks");
        assert!(self.streams == other.streams, "accounts");
    }
}

impl DeviceMemory {
    pub(crate) fn new(room: Room, warps: u32, block_threads: u32, tracks: u32) -> Self {
        let streams = (warps * tracks) as usize;
        let mut memory = Self {
            room,
            warps,
            tracks,
            block_threads,
            chosen: ChosenWarps::NONE,
            logs: Guarded::new(0),
            chunks: Guarded::new((room.chunks * room.chunk_bytes) as usize),
            accounts: Guarded::zeroed(streams * size_of::<WarpAccount>()),
            claims: Guarded::zeroed(size_of::<Claims>()),
            classes: Guarded::new(0),
        };
        memory.logs = Guarded::new(memory.merged_end() as usize * ENTRY_BYTES as usize);
        memory
    }

    fn fixed(&self) -> Fixed {
        Fixed::place(RESERVED_ENTRIES.into(), u64::from(self.warps * self.tracks), self.first())
    }

    fn first(&self) -> FirstSegments {
        FirstSegments { lanes: self.room.lanes, entries: self.room.first }
    }

    pub(crate) fn claims_from(&self) -> u32 {
        self.fixed().end as u32
    }

    pub(crate) fn merged_from(&self) -> u32 {
        self.claims_from() + self.room.claimable
    }

    fn merged_end(&self) -> u32 {
        self.merged_from() + self.room.merged
    }

    pub(crate) fn launch_logs(&mut self) -> LaunchLogs {
        LaunchLogs {
            logs: self.logs.address(),
            claims: self.claims.address(),
            accounts: self.accounts.address(),
            first_lanes: self.room.lanes,
            warps: self.warps,
            first_entries: self.room.first,
            segment_entries: self.room.segment,
            claims_from: self.claims_from(),
            claims_end: self.merged_from(),
            launch: LAUNCH,
            first_segments: self.fixed().first_segments as u32,
            ring: self.room.ring.into(),
            chosen: self.chosen,
            ..LaunchLogs::default()
        }
    }

    pub(crate) fn logged_launch(&mut self) -> LoggedLaunch {
        LoggedLaunch {
            accounts: self.accounts.address(),
            first_lanes: self.room.lanes,
            first_entries: self.room.first,
            segment_entries: self.room.segment,
            warps: self.warps,
            block_threads: self.block_threads,
            launch: LAUNCH,
            first_stream: 0,
            tracks: self.tracks,
            first_segments: self.fixed().first_segments as u32,
            ring: self.room.ring.into(),
        }
    }

    pub(crate) fn pool(&mut self) -> PoolDescriptor {
        let class_slots = (self.classes.bytes as u32 / 4).saturating_sub(self.warps * self.tracks);
        PoolDescriptor {
            chunks: self.chunks.address(),
            claims: self.claims.address(),
            logs: self.logs.address(),
            chunk_count: self.room.chunks,
            chunk_bytes: self.room.chunk_bytes,
            merged_from: self.merged_from(),
            merged_end: self.merged_end(),
            times: self.room.times.into(),
            data_track: self.room.data_track,
            classes: if class_slots == 0 { 0 } else { self.classes.address() },
            class_slots,
            reserved: 0,
        }
    }

    pub(crate) fn claims(&mut self) -> Claims {
        let bytes = self.claims.contents();
        let word = |at: usize| u32::from_le_bytes(bytes[at..][..4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Claims {
            log_entries: long(0),
            merged_entries: long(8),
            chunks: word(16),
            serial: word(20),
            waiting: word(24),
            reserved: word(28),
        }
    }

    pub(crate) fn accounts(&mut self) -> Vec<WarpAccount> {
        let bytes = self.accounts.contents();
        let account = |bytes: &[u8]| {
            let long = |at: usize| u64::from_le_bytes(bytes[at..][..8].try_into().expect("eight bytes"));
            let (chunks, finished) = (long(24) as u32, (long(24) >> 32) as u32);
            WarpAccount { attempted: long(0), recorded: long(8), lost: long(16), chunks, finished }
        };
        bytes.chunks(size_of::<WarpAccount>()).map(account).collect()
    }

    pub(crate) fn record(&mut self, call: &KernelCall, recording: Recording, launch: Launch<'_>) {
        // SAFETY: all memory has the given sizes and outlives the launch.
        let launch = unsafe { launch.traced(self.launch_logs(), recording) };
        // SAFETY: the memory of the call has the given sizes and outlives the launch.
        let thread = unsafe { call.thread() };
        Simulator::new().launch(&launch, &|| thread()).expect("a correct kernel");
        let logs = self.logs.contents();
        let entry = ENTRY_BYTES as usize;
        assert!(untouched(&logs[..RESERVED_ENTRIES as usize * entry]), "the first entries have no owner");
        assert!(untouched(&logs[self.merged_from() as usize * entry..]), "a kernel merges nothing");
        assert!(untouched(&self.chunks.contents()), "a kernel encodes nothing");
    }

    pub(crate) fn find_classes(&mut self, slots: u32, by_kernel: bool) -> Vec<u32> {
        let streams = self.warps * self.tracks;
        self.classes = Guarded::new(4 * (streams + slots) as usize);
        self.classes.write(&vec![0xff; self.classes.bytes]);
        let (pool, launch) = (self.pool(), self.logged_launch());
        if by_kernel {
            let mut table = GuardedTable::new(&launch);
            run(&find_classes_call(&pool, table.address(), 1, streams), streams.div_ceil(6), 64);
        } else {
            // SAFETY: all memory has the given sizes, and nothing else uses it.
            unsafe { native::find_classes(&pool, &[launch]) }.expect("correct descriptors");
        }
        self.firsts()
    }

    /// Returns the first stream of each stream's class.
    fn firsts(&mut self) -> Vec<u32> {
        let streams = self.warps * self.tracks;
        if self.classes.bytes == 0 {
            return (0..streams).collect();
        }
        let words = self.classes.contents();
        words
            .as_chunks::<4>()
            .0
            .iter()
            .take(streams as usize)
            .map(|word| u32::from_le_bytes(*word) & !PARTED)
            .collect()
    }

    pub(crate) fn merge_by_kernel(&mut self, codec: CodecSpec, blocks: u32, threads: u32) -> GuardedTable {
        let (pool, mut table) = (self.pool(), GuardedTable::new(&self.logged_launch()));
        let codec = Codec::new(codec).expect("a known codec");
        let call = merge_call(&pool, table.address(), 1, self.warps * self.tracks, codec);
        run(&call, blocks, threads);
        table
    }

    pub(crate) fn encode_by_kernels(&mut self, codec: CodecSpec) -> Encoded {
        self.encode_in_rounds(codec, |memory| memory.round_by_kernels(codec))
    }

    fn round_by_kernels(&mut self, codec: CodecSpec) {
        let streams = self.warps * self.tracks;
        let mut table = self.merge_by_kernel(codec, streams.div_ceil(3), 32);
        let merged = self.claims();
        let claimed = merged.chunks.min(self.room.chunks);
        let (pool, at) = (self.pool(), table.address());
        if claimed != 0 {
            if let CodecSpec::Predict(params) = codec {
                let call = encode_predict_call(&pool, at, 1, claimed, params);
                run(&call, claimed.div_ceil(40), PREDICT_THREADS);
            }
            run(&encode_serial_call(&pool, at, 1, claimed, codec), claimed.div_ceil(64), 32);
            if codec != CodecSpec::Raw && self.tracks == 2 {
                run(&encode_serial_call(&pool, at, 1, claimed, CodecSpec::Raw), claimed.div_ceil(64), 8);
            }
        }
    }

    pub(crate) fn encode_natively(&mut self, codec: CodecSpec, schedule: Schedule) -> Encoded {
        self.encode_in_rounds(codec, |memory| memory.run_natively(codec, schedule))
    }

    pub(crate) fn run_natively(&mut self, codec: CodecSpec, schedule: Schedule) {
        let (pool, launch) = (self.pool(), self.logged_launch());
        // SAFETY: all memory has the given sizes, and nothing else uses it.
        let claims = unsafe { native::encode(&pool, &[launch], codec, schedule) };
        assert_eq!(claims.expect("correct descriptors"), self.claims());
        self.chunks.contents();
        self.logs.contents();
    }

    /// Merges and encodes in as many rounds as needed, like a host. Asserts that logs stay unchanged.
    fn encode_in_rounds(&mut self, codec: CodecSpec, mut round: impl FnMut(&mut Self)) -> Encoded {
        let logs = self.merged_from() as usize * ENTRY_BYTES as usize;
        let before = self.logs.contents();
        let (mut chunks, mut rounds) = (Vec::new(), Vec::new());
        loop {
            round(self);
            assert!(self.logs.contents()[..logs] == before[..logs], "merging writes into no log");
            let claims = self.claims();
            rounds.push(claims);
            let used = claims.chunks.min(self.room.chunks) as usize * self.room.chunk_bytes as usize;
            let bytes = self.chunks.contents();
            assert!(untouched(&bytes[used..]), "no chunk is written that was not claimed");
            chunks.extend(self.chunks_of(&bytes[..used]));
            let firsts = (0..).zip(self.firsts()).filter(|(number, first)| number == first);
            let accounts = self.accounts();
            let unfinished = firsts.filter(|(number, _)| accounts[*number as usize].finished == 0).count();
            assert_eq!(claims.waiting as usize, unfinished, "who waits is not finished");
            if claims.waiting == 0 {
                break;
            }
            assert!(used != 0, "each round records something");
            self.chunks = Guarded::new(bytes.len());
            self.claims.write(&[&claims.log_entries.to_le_bytes()[..], &[0; 24]].concat());
        }
        self.share(&mut chunks);
        chunks.sort_by_key(|(header, _)| (header.track, header.warp, header.sequence));
        Encoded { streams: self.streams_of(&chunks, codec), chunks, rounds }
    }

    fn share(&mut self, chunks: &mut Vec<(ChunkHeader, Vec<u8>)>) {
        let (encoded, account) = (chunks.clone(), size_of::<WarpAccount>());
        let mut accounts = self.accounts.contents();
        for (number, first) in (0..).zip(self.firsts()).filter(|(number, first)| number != first) {
            let of_class = |header: &ChunkHeader| header.track * self.warps + header.warp == first;
            let of_class = encoded.iter().filter(|(header, _)| of_class(header)).cloned();
            let (track, warp) = (number / self.warps, number % self.warps);
            chunks.extend(of_class.map(|(header, payload)| (ChunkHeader { track, warp, ..header }, payload)));
            accounts.copy_within(
                first as usize * account..(first as usize + 1) * account,
                number as usize * account,
            );
        }
        self.accounts.write(&accounts);
    }

    fn chunks_of(&self, bytes: &[u8]) -> Vec<(ChunkHeader, Vec<u8>)> {
        let mut chunks = Vec::new();
        for chunk in bytes.chunks(self.room.chunk_bytes as usize) {
            let header = ChunkHeader::read(chunk).expect("a whole chunk");
            let (payload, rest) = chunk[CHUNK_HEADER_BYTES as usize..].split_at(header.length as usize);
            // Payloads are written in words.
            let filled = payload.len().next_multiple_of(4) - payload.len();
            assert!(untouched(&rest[filled.min(rest.len())..]), "nothing is written after the payload");
            let is_data = header.track != 0 && header.track == self.room.data_track;
            assert!(header.events != 0 || is_data && header.length != 0, "each claimed chunk is used");
            let is_timed = self.room.times && header.track == 0;
            assert_eq!(header.runs != 0, is_timed, "the trace has times if they are asked for");
            let mut payload = payload.to_vec();
            // The padding between events and times may have any content.
            let times = payload.len() - bytes_of_times(header.runs) as usize;
            if !is_data {
                payload[times - header.padding as usize..times].fill(0);
            }
            chunks.push((header, payload));
        }
        chunks
    }

    fn streams_of(&mut self, chunks: &[(ChunkHeader, Vec<u8>)], codec: CodecSpec) -> Vec<Stream> {
        let accounts = self.accounts().into_iter();
        let mut streams: Vec<_> = accounts.map(|account| Stream { events: Vec::new(), account }).collect();
        let mut decoders = [Decoder::new(codec), Decoder::new(CodecSpec::Raw)];
        let mut in_chunks = vec![(0, 0); streams.len()];
        for (header, payload) in chunks {
            assert_eq!(header.launch, LAUNCH);
            let number = (header.track * self.warps + header.warp) as usize;
            assert_eq!(header.sequence, in_chunks[number].0, "chunks of a stream are numbered one by one");
            in_chunks[number].0 += 1;
            in_chunks[number].1 += u64::from(header.events);
            let is_data = header.track != 0 && header.track == self.room.data_track;
            if in_chunks[number].1 < 1 << 20 && !is_data {
                let to = &mut streams[number].events;
                let decoder = &mut decoders[header.track as usize];
                let (from, times) = (to.len(), payload.len() - bytes_of_times(header.runs) as usize);
                let (encoded, times) = payload.split_at(times);
                let encoded = &encoded[..encoded.len() - header.padding as usize];
                decoder.decode_into(encoded, header.events, to).expect("a correct payload");
                if !times.is_empty() {
                    check_times(&to[from..], DeviceTimes::new(header.runs, times));
                }
            }
        }
        for (stream, (chunks, events)) in streams.iter().zip(in_chunks) {
            let account = stream.account;
            assert_eq!(
                (account.chunks, account.recorded),
                (chunks, events),
                "the account is that of the chunks"
            );
            assert_eq!(account.attempted, account.recorded + account.lost, "each event is recorded or lost");
            assert_eq!(account.finished, 1);
        }
        streams
    }
}

fn check_times(events: &[Event], times: DeviceTimes<'_>) {
    let tie = Tie::to(&SectionHeader::for_body(SectionKind::Frame, &[]));
    let section =
        FrameTimes::encode_section(tie, [times].into_iter(), 16, Compression::None).expect("few runs");
    let body = (SectionKind::Times.version(), &section[SECTION_HEADER_BYTES..]);
    let times = FrameTimes::decode(body, 0, tie, 1).expect("as it was encoded").chunk(0);
    let mut walk = times.walk();
    assert!(events.iter().all(|event| walk.take(*event, 1, |_, _| {})), "each event has a run");
    assert!(walk.is_done(), "each run has events");
}

pub(crate) struct GuardedTable(Guarded);

impl GuardedTable {
    pub(crate) fn new(launch: &LoggedLaunch) -> Self {
        let mut memory = Guarded::new(size_of::<LoggedLaunch>());
        let bytes = launch.to_words().map(u32::to_le_bytes).concat();
        memory.write(&bytes);
        Self(memory)
    }

    pub(crate) fn address(&mut self) -> u64 {
        self.0.address()
    }
}

/// Runs a kernel of the encoder on simulated lanes, in a fixed order.
pub(crate) fn run(call: &KernelCall, blocks: u32, threads: u32) {
    let launch = Launch::new([blocks, 1, 1], [threads, 1, 1]).threads(1);
    // SAFETY: tests pass memory of the required sizes to the encoder's kernels.
    let thread = unsafe { call.thread() };
    Simulator::new().launch(&launch, &|| thread()).expect("a correct kernel of the encoder");
}
