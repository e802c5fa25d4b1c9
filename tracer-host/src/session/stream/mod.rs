//! Streamed logs: the host empties them while kernels run (`warptrace_format::stream`).
//!
//! ```text
//!   lanes ──▶ segments ──▶ look ──▶ order ──▶ encoder ──▶ packed chunks ──▶ writer
//!     ▲                     │
//!     └──── queue ◀─ supply ┘
//! ```
//! A *look* copies all segments that are in use, takes what is new in them, and gives those that are full, or
//! whose warps have ended, to whoever asks next. It is repeated while a kernel runs, and after it when the
//! memory is needed.

mod launch;
mod order;
mod partition;
mod runs;
mod segments;
mod supply;

use std::collections::BTreeMap;
use std::time::Duration;

use rayon::prelude::*;
use warptrace_encode::native::ChunkEncoder;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LaunchInfo;
use warptrace_format::log::ENTRY_BYTES;
use warptrace_format::stream::{StreamLogs, StreamState};

use self::launch::Launch;
use self::partition::{Needs, Partition};
use self::runs::Encoding;
use self::segments::{InUse, Piece, words};
use self::supply::Supply;
use super::memory::Division;
use super::worker::Account;
use super::{MemoryUse, SessionError, Standing};
use crate::{Allocation, Device, DeviceError, LiveMemory, MAX_READ, Recording, threads};

/// Segments that one task takes runs from.
const SEGMENTS_AT_ONCE: usize = 512;
/// Streams that one task encodes.
const STREAMS_AT_ONCE: usize = 64;

/// For launches, by their numbers, the lanes of each warp that had left.
type Ended = Vec<(u32, Vec<u32>)>;

/// What a look has found.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Chunks, packed.
    pub(super) packed: Vec<u8>,
    /// Launches of which all is encoded now.
    pub(super) end: Vec<LaunchInfo>,
    /// Their accounts, as `Drained` takes them.
    pub(super) accounts: Vec<Account>,
}

/// Device memory of a session whose logs are streamed.
pub(super) struct Streams {
    codec: CodecSpec,
    tracks: u32,
    chunk_bytes: u32,
    stall: Duration,
    pub(super) open_runs: bool,
    memory: Allocation,
    partition: Option<Partition>,
    supply: Supply,
    tables_used: u64,
    /// The most segments that were in use at once.
    most_in_use: usize,
    in_use: Vec<InUse>,
    launches: BTreeMap<u32, Launch>,
    /// Number of the last look.
    looks: u32,
    /// A lane was seen to have waited in vain, and the others do not wait since then.
    gave_up: bool,
}

impl Streams {
    pub(super) fn new(
        device: &mut dyn Device,
        recording: Recording,
        division: Division,
        stall: Duration,
        open_runs: bool,
    ) -> Result<Self, SessionError> {
        Ok(Self {
            codec: recording.codec,
            tracks: if recording.dual { 2 } else { 1 },
            chunk_bytes: division.chunk_bytes,
            stall,
            open_runs,
            memory: device.allocate(division.limit)?,
            partition: None,
            supply: Supply::new(0),
            tables_used: 0,
            most_in_use: 0,
            in_use: Vec::new(),
            launches: BTreeMap::new(),
            looks: 0,
            gave_up: false,
        })
    }

    /// What the session takes, and has filled: segments are counted as whole.
    pub(super) fn memory_use(&self) -> MemoryUse {
        let each = self.partition.map_or(0, |partition| u64::from(partition.segment_entries * ENTRY_BYTES));
        let filled = self.most_in_use as u64 * each;
        MemoryUse { limit: self.memory.bytes, peak: self.memory.bytes, filled }
    }

    fn needs(&self, device: &dyn Device, info: &LaunchInfo) -> Needs {
        Needs::of(info, self.tracks, device.resident_threads())
    }

    /// Whether a launch finds room without a look at those before it.
    pub(super) fn has_room(&self, device: &dyn Device, info: &LaunchInfo) -> bool {
        let needs = self.needs(device, info);
        self.partition.is_some_and(|partition| {
            let tables = self.tables_used + needs.tables <= partition.table_bytes;
            // Those of launches before are freed by the first look at this one.
            tables && u64::from(self.supply.segments()) > needs.lanes
        })
    }

    /// Makes memory ready for a launch. Unless it [has room](Self::has_room), nothing is in use.
    pub(super) fn prepare(
        &mut self,
        device: &mut dyn Device,
        info: &LaunchInfo,
    ) -> Result<StreamLogs, SessionError> {
        let needs = self.needs(device, info);
        let partition = match self.partition {
            Some(partition) if self.has_room(device, info) => partition,
            _ => self.divide(device, needs)?,
        };
        let tables = partition.tables + self.tables_used;
        device.fill(self.memory.address + tables, needs.tables, 0)?;
        self.tables_used += needs.tables;
        if self.gave_up {
            self.let_wait(device.live()?)?;
        }
        let launch = Launch::new(*info, self.tracks, tables);
        let (warps, streams) = (launch.warps, launch.stream_count());
        self.launches.insert(info.number(), launch);
        let at = |offset: u64| self.memory.address + offset;
        Ok(StreamLogs {
            segments: at(partition.segments),
            queue: at(partition.queue),
            state: at(partition.state),
            lost: at(tables),
            ended: at(tables + 8 * streams as u64),
            stall_nanoseconds: u64::try_from(self.stall.as_nanos()).unwrap_or(u64::MAX),
            warps,
            launch: info.number(),
            segment_entries: partition.segment_entries,
            slots: self.supply.slots(),
            chosen: info.chosen(),
            unused: 0,
        })
    }

    /// Divides the memory anew, and fills the queue. Nothing is in use.
    fn divide(&mut self, device: &mut dyn Device, needs: Needs) -> Result<Partition, SessionError> {
        let partition = Partition::new(self.memory.bytes, needs)?;
        if self.partition.is_none() {
            // No entry has tag 0, and no slot lap 0.
            device.fill(self.memory.address, self.memory.bytes, 0)?;
        }
        let queue = u64::from(partition.segment_count.next_power_of_two()) * 8;
        device.fill(self.memory.address + partition.queue, queue, 0)?;
        device.fill(self.memory.address + partition.state, size_of::<StreamState>() as u64, 0)?;
        self.supply = Supply::after(partition.segment_count, self.supply.last_tag(), 0);
        self.partition = Some(partition);
        self.give(device.live()?)?;
        Ok(partition)
    }

    /// Gives what is free to those who ask.
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

    /// Lets lanes wait again, if one has waited in vain.
    fn let_wait(&mut self, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        if std::mem::take(&mut self.gave_up) { self.set_gave_up(memory, 0) } else { Ok(()) }
    }

    /// Lets nobody wait for memory any more: what finds none is lost.
    pub(super) fn refuse(&self, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        self.set_gave_up(memory, 1)
    }

    fn set_gave_up(&self, memory: &mut dyn LiveMemory, gave_up: u64) -> Result<(), DeviceError> {
        let Some(partition) = self.partition else { return Ok(()) };
        let offset = std::mem::offset_of!(StreamState, gave_up) as u64;
        memory.write_live(self.memory.address + partition.state + offset, &gave_up.to_le_bytes())
    }

    /// Whether so much is in use that a look is due, though no kernel runs.
    pub(super) fn should_look(&mut self, memory: &mut dyn LiveMemory) -> Result<bool, DeviceError> {
        let Some(partition) = self.partition else { return Ok(false) };
        self.take_tickets(memory, partition)?;
        Ok(2 * self.in_use.len() >= self.supply.segments() as usize)
    }

    /// Takes note of the tickets that were taken, and of lanes that have waited in vain.
    fn take_tickets(&mut self, memory: &mut dyn LiveMemory, partition: Partition) -> Result<(), DeviceError> {
        let state = (self.memory.address + partition.state, size_of::<StreamState>());
        let mut words = words_of_eight(memory.read_live(&[state])?);
        let (tickets, gave_up) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if gave_up != 0 {
            self.gave_up = true;
            self.supply.lose_patience();
        }
        self.in_use.extend(self.supply.taken(tickets).map(InUse::new));
        self.most_in_use = self.most_in_use.max(self.in_use.len());
        Ok(())
    }

    /// Looks at what was recorded. With `is_over` no kernel runs: then it is the last look at all launches.
    pub(super) fn look(&mut self, memory: &mut dyn LiveMemory, is_over: bool) -> Result<Look, DeviceError> {
        let ended = self.take_new(memory, is_over)?;
        let mut look = Look { packed: self.encode(is_over), ..Look::default() };
        self.note(ended);
        if let Some(partition) = self.partition.filter(|_| is_over) {
            self.end(Some(memory), partition, &mut look)?;
        }
        Ok(look)
    }

    /// Looks without encoding anything, where somebody waits for what there is.
    pub(super) fn only_look(&mut self, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        let ended = self.take_new(memory, false)?;
        self.note(ended);
        Ok(())
    }

    /// Takes what is new of all launches. Answers which lanes had left before.
    ///
    /// That is to be [noted](Self::note) when nothing is done with this look any more: what a lane has appended
    /// before it left may still have been on its way, and is sure to be seen by the next look only.
    fn take_new(&mut self, memory: &mut dyn LiveMemory, is_over: bool) -> Result<Ended, DeviceError> {
        let Some(partition) = self.partition.filter(|_| !self.launches.is_empty()) else {
            return Ok(Ended::new());
        };
        self.looks = self.looks.wrapping_add(1);
        let ended = self.read_ended(memory, is_over)?;
        self.take_tickets(memory, partition)?;
        self.read(memory, partition, is_over)?;
        Ok(ended)
    }

    /// Takes note of the lanes that had left before a look.
    fn note(&mut self, ended: Ended) {
        for (launch, ended) in ended {
            if let Some(launch) = self.launches.get_mut(&launch) {
                launch.ended = ended;
            }
        }
    }

    /// Copies the segments in use, hands the new runs in them to their streams, and gives away those that
    /// nobody writes any more: those that are full, and those of lanes that had left before this look.
    fn read(
        &mut self,
        memory: &mut dyn LiveMemory,
        partition: Partition,
        is_over: bool,
    ) -> Result<(), DeviceError> {
        let bytes_each = (partition.segment_entries * ENTRY_BYTES) as usize;
        let address = self.memory.address + partition.segments;
        let mut in_use = std::mem::take(&mut self.in_use);
        threads::install(|| in_use.par_sort_unstable_by_key(|segment| segment.given.segment));
        let mut rest = &mut in_use[..];
        let mut piece = Piece::first_of(rest, address, bytes_each);
        memory.start_read(&piece.ranges)?;
        while piece.count > 0 {
            let (now, later) = rest.split_at_mut(piece.count);
            rest = later;
            // The next piece is copied while this one is taken apart.
            let next = Piece::first_of(rest, address, bytes_each);
            memory.start_read(&next.ranges)?;
            let bytes = memory.finish_read()?;
            let (launches, look) = (&self.launches, self.looks);
            let take = |segments: &mut [InUse]| {
                let (mut free, mut looked) = (Vec::new(), Vec::new());
                for segment in segments {
                    let was_seen = segment.owner.is_some();
                    let at = address + u64::from(segment.given.segment) * bytes_each as u64;
                    let bytes = &bytes[piece.position(at)..][..bytes_each];
                    if take_runs(segment, bytes, launches, look, is_over)
                        || segment.taken == partition.segment_entries
                    {
                        free.push(segment.given.segment);
                        segment.taken = u32::MAX;
                    }
                    if !was_seen && segment.owner.is_some() {
                        looked.push(segment.given.slot);
                    }
                }
                (free, looked)
            };
            let found: Vec<_> = threads::install(|| now.par_chunks_mut(SEGMENTS_AT_ONCE).map(take).collect());
            for (free, looked) in found {
                self.supply.free(&free);
                looked.into_iter().for_each(|slot| self.supply.looked(slot));
            }
            if is_over {
                self.supply.nobody_looks();
            }
            self.give(memory)?;
            piece = next;
        }
        memory.finish_read()?;
        in_use.retain(|segment| segment.taken != u32::MAX);
        self.in_use = in_use;
        Ok(())
    }

    /// Reads which lanes of the launches have left.
    fn read_ended(&self, memory: &mut dyn LiveMemory, is_over: bool) -> Result<Ended, DeviceError> {
        let mut all = Ended::new();
        let running = self.launches.values().filter(|launch| !is_over && !launch.is_over);
        for launch in running {
            let warps = launch.warps;
            let at = self.memory.address + launch.tables + 8 * launch.stream_count() as u64;
            let bytes = read_all(memory, at, 4 * (warps as usize).next_multiple_of(2))?;
            let (words, _) = bytes.as_chunks::<4>();
            let ended = words.iter().take(warps as usize).map(|word| u32::from_le_bytes(*word)).collect();
            all.push((launch.info.number(), ended));
        }
        Ok(all)
    }

    /// Takes note that the kernel of a launch has ended.
    pub(super) fn launched(&mut self, number: u32) {
        if let Some(launch) = self.launches.get_mut(&number) {
            launch.is_over = true;
        }
    }

    /// Encodes what can be, of all streams.
    fn encode(&self, is_over: bool) -> Vec<u8> {
        let encoding = || {
            // The codec was checked when the session began.
            let encoder = ChunkEncoder::new(self.codec).ok()?;
            Some(Encoding { encoder, chunk: vec![0; self.chunk_bytes as usize] })
        };
        let of_launch = |launch: &Launch| -> Vec<u8> {
            let numbers = (0..launch.stream_count()).into_par_iter();
            let packed = numbers.with_min_len(STREAMS_AT_ONCE).map_init(encoding, |encoding, number| {
                let mut packed = Vec::new();
                if let (Some((name, mut stream)), Some(encoding)) = (launch.waiting(number), encoding) {
                    let is_last = is_over || launch.has_ended(number as u32);
                    stream.go_on(name, is_last, encoding, &mut packed);
                }
                packed
            });
            packed.collect::<Vec<_>>().concat()
        };
        threads::install(|| self.launches.par_iter().map(|(_, launch)| of_launch(launch)).collect::<Vec<_>>())
            .concat()
    }

    /// Ends all launches: all that has come of them is encoded. With `memory` what they have lost is read
    /// from the device.
    fn end(
        &mut self,
        memory: Option<&mut dyn LiveMemory>,
        partition: Partition,
        look: &mut Look,
    ) -> Result<(), DeviceError> {
        let address = self.memory.address + partition.tables;
        let length = self.tables_used as usize;
        let tables = match memory {
            Some(memory) => read_all(memory, address, length)?,
            None => vec![0; length],
        };
        for (_, launch) in std::mem::take(&mut self.launches) {
            let lost = words_of_eight(&tables[(launch.tables - partition.tables) as usize..]);
            look.accounts.append(&mut launch.accounts(lost));
            look.end.push(launch.info);
        }
        self.tables_used = 0;
        Ok(())
    }

    /// Which warps of a launch have not ended, and what they did last.
    pub(super) fn standing(&self, launch: u32) -> Vec<Standing> {
        self.launches.get(&launch).map(|launch| launch.standing(self.looks)).unwrap_or_default()
    }

    /// Ends all launches with what has come of them, runs that have not ended included, in the middle of a
    /// kernel or, without `memory`, where the device can no longer be asked.
    pub(super) fn abandon(&mut self, memory: Option<&mut dyn LiveMemory>) -> Result<Look, DeviceError> {
        self.in_use.clear();
        self.launches.values().for_each(|launch| launch.end_open(self.looks));
        let mut look = Look { packed: self.encode(true), ..Look::default() };
        if let Some(partition) = self.partition {
            self.end(memory, partition, &mut look)?;
        }
        Ok(look)
    }

    /// Gives the memory back.
    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        Ok(device.free(self.memory)?)
    }
}

/// Hands the new runs of a segment to its stream, and the one that its lane is in. Answers whether its lane
/// had left before this look.
fn take_runs(
    segment: &mut InUse,
    bytes: &[u8],
    launches: &BTreeMap<u32, Launch>,
    look: u32,
    is_over: bool,
) -> bool {
    let new = segment.new_entries(bytes);
    let Some(owner) = segment.owner else { return is_over };
    // A kernel that writes out of bounds may have hit the header.
    let Some(launch) = launches.get(&owner.launch) else { return true };
    let Some(mut stream) = launch.stream(owner.stream) else { return true };
    stream.take(owner.lane, new.iter().map(words));
    if let Some(entry) = segment.open_entry(bytes) {
        stream.stand(owner.lane, look, entry);
    }
    is_over || launch.has_left(owner.stream, owner.lane)
}

/// Reads memory of any length.
fn read_all(memory: &mut dyn LiveMemory, address: u64, bytes: usize) -> Result<Vec<u8>, DeviceError> {
    let mut all = Vec::with_capacity(bytes);
    while all.len() < bytes {
        let length = (bytes - all.len()).min(MAX_READ);
        all.extend_from_slice(memory.read_live(&[(address + all.len() as u64, length)])?);
    }
    Ok(all)
}

/// Numbers of eight bytes.
fn words_of_eight(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}
