//! Streamed logs: the host empties them while kernels run (`warptrace_abi::stream`).
//!
//! ```text
//!   lanes ──▶ segments ──▶ scan ──▶ order ──▶ encoder ──▶ packed chunks ──▶ writer
//!     ▲                     │
//!     └──── queue ◀─ supply ┘
//! ```
//! A *scan* copies all segments in use and takes their new entries. It recycles segments that are full or
//! whose warps have ended. Scans repeat while a kernel runs, and after it when the memory is needed.

mod attend;
mod launch;
mod order;
mod partition;
mod plan;
mod rounds;
mod runs;
mod scan;
mod segments;
mod supply;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use warptrace_abi::log::ENTRY_BYTES;
use warptrace_abi::stream::{StreamLogs, StreamState};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LaunchInfo;

use self::launch::Launch;
use self::partition::{Needs, Partition};
use self::rounds::Rounds;
use self::segments::AllInUse;
use self::supply::Supply;
use super::memory::Division;
use super::worker::{Drained, Span, append};
use super::{MemoryUse, SessionError};
use crate::{Allocation, Device, DeviceError, LiveMemory, MAX_READ, MemoryType, Recording};

/// Maximum concurrent rounds: while chunks of one are copied, another one is encoded.
const ROUNDS_AT_ONCE: usize = 3;
/// Assumed number of warps in the first round.
const FITTED_AT_FIRST: usize = 1024;

pub(super) struct Streams {
    codec: CodecSpec,
    tracks: u32,
    chunk_bytes: u32,
    times: u32,
    span_bytes: u64,
    max_wait: Duration,
    memory: Allocation,
    partition: Option<Partition>,
    supply: Supply,
    tables_used: u64,
    /// Maximum segments in use at once.
    most_in_use: usize,
    in_use: AllInUse,
    /// Encoders on the device for warps that have left. They use `area`, the last part of `memory`.
    rounds: Vec<Rounds>,
    area: Allocation,
    /// Number of warps that fit into the last round that was full.
    fitted: usize,
    /// Time since which lanes wait and no segment has become free; `None` if no lane waits.
    short_since: Option<Instant>,
    /// The part of the warps that the host took over last.
    takeover_part: u32,
    pub(super) warps_in_rounds: u64,
    launches: BTreeMap<u32, Launch>,
    /// Whether a lane has given up waiting. Other lanes then do not wait either.
    gave_up: bool,
}

impl Streams {
    pub(super) fn new(
        device: &mut dyn Device,
        recording: Recording,
        codec: CodecSpec,
        division: Division,
        max_wait: Duration,
    ) -> Result<Self, SessionError> {
        let memory = device.allocate(division.limit, MemoryType::Device)?;
        let mut rounds = Vec::new();
        let mut area = Allocation { address: memory.address + memory.bytes, bytes: 0 };
        if let Some(bytes) = plan::area_bytes(memory.bytes) {
            while rounds.len() < ROUNDS_AT_ONCE
                // SAFETY: `free` ends the rounds and their handles before it frees the memory. Dropping this
                // struct also ends them, and does not free the memory.
                && let Some(device) = unsafe { device.second_handle(memory, codec)? }
            {
                rounds.push(Rounds::start(device, codec)?);
                area = Allocation { address: memory.address + memory.bytes - bytes, bytes };
            }
        }
        Ok(Self {
            codec,
            tracks: recording.tracks(),
            chunk_bytes: division.chunk_bytes,
            times: division.times,
            span_bytes: division.span_bytes,
            max_wait,
            memory,
            partition: None,
            supply: Supply::new(0),
            tables_used: 0,
            most_in_use: 0,
            in_use: AllInUse::default(),
            rounds,
            area,
            fitted: FITTED_AT_FIRST,
            short_since: None,
            takeover_part: 0,
            warps_in_rounds: 0,
            launches: BTreeMap::new(),
            gave_up: false,
        })
    }

    /// Returns the memory of the session; segments in use count as full.
    pub(super) fn memory_use(&self) -> MemoryUse {
        let each = self.partition.map_or(0, |partition| u64::from(partition.segment_entries * ENTRY_BYTES));
        let filled = self.most_in_use as u64 * each;
        MemoryUse { limit: self.memory.bytes, peak: self.memory.bytes, filled }
    }

    /// Returns true if a launch with this many resident threads fits without a scan of earlier launches.
    pub(super) fn has_room(&self, resident: u64, info: &LaunchInfo) -> bool {
        let needs = Needs::new(info, self.tracks, self.span_bytes, resident);
        self.partition.is_some_and(|partition| {
            let tables = self.tables_used + needs.tables <= partition.table_bytes;
            // Segments of earlier launches are freed by the first scan for this one.
            tables && u64::from(self.supply.segments()) > needs.lanes
        })
    }

    /// Prepares memory for a launch. Unless it [has room](Self::has_room), nothing may be in use.
    pub(super) fn prepare(
        &mut self,
        device: &mut dyn Device,
        resident: u64,
        info: &LaunchInfo,
    ) -> Result<StreamLogs, SessionError> {
        let needs = Needs::new(info, self.tracks, self.span_bytes, resident);
        let partition = match self.partition {
            Some(partition) if self.has_room(resident, info) => partition,
            _ => self.divide(device, needs)?,
        };
        let tables = partition.tables + self.tables_used;
        device.fill(self.memory.address + tables, needs.tables, 0)?;
        self.tables_used += needs.tables;
        if self.gave_up {
            self.let_wait(device.live()?)?;
        }
        let launch = Launch::new(*info, self.tracks, tables);
        let (warps, ended) = (launch.warps, launch.ended_at(self.span_bytes));
        self.launches.insert(info.number(), launch);
        let at = |offset: u64| self.memory.address + offset;
        Ok(StreamLogs {
            segments: at(partition.segments),
            queue: at(partition.queue),
            state: at(partition.state),
            lost: at(tables),
            ended: at(ended),
            stall_nanoseconds: u64::try_from(self.max_wait.as_nanos()).unwrap_or(u64::MAX),
            warps,
            launch: info.number(),
            segment_entries: partition.segment_entries,
            slots: self.supply.slots(),
            chosen: info.chosen(),
            unused: 0,
        })
    }

    /// Divides the memory again, and fills the queue. Nothing may be in use.
    fn divide(&mut self, device: &mut dyn Device, needs: Needs) -> Result<Partition, SessionError> {
        let partition = Partition::new(self.memory.bytes - self.area.bytes, needs);
        let partition = partition.map_err(|error| self.of_whole_limit(error))?;
        // No entry has tag 0, and no first ticket lap 0, so zeros are never taken for a slot or a header.
        device.fill(self.memory.address, self.memory.bytes - self.area.bytes, 0)?;
        self.supply = Supply::after(partition.segment_count, self.supply.last_tag(), 0);
        let bytes = plan::seen_bytes(partition.segment_count);
        for area in self.areas() {
            device.fill(area.address, bytes.min(area.bytes), 0)?;
        }
        self.in_use = AllInUse::none_of(partition.segment_count);
        self.partition = Some(partition);
        self.give(device.live()?)?;
        Ok(partition)
    }

    /// Converts an error whose sizes exclude the memory for rounds into one about the whole limit.
    fn of_whole_limit(&self, error: SessionError) -> SessionError {
        let SessionError::Memory { streams, needed: Some(without_rounds), .. } = error else { return error };
        // A larger limit may enable rounds, unless the device does not support them.
        let may_have_rounds = !self.rounds.is_empty() || plan::area_bytes(self.memory.bytes).is_none();
        let area = |limit: u64| plan::area_bytes(limit).filter(|_| may_have_rounds);
        let remains = |limit: u64| limit - area(limit).unwrap_or(0);
        let limits = (0..1 << 24).map(|mib| without_rounds + (mib << 20));
        let needed = limits.into_iter().find(|limit| remains(*limit) >= without_rounds);
        SessionError::Memory { streams, needed, limit: self.memory.bytes }
    }

    fn areas(&self) -> impl Iterator<Item = Allocation> + use<> {
        let (Allocation { address, bytes }, count) = (self.area, self.rounds.len() as u64);
        let each = bytes.checked_div(count).unwrap_or(0) / 256 * 256;
        (0..count).map(move |number| Allocation { address: address + number * each, bytes: each })
    }

    /// Gives free segments to waiting lanes.
    fn give(&mut self, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        let Some(partition) = self.partition else { return Ok(()) };
        let writes = self.supply.give();
        if writes.is_empty() {
            return Ok(());
        }
        let queue = self.memory.address + partition.queue;
        for slots in &writes {
            memory.write_live(queue + slots.offset, &slots.bytes)?;
        }
        self.let_wait(memory)
    }

    /// Lets lanes wait again, if one has given up.
    fn let_wait(&mut self, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        if std::mem::take(&mut self.gave_up) { self.set_gave_up(memory, 0) } else { Ok(()) }
    }

    /// Makes all lanes stop waiting. Runs that find no memory are then lost.
    pub(super) fn refuse(&self, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        self.set_gave_up(memory, 1)
    }

    fn set_gave_up(&self, memory: &mut dyn LiveMemory, gave_up: u64) -> Result<(), DeviceError> {
        let Some(partition) = self.partition else { return Ok(()) };
        let offset = std::mem::offset_of!(StreamState, gave_up) as u64;
        memory.write_live(self.memory.address + partition.state + offset, &gave_up.to_le_bytes())
    }

    /// Returns true if at least half of the segments are in use, so that a scan after a kernel is worthwhile.
    pub(super) fn should_scan(&mut self, memory: &mut dyn LiveMemory) -> Result<bool, DeviceError> {
        let Some(partition) = self.partition else { return Ok(false) };
        self.take_tickets(memory, partition)?;
        Ok(2 * self.in_use.count() >= self.supply.segments() as usize)
    }

    /// Registers taken tickets, and whether lanes have given up waiting.
    fn take_tickets(&mut self, memory: &mut dyn LiveMemory, partition: Partition) -> Result<(), DeviceError> {
        let state = (self.memory.address + partition.state, size_of::<StreamState>());
        let mut words = words_of_eight(memory.read_live(&[state])?);
        let (tickets, gave_up) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if gave_up != 0 {
            self.gave_up = true;
            self.supply.lose_patience();
        }
        self.in_use.extend(self.supply.taken(tickets));
        self.most_in_use = self.most_in_use.max(self.in_use.count());
        Ok(())
    }

    pub(super) fn launched(&mut self, number: u32) {
        if let Some(launch) = self.launches.get_mut(&number) {
            launch.is_over = true;
        }
    }

    /// Ends launches whose taken runs are all encoded. With `memory`, reads losses and spans from the device.
    fn end(
        &mut self,
        mut memory: Option<&mut dyn LiveMemory>,
        partition: Partition,
        scan: &mut Drained,
    ) -> Result<(), DeviceError> {
        let address = self.memory.address + partition.tables;
        let length = self.tables_used as usize;
        let tables = match memory.as_deref_mut() {
            Some(memory) => read_all(memory, address, length)?,
            None => vec![0; length],
        };
        for (_, launch) in std::mem::take(&mut self.launches) {
            let tables = &tables[(launch.tables - partition.tables) as usize..];
            let lost = words_of_eight(tables);
            if self.span_bytes != 0 {
                let from = (launch.spans_at() - launch.tables) as usize;
                let to = (launch.ended_at(self.span_bytes) - launch.tables) as usize;
                let first = scan.spans.len();
                append(&mut scan.spans, &tables[from..to]);
                if let Some(memory) = memory.as_deref().filter(|_| !launch.is_over) {
                    let spans = Span::warps(&mut scan.spans[first..]);
                    memory.place_spans(&launch.info, spans);
                    launch.keep_known(spans);
                }
            }
            scan.accounts.append(&mut launch.accounts(lost));
            scan.end.push(launch.info);
        }
        self.tables_used = 0;
        Ok(())
    }

    /// Ends all launches with the runs that were taken so far. Without `memory`, does not use the device.
    pub(super) fn abandon(&mut self, memory: Option<&mut dyn LiveMemory>) -> Result<Drained, DeviceError> {
        let _ = self.in_use.take();
        let mut scan = Drained { packed: self.encode(true, None).into(), ..Drained::default() };
        if let Some(partition) = self.partition {
            self.end(memory, partition, &mut scan)?;
        }
        Ok(scan)
    }

    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        // Ends the threads, which use the memory.
        self.rounds.clear();
        Ok(device.free(self.memory)?)
    }
}

fn read_all(memory: &mut dyn LiveMemory, address: u64, bytes: usize) -> Result<Vec<u8>, DeviceError> {
    let mut all = Vec::with_capacity(bytes);
    while all.len() < bytes {
        let length = (bytes - all.len()).min(MAX_READ);
        all.extend_from_slice(memory.read_live(&[(address + all.len() as u64, length)])?);
    }
    Ok(all)
}

fn words_of_eight(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}
