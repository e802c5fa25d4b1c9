//! A device that executes nothing: launches follow a script.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use warptrace_abi::log::{
    ENTRY_BYTES, LOG_ALIGNMENT, LaunchLogs, LoggedLaunch, MAX_FIRST_ENTRIES, MAX_SEGMENT_ENTRIES,
    RESERVED_ENTRIES, SEGMENT_MULTIPLE,
};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_device::KernelCall;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::codec::raw::PAYLOAD_EVENT_BYTES;
use warptrace_format::file::DeviceInfo;

use crate::device::not_streamed;
use crate::{
    Allocation, Device, DeviceError, DeviceFacts, EncodeJob, Encoded, HostClock, LaunchShape, LaunchTime,
    Logs, MemoryType, Prepare, Recording, Traced, packed,
};

const ACCOUNT: u64 = size_of::<WarpAccount>() as u64;

#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    /// Warp, sequence and payload of each chunk to encode.
    pub(super) chunks: Vec<(u32, u32, Vec<u8>)>,
    /// The field `runs` of their headers.
    pub(super) runs: u32,
    pub(super) segments: u32,
    pub(super) fails: bool,
}

/// Returns a script with chunks, given as warp, sequence, and the location of a single event.
pub(super) fn script(chunks: &[(u32, u32, u8)]) -> Script {
    let chunks = chunks.iter().map(|&(warp, sequence, location)| (warp, sequence, event(location))).collect();
    Script { chunks, ..Script::default() }
}

pub(super) fn event(location: u8) -> Vec<u8> {
    vec![location, 0, 1, 0, 0, 0]
}

/// The kernels and the tracing options of a call of `prepare`.
pub(super) type Prepared = (Vec<String>, Option<(Recording, CodecSpec)>);

#[derive(Debug)]
pub(super) struct FakeDevice {
    pub(super) memory: BTreeMap<u64, Vec<u8>>,
    /// Largest possible allocation in bytes.
    pub(super) largest: u64,
    pub(super) allocated: u64,
    pub(super) peak: u64,
    /// Maximum chunks per call of `collect`.
    pub(super) collects: u32,
    pub(super) collected: u32,
    /// Searches for classes.
    pub(super) searched: u32,
    /// Whether it is given up before it packs accounts.
    pub(super) gives_up: bool,
    /// Launched kernels, and encode steps with their numbers of launches and streams, in order.
    pub(super) launched: Vec<String>,
    pub(super) launches: Vec<(LaunchLogs, u32, u32)>,
    pub(super) prepared: Vec<Prepared>,
    pub(super) recordings: Vec<Recording>,
    script: VecDeque<Script>,
    /// Whether a kernel has failed. Then nothing can be read, as on a GPU.
    has_failed: bool,
    /// Ends of the log entries that belong, or may belong, to launches that are not encoded yet.
    taken: u64,
    logs_end: u32,
    logged: BTreeMap<u32, VecDeque<(u32, u32, Vec<u8>)>>,
    /// The field `runs` of the headers of the last launch.
    runs: u32,
}

impl FakeDevice {
    pub(super) fn new(script: impl IntoIterator<Item = Script>) -> Self {
        Self {
            memory: BTreeMap::new(),
            largest: u64::MAX,
            allocated: 0,
            peak: 0,
            collects: u32::MAX,
            collected: 0,
            searched: 0,
            gives_up: false,
            launched: Vec::new(),
            launches: Vec::new(),
            prepared: Vec::new(),
            recordings: Vec::new(),
            script: script.into_iter().collect(),
            has_failed: false,
            taken: 0,
            logs_end: 0,
            logged: BTreeMap::new(),
            runs: 0,
        }
    }

    pub(super) fn logs(&self, number: usize) -> LaunchLogs {
        self.launches[number].0
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

    fn add(&mut self, address: u64, more: u32) -> u32 {
        let before = self.word(address);
        self.put(address, &[before + more]);
        before
    }

    /// Reads the counters of claims. No test needs the upper halves of counters.
    fn claims(&mut self, address: u64) -> Claims {
        let [log_entries, merged_entries] = [0, 8].map(|offset| self.word(address + offset).into());
        let [chunks, serial, waiting, reserved] = [16, 20, 24, 28].map(|offset| self.word(address + offset));
        Claims { log_entries, merged_entries, chunks, serial, waiting, reserved }
    }

    fn run(&mut self, logs: &LaunchLogs, tracks: u32) -> Result<(), DeviceError> {
        let Script { chunks, runs, segments, fails } =
            self.script.pop_front().expect("a script for each launch");
        assert!(logs.logs.is_multiple_of(LOG_ALIGNMENT));
        let most_of_segment = if logs.ring == 0 { MAX_SEGMENT_ENTRIES } else { MAX_FIRST_ENTRIES / 2 };
        for (entries, most) in
            [(logs.first_entries, MAX_FIRST_ENTRIES), (logs.segment_entries, most_of_segment)]
        {
            assert!(entries.is_power_of_two() && (SEGMENT_MULTIPLE..=most).contains(&entries), "{logs:?}");
        }
        // First segments must follow all reserved and claimed entries, and claims continue there.
        assert!(u64::from(logs.first_segments) >= self.taken, "entry {} is taken", logs.first_segments);
        assert!(logs.first_segments >= RESERVED_ENTRIES);
        assert!(logs.first_segments.is_multiple_of(logs.first_entries));
        let claims = self.claims(logs.claims);
        let next = u64::from(logs.claims_from) + claims.log_entries;
        let fixed_end = u64::from(logs.first_segment(tracks, 0, 0));
        assert!(fixed_end <= next && next <= u64::from(logs.claims_end), "{logs:?}");
        assert!(next.is_multiple_of(u64::from(logs.segment_entries)), "a segment begins at {next}");
        let entries = segments * logs.segment_entries;
        self.taken = next + u64::from(entries);
        self.logs_end = self.logs_end.max(logs.claims_end);
        self.bytes(logs.logs, logs.claims_end as usize * ENTRY_BYTES as usize);
        let accounts = (u64::from(logs.warps * tracks) * ACCOUNT) as usize;
        assert!(
            self.bytes(logs.accounts, accounts).iter().all(|&byte| byte == 0),
            "accounts start from zero"
        );
        self.add(logs.claims, entries);
        self.logged.insert(logs.launch, chunks.into());
        self.runs = runs;
        self.has_failed |= fails;
        if fails {
            return Err(DeviceError::Unsupported { problem: "it failed".to_owned() });
        }
        Ok(())
    }

    /// Encodes the scripted chunks of one launch, as far as the pool allows; returns whether all are done.
    fn encode_launch(&mut self, pool: &PoolDescriptor, logged: &LoggedLaunch) -> bool {
        let found = self.launches.iter().find(|(logs, ..)| logs.launch == logged.launch);
        let &(logs, tracks, block_threads) = found.expect("a launch");
        assert_eq!((logs.logs, logs.claims), (pool.logs, pool.claims));
        // Merged runs must have at least the entries after all logs.
        assert!(pool.merged_from <= self.logs_end);
        assert!(u64::from(pool.merged_from) >= self.taken.min(self.logs_end.into()));
        let expected = LoggedLaunch {
            accounts: logs.accounts,
            first_lanes: logs.first_lanes,
            first_entries: logs.first_entries,
            segment_entries: logs.segment_entries,
            warps: logs.warps,
            block_threads,
            launch: logs.launch,
            first_stream: logged.first_stream,
            tracks,
            first_segments: logs.first_segments,
            ring: logs.ring,
        };
        assert_eq!(*logged, expected);
        let Some(mut chunks) = self.logged.remove(&logged.launch) else { return true };
        while let Some((warp, sequence, payload)) = chunks.pop_front() {
            let account = logged.accounts + ACCOUNT * u64::from(warp);
            let events = payload.len() as u32 / PAYLOAD_EVENT_BYTES;
            let chunk = self.add(pool.claims + 16, 1);
            if chunk >= pool.chunk_count {
                self.add(pool.claims + 24, 1);
                chunks.push_front((warp, sequence, payload));
                self.logged.insert(logged.launch, chunks);
                return false;
            }
            let at = pool.chunks + u64::from(chunk) * u64::from(pool.chunk_bytes);
            self.put(at, &[warp, sequence, events, payload.len() as u32, logged.launch, 0, self.runs, 0]);
            let room = (pool.chunk_bytes as usize - 32).min(payload.len());
            self.bytes(at + 32, room).copy_from_slice(&payload[..room]);
            self.add(account, events);
            self.add(account + 8, events);
            self.add(account + 24, 1);
        }
        for stream in 0..u64::from(logged.warps * logged.tracks) {
            let finished = logged.accounts + ACCOUNT * stream + 28;
            assert_eq!(self.add(finished, 1), 0, "each warp is merged once");
        }
        true
    }
}

impl Device for FakeDevice {
    fn facts(&self) -> DeviceFacts {
        DeviceFacts {
            info: DeviceInfo::simulator("fake"),
            ordinal: None,
            uuid: None,
            clock: HostClock::System,
            multiprocessors: 1,
            resident_threads: u64::MAX,
            memory_bytes: 1 << 30,
            free_bytes: 64 << 20,
        }
    }

    fn allocate(&mut self, bytes: u64, _: MemoryType) -> Result<Allocation, DeviceError> {
        if bytes > self.largest {
            return Err(DeviceError::OutOfMemory { bytes, reason: "there is no more".to_owned() });
        }
        self.allocated += bytes;
        self.peak = self.peak.max(self.allocated);
        // Like addresses from a driver, multiples of 256 but of no larger power of two.
        let address = self.memory.last_key_value().map_or((1 << 32) + 256, |(start, memory)| {
            (start + memory.len() as u64).next_multiple_of(1 << 16) + 256
        });
        self.memory.insert(address, vec![0; bytes as usize]);
        Ok(Allocation { address, bytes })
    }

    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        self.allocated -= allocation.bytes;
        self.memory.remove(&allocation.address).expect("an allocation");
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.bytes(address, bytes.len()).copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        if self.has_failed {
            return Err(DeviceError::Unsupported { problem: "a kernel has failed".to_owned() });
        }
        bytes.copy_from_slice(self.bytes(address, bytes.len()));
        Ok(())
    }

    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.bytes(address, bytes as usize).fill(value);
        Ok(())
    }

    fn prepare(&mut self, prepare: &Prepare<'_>) -> Result<u64, DeviceError> {
        let kernels = prepare.kernels.iter().map(|&kernel| kernel.to_owned()).collect();
        self.prepared.push((kernels, prepare.traced));
        Ok(u64::MAX)
    }

    fn encode(&mut self, job: EncodeJob<'_>) -> Result<Encoded, DeviceError> {
        let (pool, launches, table) = match job {
            EncodeJob::Accounts { .. } if self.gives_up => return Err(DeviceError::GivenUp),
            EncodeJob::Accounts { .. } => return Ok(Encoded::default()),
            EncodeJob::Flatten(_) => return Err(not_streamed()),
            // Each stream is a separate class.
            EncodeJob::Classes { pool, launches, .. } => {
                let streams: u32 = launches.iter().map(|launch| launch.warps * launch.tracks).sum();
                self.searched += 1;
                let numbers: Vec<u8> = (0..streams).flat_map(u32::to_le_bytes).collect();
                self.bytes(pool.classes, numbers.len()).copy_from_slice(&numbers);
                return Ok(Encoded::default());
            }
            EncodeJob::Logs { codec: _, pool, launches, table } => (pool, launches, table),
            EncodeJob::Collect { first, chunk_bytes, count, data: _, scratch, to } => {
                self.collected += 1;
                assert!(scratch.bytes >= u64::from(chunk_bytes) + 256);
                self.bytes(scratch.address, scratch.bytes as usize).fill(0xdd);
                let collected = count.min(self.collects);
                let chunks = self.bytes(first, (chunk_bytes * collected) as usize);
                chunks.chunks(chunk_bytes as usize).for_each(|chunk| packed::push(to.vec(), chunk));
                return Ok(Encoded { collected, ..Encoded::default() });
            }
        };
        self.bytes(pool.logs, pool.merged_end as usize * ENTRY_BYTES as usize);
        self.bytes(table.address, size_of_val(launches)).fill(0xdd);
        let mut counters = self.claims(pool.claims);
        counters.log_entries = 0;
        assert_eq!(counters, Claims::default(), "each round begins anew");
        let (mut streams, mut is_last) = (0, true);
        for launch in launches {
            assert_eq!(launch.first_stream, streams, "streams are counted on from launch to launch");
            streams += launch.warps * launch.tracks;
            is_last &= self.encode_launch(pool, launch);
        }
        self.launched.push(format!("encode {} of {streams}", launches.len()));
        if is_last {
            (self.taken, self.logs_end) = (0, 0);
        }
        Ok(Encoded { claims: self.claims(pool.claims), time: Duration::from_millis(3), collected: 0 })
    }

    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        traced: Option<Traced<'_>>,
    ) -> Result<LaunchTime, DeviceError> {
        let Some(Traced { recording, logs, .. }) = traced else {
            self.launched.push(format!("{} untraced", call.name()));
            return Ok(LaunchTime { kernel: Duration::from_micros(1), claims: Claims::default() });
        };
        let Logs::Kept(&logs) = logs else { return Err(not_streamed()) };
        let tracks = recording.tracks();
        self.launched.push(call.name().to_owned());
        self.launches.push((logs, tracks, logs.chosen.block_threads(shape.block.iter().product())));
        self.recordings.push(recording);
        self.run(&logs, tracks)?;
        Ok(LaunchTime { kernel: Duration::from_micros(1), claims: self.claims(logs.claims) })
    }
}
