use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use warptrace_format::codec::raw::PAYLOAD_EVENT_BYTES;
use warptrace_format::file::{DeviceInfo, Frame, SECTION_HEADER_BYTES, SectionHeader};
use warptrace_format::pool::{Claims, LOG_UNIT_BYTES, PoolDescriptor};

use super::*;
use crate::{Allocation, DeviceError, packed};

/// What a launch leaves, or why it fails.
#[derive(Clone, Debug, Default)]
struct Script {
    /// Warp, sequence and payload of each chunk.
    chunks: Vec<(u32, u32, Vec<u8>)>,
    /// Whether the kernel itself writes them: else they come out of what its warps have left.
    in_kernel: bool,
    /// Units of log memory that it claims.
    units: u32,
    fails: bool,
}

/// Memory without a processor: launches do what a script says.
struct FakeDevice {
    memory: BTreeMap<u64, Vec<u8>>,
    /// Address of the first allocation.
    base: u64,
    /// Bytes of the largest allocation that it grants.
    largest: u64,
    script: VecDeque<Script>,
    /// The descriptor that each launch of the program was given.
    pools: Vec<PoolDescriptor>,
    /// Units of log memory up to this one belong to launches since the last merging.
    taken: u32,
    /// Most chunks that a call of `collect` takes.
    collects: u32,
    /// Calls of `collect`.
    collected: u32,
    /// Launches in order: kernels of the program, and the merging of how many launches and streams.
    launched: Vec<String>,
    /// What warps have left, by launch.
    left: BTreeMap<u32, Vec<(u32, u32, Vec<u8>)>>,
    /// What waits in claimed chunks to be encoded.
    merged: BTreeMap<u32, (u64, Vec<u8>)>,
}

impl Default for FakeDevice {
    fn default() -> Self {
        Self {
            memory: BTreeMap::new(),
            base: 1 << 32,
            largest: u64::MAX,
            script: VecDeque::new(),
            pools: Vec::new(),
            taken: 0,
            collects: u32::MAX,
            collected: 0,
            launched: Vec::new(),
            left: BTreeMap::new(),
            merged: BTreeMap::new(),
        }
    }
}

/// Stands in the header of a chunk that waits for what it is to hold, where a chunk has its length.
const LEFT: u32 = u32::MAX;

impl FakeDevice {
    fn of(script: impl IntoIterator<Item = Script>) -> Self {
        Self { script: script.into_iter().collect(), ..Self::default() }
    }

    fn bytes(&mut self, address: u64, bytes: usize) -> &mut [u8] {
        let (start, memory) = self.memory.range_mut(..=address).next_back().expect("an allocation");
        let at = (address - start) as usize;
        &mut memory[at..at + bytes]
    }

    fn put(&mut self, address: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes(address, bytes.len()).copy_from_slice(&bytes);
    }

    fn word(&mut self, address: u64) -> u32 {
        u32::from_le_bytes(self.bytes(address, 4).try_into().expect("four bytes"))
    }

    fn long(&mut self, address: u64) -> u64 {
        u64::from(self.word(address)) | u64::from(self.word(address + 4)) << 32
    }

    /// Adds to a counter.
    fn add(&mut self, address: u64, more: u32) -> u32 {
        let before = self.word(address);
        self.put(address, &[before + more]);
        before
    }

    /// Header and payload of the chunk with this number, and what the account says of it.
    fn write_chunk(
        &mut self,
        pool: &PoolDescriptor,
        chunk: u32,
        header: [u32; 3],
        account: u64,
        payload: &[u8],
    ) {
        let [warp, sequence, launch] = header;
        let events = payload.len() as u32 / PAYLOAD_EVENT_BYTES;
        let at = pool.chunks + u64::from(chunk) * u64::from(pool.chunk_bytes);
        self.put(at, &[warp, sequence, events, payload.len() as u32, launch, 0, 0, 0]);
        let room = (pool.chunk_bytes as usize - 32).min(payload.len());
        self.bytes(at + 32, room).copy_from_slice(&payload[..room]);
        self.add(account + 8, events);
        self.add(account + 24, 1);
    }

    /// A kernel of the program.
    fn run(&mut self, pool: &PoolDescriptor, tracks: u32) -> Result<(), DeviceError> {
        let script = self.script.pop_front().expect("a script for each launch");
        self.pools.push(*pool);
        assert_eq!((pool.enabled, pool.logs % 256), (1, 0));
        // The slices lie behind all that was reserved and claimed before, and claims go on behind the slices.
        assert!(pool.slices >= self.taken, "unit {} is taken", pool.slices);
        assert!(pool.slices >= 16 && pool.slices.is_multiple_of(8) && pool.slice_units.is_multiple_of(8));
        let behind = pool.slice(tracks, 0);
        assert_eq!(behind, pool.log_reserved + self.word(pool.claims + 4));
        assert!(behind <= pool.log_units);
        self.taken = behind + script.units;
        // As much again is for what is merged.
        self.bytes(pool.logs, 2 * pool.log_units as usize * LOG_UNIT_BYTES as usize);
        for stream in 0..pool.warps * tracks {
            let account = pool.account(0, stream);
            assert!(self.bytes(account, 32).iter().all(|&byte| byte == 0), "accounts start from zero");
            self.put(account + 28, &[2]);
        }
        self.add(pool.claims + 4, script.units);
        if script.in_kernel {
            for (warp, sequence, payload) in script.chunks {
                let chunk = self.add(pool.claims, 1);
                let account = pool.account(0, warp);
                self.add(account, payload.len() as u32 / PAYLOAD_EVENT_BYTES);
                self.write_chunk(pool, chunk, [warp, sequence, pool.launch], account, &payload);
            }
        } else {
            self.left.insert(pool.launch, script.chunks);
        }
        if script.fails {
            return Err(DeviceError::Unsupported { problem: "it failed".to_owned() });
        }
        Ok(())
    }

    /// The kernel that merges: claims a chunk for each in the script.
    fn merge(&mut self, table: u64, launches: u32, streams: u32, pool: &PoolDescriptor) {
        self.launched.push(format!("merge {launches} of {streams}"));
        assert_eq!(2 * pool.log_reserved, pool.log_units, "half of log memory is for what is merged");
        self.taken = 0;
        let mut before = 0;
        for at in (table..).step_by(32).take(launches as usize) {
            let accounts = self.long(at);
            let [slices, slice_units, warps, launch, first, tracks] =
                [8, 12, 16, 20, 24, 28].map(|offset| self.word(at + offset));
            assert_eq!(first, before, "streams are counted on from launch to launch");
            before += warps * tracks;
            let given = *self.pools.iter().find(|pool| pool.launch == launch).expect("a launch");
            assert_eq!(
                (accounts, slices, slice_units, warps),
                (given.accounts, given.slices, given.slice_units, given.warps)
            );
            for stream in 0..warps * tracks {
                let finished = accounts + 32 * u64::from(stream) + 28;
                assert_eq!(self.word(finished), 2, "each warp is merged once");
                self.put(finished, &[1]);
            }
            for (warp, sequence, payload) in self.left.remove(&launch).unwrap_or_default() {
                let account = accounts + 32 * u64::from(warp);
                let events = payload.len() as u32 / PAYLOAD_EVENT_BYTES;
                self.add(account, events);
                let chunk = self.add(pool.claims, 1);
                if chunk < pool.chunk_count {
                    let at = pool.chunks + u64::from(chunk) * u64::from(pool.chunk_bytes);
                    self.put(at, &[warp, sequence, 1, LEFT, launch, 0, 0, 0]);
                    self.add(pool.claims + 12, 1);
                    self.merged.insert(chunk, (account, payload));
                } else {
                    self.add(account + 16, events);
                }
            }
        }
        assert_eq!(streams, before);
    }

    /// The kernel that encodes: fills the first `count` chunks that wait.
    fn encode(&mut self, count: u32, pool: &PoolDescriptor) {
        for (chunk, (account, payload)) in std::mem::take(&mut self.merged) {
            assert!(chunk < count, "chunk {chunk} is encoded");
            let at = pool.chunks + u64::from(chunk) * u64::from(pool.chunk_bytes);
            assert_eq!(self.word(at + 12), LEFT);
            let header = [self.word(at), self.word(at + 4), self.word(at + 16)];
            self.write_chunk(pool, chunk, header, account, &payload);
        }
    }
}

impl Device for FakeDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::simulator("fake")
    }

    fn multiprocessors(&self) -> u32 {
        1
    }

    fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        if bytes > self.largest {
            return Err(DeviceError::OutOfMemory { bytes, reason: "there is no more".to_owned() });
        }
        let address = self
            .memory
            .last_key_value()
            .map_or(self.base, |(start, memory)| (start + memory.len() as u64).next_multiple_of(256) + 256);
        // What a GPU's memory holds is not zero.
        self.memory.insert(address, vec![0xcc; bytes as usize]);
        Ok(Allocation { address, bytes })
    }

    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        self.memory.remove(&allocation.address).expect("an allocation");
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.bytes(address, bytes.len()).copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        bytes.copy_from_slice(self.bytes(address, bytes.len()));
        Ok(())
    }

    fn collect(
        &mut self,
        first: u64,
        chunk_bytes: u32,
        count: u32,
        to: &mut Vec<u8>,
    ) -> Result<u32, DeviceError> {
        self.collected += 1;
        let count = count.min(self.collects);
        let chunks = self.bytes(first, (chunk_bytes * count) as usize);
        chunks.chunks(chunk_bytes as usize).for_each(|chunk| packed::push(to, chunk));
        Ok(count)
    }

    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.bytes(address, bytes as usize).fill(value);
        Ok(())
    }

    fn prepare(&mut self, _: &str, _: Option<(Recording, Placement)>) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        tracing: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError> {
        let Tracing { pool, recording, .. } = *tracing.expect("sessions trace");
        let arguments = call.arguments();
        let word = |at: usize| u32::from_le_bytes(arguments[at].as_slice().try_into().expect("four bytes"));
        let mut kernel = Duration::from_micros(1);
        match call.name() {
            "warptrace_merge" => {
                let table = u64::from_le_bytes(arguments[0].as_slice().try_into().expect("eight bytes"));
                assert!(shape.block[0].is_multiple_of(32), "it takes whole warps");
                self.merge(table, word(1), word(2), &pool);
                kernel = Duration::from_millis(1);
            }
            "warptrace_encode" | "warptrace_encode_together" => {
                self.encode(word(2), &pool);
                kernel = Duration::from_millis(2);
            }
            name => {
                self.launched.push(name.to_owned());
                self.run(&pool, if recording.dual { 2 } else { 1 })?;
            }
        }
        let [chunks, log_units, merged_units, alone] = [0, 4, 8, 12].map(|at| self.word(pool.claims + at));
        Ok(LaunchTime { kernel, claims: Claims { chunks, log_units, merged_units, alone } })
    }
}

/// A file that can be looked at while it is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Launch, warp, sequence and payload.
type Found = (u32, u32, u32, Vec<u8>);

/// The chunks of a file, and the number of accounting sections.
fn contents(file: &[u8]) -> (Vec<Found>, usize) {
    let mut at = 24;
    let (mut chunks, mut accounts) = (Vec::new(), 0);
    while at < file.len() {
        let header = SectionHeader::parse(&file[at..], 0).unwrap();
        let body = &file[at + SECTION_HEADER_BYTES..][..header.length as usize];
        if header.tag.0 == *b"FRAM" {
            let frame = Frame::decode(body, 0).unwrap();
            let launch = frame.header().launch;
            chunks.extend(
                frame
                    .chunks()
                    .map(|chunk| (launch, chunk.entry.warp, chunk.entry.sequence, chunk.payload.to_vec())),
            );
        }
        accounts += usize::from(header.tag.0 == *b"ACCT");
        at += header.total_bytes() as usize;
    }
    (chunks, accounts)
}

const PROGRAM: TracedProgram<'static> = TracedProgram { kernels: &[("k", ""), ("other", "")], points: &[] };

fn event(location: u8) -> Vec<u8> {
    vec![location, 0, 1, 0, 0, 0]
}

fn options(chunks: u64) -> SessionOptions {
    SessionOptions { chunk_bytes: 1024, pool_bytes: chunks * 1024, ..SessionOptions::new(CodecSpec::Raw) }
}

/// Launches of one block of two warps.
fn launch<W: Write + Send + 'static>(
    session: &mut Session<'_, W>,
    kernel: &'static str,
) -> Result<LaunchTime, SessionError> {
    let call = KernelCall::new(kernel, Vec::new(), || {});
    // SAFETY: no arguments.
    unsafe { session.record(&call, &LaunchShape::linear(64, 64)) }
}

fn script(chunks: &[(u32, u32, u8)]) -> Script {
    let chunks = chunks.iter().map(|&(warp, sequence, location)| (warp, sequence, event(location))).collect();
    Script { chunks, ..Script::default() }
}

#[test]
fn short_launches_share_one_drain() {
    let mut device = FakeDevice::of((1..=10).map(|location| script(&[(1, 0, location), (0, 0, location)])));
    let mut session = Session::start(&mut device, &PROGRAM, &options(1000), Shared::default()).unwrap();
    for _ in 0..10 {
        assert_eq!(launch(&mut session, "k").unwrap().kernel, Duration::from_micros(1));
    }
    let (file, summary, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.recorded, report.lost), (20, 20, 0));
    assert_eq!((report.chunks, report.payload_bytes), (20, 120));
    assert_eq!(report.kernel, Duration::from_micros(10));
    assert_eq!(report.encoding, Duration::from_millis(3), "merging and encoding once");
    assert_eq!(summary.events, 20);
    assert_eq!(device.collected, 1);
    assert_eq!(device.launched.last().unwrap(), "merge 10 of 20", "each warp's logs, once");
    assert!(device.memory.is_empty(), "all memory is given back");
    let (chunks, accounts) = contents(&file.0.lock().unwrap());
    let expected: Vec<_> =
        (0..10u32).flat_map(|number| [0, 1].map(|warp| (number, warp, 0, event(number as u8 + 1)))).collect();
    assert_eq!((chunks, accounts), (expected, 10));
}

#[test]
fn a_device_that_collects_few_chunks_at_a_time_is_asked_again() {
    let script = (1..=10).map(|location| script(&[(1, 0, location), (0, 0, location)]));
    let mut device = FakeDevice { collects: 3, ..FakeDevice::of(script) };
    let mut session = Session::start(&mut device, &PROGRAM, &options(1000), Shared::default()).unwrap();
    for _ in 0..10 {
        launch(&mut session, "k").unwrap();
    }
    let (file, summary, _) = session.finish().unwrap();
    assert_eq!((summary.events, device.collected), (20, 7));
    assert_eq!(contents(&file.0.lock().unwrap()).0.len(), 20);
}

#[test]
fn launches_whose_warps_have_left_nothing_are_not_encoded() {
    let mut device = FakeDevice::of([script(&[]), script(&[])]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(1000), Shared::default()).unwrap();
    launch(&mut session, "k").unwrap();
    launch(&mut session, "k").unwrap();
    let (file, _, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.chunks, report.encoding), (0, 0, Duration::from_millis(1)));
    assert_eq!(contents(&file.0.lock().unwrap()), (Vec::new(), 2));
}

#[test]
fn the_pool_is_drained_when_most_of_its_chunks_may_be_due() {
    // Each of two warps is taken to need two; three quarters are 30.
    let mut device = FakeDevice::of(vec![script(&[(0, 0, 1), (1, 0, 1)]); 25]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), Shared::default()).unwrap();
    for _ in 0..25 {
        launch(&mut session, "k").unwrap();
    }
    assert_eq!(session.finish().unwrap().2.recorded, 50);
    let merges: Vec<_> = device.launched.iter().filter(|name| name.starts_with("merge")).collect();
    assert_eq!(merges, ["merge 8 of 16", "merge 8 of 16", "merge 8 of 16", "merge 1 of 2"]);
    // After a drain everything is free again.
    let first = |number: usize| (device.pools[number].slices, device.pools[number].accounts);
    assert_eq!(first(8), first(0));
    assert_ne!(first(7), first(0));
}

#[test]
fn the_pool_is_drained_before_a_launch_that_may_not_find_log_memory() {
    // Kernels have 8 MiB of the least log memory: 524,288 units.
    let claims = |units| Script { units, ..script(&[(0, 0, 1)]) };
    let mut device = FakeDevice::of([180_000, 0, 170_000, 10, 393_000, 5].map(claims));
    let mut session = Session::start(&mut device, &PROGRAM, &options(1000), Shared::default()).unwrap();
    for kernel in ["k", "other", "k", "other", "k", "other"] {
        launch(&mut session, kernel).unwrap();
    }
    assert_eq!(session.finish().unwrap().2.recorded, 6);
    assert_eq!(
        device.launched,
        [
            "k",
            // Nobody knows yet what it needs.
            "other",
            // Twice what the first `k` has claimed is not there any more.
            "merge 2 of 4",
            "k",
            "other",
            // Nor is it now.
            "merge 2 of 4",
            "k",
            // More than three quarters are taken, which is worth a drain at once.
            "merge 1 of 2",
            "other",
            "merge 1 of 2"
        ]
    );
}

#[test]
fn chunks_that_kernels_have_written_themselves_are_collected_too() {
    let in_kernel = Script { in_kernel: true, ..script(&[(0, 0, 1), (0, 1, 2)]) };
    let mut device = FakeDevice::of([in_kernel, script(&[(0, 0, 3)])]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), Shared::default()).unwrap();
    launch(&mut session, "k").unwrap();
    launch(&mut session, "k").unwrap();
    let (file, _, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.recorded, report.chunks), (3, 3, 3));
    let (chunks, _) = contents(&file.0.lock().unwrap());
    assert_eq!(chunks, [(0, 0, 0, event(1)), (0, 0, 1, event(2)), (1, 0, 0, event(3))]);
}

#[test]
fn what_finds_no_chunk_is_lost_and_counted() {
    let many = script(&(0..50).map(|sequence| (0, sequence, 1)).collect::<Vec<_>>());
    let mut device = FakeDevice::of([many, script(&[(1, 0, 2)])]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), Shared::default()).unwrap();
    launch(&mut session, "k").unwrap();
    session.flush().unwrap();
    launch(&mut session, "k").unwrap();
    let (_, summary, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.recorded, report.lost), (51, 41, 10));
    assert_eq!(summary.events, 41);
}

/// The descriptor that a launch of so many warps is given by a device whose largest allocation has so many bytes.
fn pool_for(warps: u64, dual: bool, largest: u64) -> Result<(PoolDescriptor, u64), SessionError> {
    let mut device = FakeDevice { largest, ..FakeDevice::of([script(&[(1, 0, 1)])]) };
    let options = SessionOptions { dual, ..options(40) };
    let mut session = Session::start(&mut device, &PROGRAM, &options, Shared::default()).unwrap();
    let call = KernelCall::new("k", Vec::new(), || {});
    // SAFETY: no arguments.
    unsafe { session.record(&call, &LaunchShape::linear(32 * warps, 32)) }?;
    drop(session);
    assert!(device.memory.is_empty(), "all memory is given back");
    let pool = device.pools[0];
    Ok((pool, u64::from(pool.log_units) * u64::from(LOG_UNIT_BYTES)))
}

#[test]
fn log_memory_grows_with_the_launch() {
    let [roomy, .., large, small] = warptrace_device::SLICE_UNITS;
    let (few, least) = pool_for(2, false, u64::MAX).unwrap();
    assert_eq!((few.slice_units, least), (roomy, 8 << 20));
    // Both tracks have slices.
    for (warps, dual) in [(4000, false), (2000, true)] {
        let (many, bytes) = pool_for(warps, dual, u64::MAX).unwrap();
        assert_eq!((many.slice_units, many.log_reserved), (large, 16 + 4000 * large));
        assert!(bytes > least);
        let left = many.log_units - many.log_reserved;
        assert!(4 * left >= 4000 * large, "a quarter more than the slices: {left} units");
    }
    // Where a device has not so much, slices are smaller.
    let (narrow, bytes) = pool_for(4000, false, 48 << 20).unwrap();
    assert_eq!((narrow.slice_units, narrow.log_reserved), (small, 16 + 4000 * small));
    assert!(2 * bytes <= 48 << 20);
    let error = pool_for(6000, false, 48 << 20).unwrap_err();
    assert!(matches!(error, SessionError::Device(DeviceError::OutOfMemory { .. })), "{error}");
}

#[test]
fn launches_share_log_memory_that_has_grown() {
    let mut device = FakeDevice::of(vec![script(&[(0, 0, 1)]); 3]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(12_500), Shared::default()).unwrap();
    let call = KernelCall::new("k", Vec::new(), || {});
    for warps in [10, 9000, 10] {
        // SAFETY: no arguments.
        unsafe { session.record(&call, &LaunchShape::linear(32 * warps, 32)) }.unwrap();
    }
    assert_eq!(session.finish().unwrap().2.recorded, 3);
    // The second does not fit behind the first, and then takes most of it.
    assert_eq!(device.launched, ["k", "merge 1 of 10", "k", "merge 1 of 9000", "k", "merge 1 of 10"]);
    assert!(device.pools[1].log_units > device.pools[0].log_units);
    assert_eq!(
        (device.pools[2].log_units, device.pools[2].logs),
        (device.pools[1].log_units, device.pools[1].logs)
    );
}

#[test]
fn launches_share_memory_for_states_if_they_are_in_global_memory() {
    let states = |placement, dual| {
        let mut device = FakeDevice::of(vec![script(&[(0, 0, 1)]); 3]);
        let options = SessionOptions { placement, dual, ..options(40_000) };
        let mut session = Session::start(&mut device, &PROGRAM, &options, Shared::default()).unwrap();
        let call = KernelCall::new("k", Vec::new(), || {});
        for warps in [10, 20_000, 10] {
            // SAFETY: no arguments.
            unsafe { session.record(&call, &LaunchShape::linear(32 * warps, 32)) }.unwrap();
        }
        let memory = session.pool.states.map_or(0, |states| states.bytes);
        session.finish().unwrap();
        assert!(device.memory.is_empty(), "all memory is given back");
        ([0, 1, 2].map(|launch| device.pools[launch].states), memory)
    };
    assert_eq!(states(Placement::Shared, false), ([0; 3], 0));
    for (dual, bytes) in [(false, 896), (true, 1408)] {
        let ([first, second, third], memory) = states(Placement::Global, dual);
        assert!(first != 0 && first.is_multiple_of(128) && second.is_multiple_of(128));
        assert_eq!((third, memory), (second, 20_000 * bytes));
    }
}

#[test]
fn log_memory_that_logs_cannot_name_is_refused() {
    let mut device = FakeDevice { base: 256, ..FakeDevice::default() };
    let error = Session::start(&mut device, &PROGRAM, &options(40), Shared::default()).unwrap_err();
    assert!(error.to_string().contains("must lie above the first 4 GiB"), "{error}");
    // Six million slices are more than 31 bits can number.
    let error = pool_for(6_000_000, false, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("launch smaller grids"), "{error}");
}

#[test]
fn flush_counts_and_writes_everything_so_far() {
    let mut device = FakeDevice::of(vec![script(&[(0, 0, 1)]); 2]);
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), file.clone()).unwrap();
    launch(&mut session, "k").unwrap();
    assert_eq!(session.total().recorded, 0);
    session.flush().unwrap();
    assert_eq!(session.total().recorded, 1);
    assert_eq!(contents(&file.0.lock().unwrap()).0.len(), 1);
    launch(&mut session, "k").unwrap();
    session.flush().unwrap();
    assert_eq!(session.total().recorded, 2);
    assert_eq!(session.finish().unwrap().2.recorded, 2);
}

#[test]
fn what_came_before_a_launch_that_fails_is_written() {
    for in_kernel in [false, true] {
        let failing = Script { fails: true, in_kernel, ..script(&[(0, 0, 9)]) };
        let mut device = FakeDevice::of([script(&[(1, 0, 1)]), failing]);
        let file = Shared::default();
        let mut session = Session::start(&mut device, &PROGRAM, &options(40), file.clone()).unwrap();
        launch(&mut session, "k").unwrap();
        assert!(matches!(launch(&mut session, "other"), Err(SessionError::Device(_))));
        assert!(matches!(launch(&mut session, "k"), Err(SessionError::Unusable)));
        assert!(matches!(session.flush(), Err(SessionError::Unusable)));
        drop(session);
        assert!(device.memory.is_empty(), "all memory is given back");
        assert_eq!(contents(&file.0.lock().unwrap()), (vec![(0, 1, 0, event(1))], 1));
    }
}

#[test]
fn a_session_that_is_dropped_writes_what_it_has() {
    let mut device = FakeDevice::of([script(&[(1, 0, 1)])]);
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), file.clone()).unwrap();
    launch(&mut session, "k").unwrap();
    drop(session);
    assert!(device.memory.is_empty(), "all memory is given back");
    assert_eq!(contents(&file.0.lock().unwrap()), (vec![(0, 1, 0, event(1))], 1));
}

#[test]
fn trace_points_that_the_codec_cannot_carry_are_refused_before_anything_runs() {
    use warptrace_device::{TracePoint, TracePoints};
    use warptrace_format::codec::{EclParams, PredictParams};
    let refused = |codec, ids: [u16; 2]| {
        let points = ["FIRST", "SECOND"];
        let point = |at: usize| TracePoint { id: ids[at], name: points[at], what: "" };
        let points: &'static [TracePoint] = Vec::leak(vec![point(0), point(1)]);
        let source = "trace_loc(at::FIRST);\n\ntrace_loc(at::SECOND);";
        let points = [TracePoints { module: "at", file: "k.rs", source, points }];
        let program = TracedProgram { kernels: &[("k", "")], points: &points };
        let mut device = FakeDevice::of([]);
        let options = SessionOptions { codec, ..options(40) };
        let file = Shared::default();
        let started = Session::start(&mut device, &program, &options, file.clone()).map(|session| {
            session.finish().unwrap();
        });
        if started.is_err() {
            assert!(device.launched.is_empty() && device.memory.is_empty(), "the device was not used");
            assert!(file.0.lock().unwrap().is_empty(), "nothing was written");
        }
        started.err().map(|error| error.to_string())
    };
    assert_eq!(
        refused(CodecSpec::Ecl(EclParams::DEFAULT), [255, 256]).unwrap(),
        "trace point `SECOND` (k.rs:3) has the id 256, but the codec `ecl` carries ids up to 255: give it a smaller id, \
         or record with a codec that carries larger ones (`raw` and `predict` do, up to 65535)"
    );
    let wide = [CodecSpec::Raw, CodecSpec::Predict(PredictParams::DEFAULT)];
    for codec in wide {
        assert_eq!(refused(codec, [256, 65_535]), None);
    }
    for codec in wide.into_iter().chain([CodecSpec::Ecl(EclParams::DEFAULT)]) {
        assert_eq!(
            refused(codec, [7, 7]).unwrap(),
            "trace points `FIRST` (k.rs:1) and `SECOND` (k.rs:3) both have the id 7; \
             an id is unique in a program, over all of its kernels: give each its own"
        );
    }
}

#[test]
fn damaged_chunks_are_named() {
    let long = Script { chunks: vec![(1, 0, vec![1; 993])], ..Script::default() };
    let mut device = FakeDevice::of([long]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), Shared::default()).unwrap();
    launch(&mut session, "k").unwrap();
    let error = session.flush().unwrap_err();
    assert!(error.to_string().contains("launch 0, warp 1, is damaged: it claims 993 bytes"), "{error}");
    assert!(matches!(session.finish(), Err(SessionError::Unusable)));
}

/// A disk with room for the file's beginning.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_session_and_gives_the_memory_back() {
    let mut device = FakeDevice::of([script(&[(1, 0, 1)])]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), Full(300)).unwrap();
    launch(&mut session, "k").unwrap();
    assert!(matches!(session.finish(), Err(SessionError::Write(_))));
    assert!(device.memory.is_empty(), "all memory is given back");
}

warptrace_device::kernel! {
    /// Each lane makes as many rounds as its number says, `rounds` times.
    fn staircase(rounds: u32) {
        for _ in 0..rounds {
            for _ in 0..warptrace_device::simt::lane() {
                warptrace_device::trace_loc(1);
            }
            warptrace_device::trace_loc(2);
        }
    }
}

/// Records four warps that make 32 events in each of `rounds` rounds. Answers the report and the chunks written.
fn staircases(codec: CodecSpec, rounds: u32, chunks: u64) -> (LaunchReport, Vec<Found>) {
    let program = TracedProgram { kernels: &[("staircase", "")], points: &[] };
    let mut device = crate::SimDevice::new(crate::SimOptions { threads: Some(1), ..Default::default() });
    let options = SessionOptions { codec, ..options(chunks) };
    let mut session = Session::start(&mut device, &program, &options, Shared::default()).unwrap();
    // SAFETY: no memory among the arguments.
    unsafe { session.record(&staircase(rounds), &LaunchShape::linear(128, 64)) }.unwrap();
    let (file, summary, report) = session.finish().unwrap();
    assert_eq!(summary.events, report.recorded);
    let found = contents(&file.0.lock().unwrap()).0;
    (report, found)
}

#[test]
fn a_pool_too_small_loses_events_and_counts_every_one() {
    use warptrace_format::codec::{EclParams, PredictParams};
    let codecs =
        [CodecSpec::Raw, CodecSpec::Ecl(EclParams::DEFAULT), CodecSpec::Predict(PredictParams::DEFAULT)];
    for codec in codecs {
        // What fills a part of a chunk, one or two, and several.
        for rounds in [1, 2, 11] {
            let attempted = u64::from(4 * 32 * rounds);
            let (mut some, mut all) = (0, 0);
            for chunks in (1..24).chain([400]) {
                let (report, found) = staircases(codec, rounds, chunks);
                assert_eq!(report.attempted, attempted, "{codec:?}, {rounds} rounds, {chunks} chunks");
                assert_eq!(
                    report.recorded + report.lost,
                    attempted,
                    "{codec:?}, {rounds} rounds, {chunks} chunks"
                );
                assert_eq!(report.chunks, found.len() as u64);
                if codec == CodecSpec::Raw {
                    let bytes: usize = found.iter().map(|(.., payload)| payload.len()).sum();
                    assert_eq!(bytes as u64, 6 * report.recorded, "{rounds} rounds, {chunks} chunks");
                }
                some += u32::from(report.lost > 0 && report.recorded > 0);
                all += u32::from(report.lost == 0);
            }
            assert!(all > 0, "{codec:?}, {rounds} rounds: the largest pool has room for all");
            assert!(some > 0, "{codec:?}, {rounds} rounds: no pool has room for a part");
        }
    }
}
