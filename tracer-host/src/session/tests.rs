use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use warptrace_format::file::{DeviceInfo, Frame, SECTION_HEADER_BYTES, SectionHeader};
use warptrace_format::pool::WarpAccount;

use super::*;
use crate::{Allocation, DeviceError, packed};

/// What a launch leaves in the pool, or why it fails.
#[derive(Clone, Debug, Default)]
struct Script {
    /// Warp, sequence and payload of each chunk.
    chunks: Vec<(u32, u32, Vec<u8>)>,
    fails: bool,
}

/// Memory without a processor: launches do what a script says.
#[derive(Default)]
struct FakeDevice {
    memory: BTreeMap<u64, Vec<u8>>,
    script: VecDeque<Script>,
    /// Pool and accounts that each launch was given.
    pools: Vec<warptrace_format::pool::PoolDescriptor>,
    /// Calls of `collect`.
    collected: u32,
    /// How many logs each launch of the encoder has found.
    encoded: Vec<u32>,
}

/// Stands in the header of a log that is to be encoded where a chunk has its length.
const LEFT: u32 = u32::MAX;

impl FakeDevice {
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

    /// The encoder of the logs that warps have left: here they are empty.
    fn encode(&mut self, call: &KernelCall, pool: &warptrace_format::pool::PoolDescriptor) -> LaunchTime {
        let [first, count] = [0, 1].map(|at| {
            u32::from_le_bytes(call.arguments()[at].as_slice().try_into().expect("an argument of four bytes"))
        });
        let mut found = 0;
        for index in first..first + count {
            let at = pool.chunks + u64::from(index) * u64::from(pool.chunk_bytes);
            if self.word(at + 12) == LEFT {
                self.put(at, &[0; 4]);
                found += 1;
            }
        }
        self.encoded.push(found);
        LaunchTime { kernel: Duration::ZERO, claimed: self.word(pool.next_chunk) }
    }
}

impl Device for FakeDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::simulator("fake")
    }

    fn multiprocessors(&self) -> u32 {
        1
    }

    fn resident_warps(&self, _: &LaunchShape) -> u32 {
        32
    }

    fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        let address = self
            .memory
            .last_key_value()
            .map_or(256, |(start, memory)| (start + memory.len() as u64).next_multiple_of(256) + 256);
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
    ) -> Result<(), DeviceError> {
        self.collected += 1;
        let chunks = self.bytes(first, (chunk_bytes * count) as usize);
        chunks.chunks(chunk_bytes as usize).for_each(|chunk| packed::push(to, chunk));
        Ok(())
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
        _: &LaunchShape,
        tracing: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError> {
        let pool = tracing.expect("sessions trace").pool;
        if call.name() == "warptrace_encode" {
            return Ok(self.encode(call, &pool));
        }
        let Script { chunks, fails } = self.script.pop_front().expect("a script for each launch");
        self.pools.push(pool);
        let claims = self.word(pool.next_chunk);
        // Each warp leaves its log, where one is reserved for it.
        for warp in 0..pool.warps {
            if let Some(log) = pool.first_segment(0, warp) {
                let at = pool.chunks + u64::from(log) * u64::from(pool.chunk_bytes);
                self.put(at, &[warp, 0, 0, LEFT, pool.launch, 0, 0, 0]);
            }
        }
        let mut started = vec![false; pool.warps as usize];
        let mut claimed = claims + pool.reserved_count;
        let mut accounts = vec![WarpAccount { finished: 1, ..WarpAccount::default() }; pool.warps as usize];
        for (warp, sequence, payload) in chunks {
            let events = payload.len() as u32 / 5;
            let account = &mut accounts[warp as usize];
            account.attempted += u64::from(events);
            let first = !std::mem::replace(&mut started[warp as usize], true);
            let chunk = match pool.first_chunk(0, warp).filter(|_| first) {
                Some(reserved) => reserved,
                None => {
                    claimed += 1;
                    claimed - 1
                }
            };
            if chunk < pool.chunk_count {
                let at = pool.chunks + u64::from(chunk) * u64::from(pool.chunk_bytes);
                self.put(at, &[warp, sequence, events, payload.len() as u32, pool.launch, 0, 0, 0]);
                let room = (pool.chunk_bytes as usize - 32).min(payload.len());
                self.bytes(at + 32, room).copy_from_slice(&payload[..room]);
                account.recorded += u64::from(events);
                account.chunks += 1;
            } else {
                account.lost += u64::from(events);
            }
        }
        // Warps without a chunk in the script have found nothing to record.
        for (warp, _) in started.iter().enumerate().filter(|(_, started)| !**started) {
            if let Some(chunk) = pool.first_chunk(0, warp as u32) {
                let at = pool.chunks + u64::from(chunk) * u64::from(pool.chunk_bytes);
                self.put(at, &[warp as u32, 0, 0, 0, pool.launch, 0, 0, 0]);
            }
        }
        let claims = claimed - pool.reserved_count;
        self.put(pool.next_chunk, &[claims]);
        for (at, account) in (pool.accounts..).step_by(32).zip(accounts) {
            assert!(self.bytes(at, 32).iter().all(|&byte| byte == 0), "accounts start from zero");
            let WarpAccount { attempted, recorded, lost, chunks, finished } = account;
            self.put(at, &[attempted as u32, 0, recorded as u32, 0, lost as u32, 0, chunks, finished]);
        }
        if fails {
            let problem = format!("{} failed", call.name());
            return Err(DeviceError::Unsupported { problem });
        }
        Ok(LaunchTime { kernel: Duration::from_micros(1), claimed: claims })
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
    vec![location, 1, 0, 0, 0]
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
    Script { chunks, fails: false }
}

#[test]
fn short_launches_share_one_drain() {
    let mut device = FakeDevice {
        script: (1..=10).map(|location| script(&[(1, 0, location), (0, 0, location)])).collect(),
        ..FakeDevice::default()
    };
    let mut session = Session::start(&mut device, &PROGRAM, &options(1000), Shared::default()).unwrap();
    for _ in 0..10 {
        assert_eq!(launch(&mut session, "k").unwrap().kernel, Duration::from_micros(1));
    }
    let (file, summary, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.recorded, report.lost), (20, 20, 0));
    assert_eq!((report.chunks, report.payload_bytes), (20, 100));
    assert_eq!(report.kernel, Duration::from_micros(10));
    assert_eq!(summary.events, 20);
    assert_eq!(device.collected, 1);
    assert_eq!(device.encoded, [20], "each warp's log, once");
    assert!(device.memory.is_empty(), "all memory is given back");
    let (chunks, accounts) = contents(&file.0.lock().unwrap());
    let expected: Vec<_> =
        (0..10u32).flat_map(|number| [0, 1].map(|warp| (number, warp, 0, event(number as u8 + 1)))).collect();
    assert_eq!((chunks, accounts), (expected, 10));
}

#[test]
fn the_pool_is_drained_before_a_launch_that_may_not_find_room() {
    // A quarter of 40 chunks is 10. Each launch has two warps, and so four reserved chunks, two of them for logs, and one of the
    // others stays empty here: after the first launch nothing is drained, and the second would not fit twice.
    let large = || script(&(0..6).map(|sequence| (0, sequence, 1)).collect::<Vec<_>>());
    let larger = || script(&(0..29).map(|sequence| (0, sequence, 1)).collect::<Vec<_>>());
    let mut device = FakeDevice { script: [large(), larger(), large()].into(), ..FakeDevice::default() };
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), Shared::default()).unwrap();
    launch(&mut session, "other").unwrap();
    launch(&mut session, "k").unwrap();
    launch(&mut session, "k").unwrap();
    let (_, _, report) = session.finish().unwrap();
    // Nobody knew what the first launch of `k` would need: 9 and 32 chunks are one more than the pool has.
    assert_eq!((report.attempted, report.recorded, report.lost), (41, 40, 1));
    assert_eq!(device.pools[2].launch, 2);
    assert_eq!(device.encoded, [4, 2], "a drain after the second launch, and one at the end");

    // The same again, now that one launch of the kernel came before.
    let mut device = FakeDevice { script: [larger(), large(), larger()].into(), ..FakeDevice::default() };
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), Shared::default()).unwrap();
    for kernel in ["k", "other", "k"] {
        launch(&mut session, kernel).unwrap();
    }
    assert_eq!(session.finish().unwrap().2.lost, 0);
}

#[test]
fn flush_counts_and_writes_everything_so_far() {
    let mut device = FakeDevice { script: vec![script(&[(0, 0, 1)]); 2].into(), ..FakeDevice::default() };
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
    let failing = Script { fails: true, ..script(&[(0, 0, 9)]) };
    let mut device = FakeDevice { script: [script(&[(1, 0, 1)]), failing].into(), ..FakeDevice::default() };
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

#[test]
fn a_session_that_is_dropped_writes_what_it_has() {
    let mut device = FakeDevice { script: [script(&[(1, 0, 1)])].into(), ..FakeDevice::default() };
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(40), file.clone()).unwrap();
    launch(&mut session, "k").unwrap();
    drop(session);
    assert!(device.memory.is_empty(), "all memory is given back");
    assert_eq!(contents(&file.0.lock().unwrap()), (vec![(0, 1, 0, event(1))], 1));
}

#[test]
fn damaged_chunks_are_named() {
    let long = |payload: usize| Script { chunks: vec![(1, 0, vec![1; payload])], fails: false };
    let mut device = FakeDevice { script: [long(993)].into(), ..FakeDevice::default() };
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
    let mut device = FakeDevice { script: [script(&[(1, 0, 1)])].into(), ..FakeDevice::default() };
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
        // A segment of 1,024 bytes has room for 62 runs: from one to half a dozen of them, and more than 255 runs.
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
                    assert_eq!(bytes as u64, 5 * report.recorded, "{rounds} rounds, {chunks} chunks");
                }
                some += u32::from(report.lost > 0 && report.recorded > 0);
                all += u32::from(report.lost == 0);
            }
            assert!(all > 0, "{codec:?}, {rounds} rounds: the largest pool has room for all");
            assert!(some > 0, "{codec:?}, {rounds} rounds: no pool has room for a part");
        }
    }
}
