//! Streamed logs: the host empties them while kernels run (`warptrace_format::stream`).
//!
//! ```text
//!   lanes ──▶ segments ──▶ look ──▶ order ──▶ encoder ──▶ packed chunks ──▶ writer
//!     ▲                     │
//!     └──── queue ◀─ supply ┘
//! ```
//! A *look* copies all segments that are in use, takes what is new in them, and gives those that are full, or whose warps have ended,
//! to whoever asks next. It is repeated while a kernel runs, and after it when the memory is needed.

mod order;
mod partition;
mod stream;
mod supply;

use std::collections::BTreeMap;
use std::time::Duration;

use rayon::prelude::*;
use warptrace_encode::native::ChunkEncoder;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LaunchInfo;
use warptrace_format::log::ENTRY_BYTES;
use warptrace_format::pool::WarpAccount;
use warptrace_format::stream::{StreamLogs, StreamState, has_tag, is_original, is_sole, untagged};

use self::order::Found;
use self::partition::{Needs, Partition};
use self::stream::{Name, Stream};
use self::supply::{Given, Supply};
use super::worker::Account;
use super::{SessionError, SessionOptions};
use crate::{Allocation, Device, DeviceError, LiveMemory, MAX_READ, threads};

/// Segments closer to each other than this are copied as one: a copy costs as much as so many bytes.
const GAP_BYTES: usize = 64 << 10;
/// Segments that one task takes runs from.
const SEGMENTS_AT_ONCE: usize = 256;
/// Streams that one task looks through.
const STREAMS_AT_ONCE: usize = 16;
/// A stream whose segments' header nobody has seen yet.
const UNKNOWN: u64 = u64::MAX;

/// A segment in use.
#[derive(Clone, Copy, Debug)]
struct InUse {
    /// Launch in the upper half, number of the stream in the lower half.
    stream: u64,
    /// The lane that writes it.
    lane: u32,
    given: Given,
    /// Entries that were taken, its header included.
    taken: u32,
    /// Entries that it holds, as far as the last look saw.
    written: u32,
    /// Where its new runs are in what the last look has found: which part, and how many runs before them.
    part: u32,
    before: u32,
}

/// The new runs of some segments.
type Part = Vec<Found>;

/// A launch of which not all is encoded.
#[derive(Debug)]
struct Launch {
    info: LaunchInfo,
    /// Offset of its tables.
    tables: u64,
    /// For each warp the lanes that had left before the last look.
    ended: Vec<u32>,
    /// All lanes have left.
    is_over: bool,
    streams: Vec<Option<Box<Stream>>>,
    accounts: Vec<Account>,
}

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
    memory: Allocation,
    partition: Option<Partition>,
    supply: Supply,
    tables_used: u64,
    in_use: Vec<InUse>,
    launches: BTreeMap<u32, Launch>,
}

impl Streams {
    pub(super) fn new(
        device: &mut dyn Device,
        options: &SessionOptions,
        stall: Duration,
    ) -> Result<Self, SessionError> {
        Ok(Self {
            codec: options.codec,
            tracks: if options.dual { 2 } else { 1 },
            chunk_bytes: options.chunk_bytes,
            stall,
            memory: device.allocate(options.pool_bytes)?,
            partition: None,
            supply: Supply::new(0),
            tables_used: 0,
            in_use: Vec::new(),
            launches: BTreeMap::new(),
        })
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
        let warps = info.warps();
        let streams = (self.tracks * warps) as usize;
        let mut of_launch = Vec::new();
        of_launch.resize_with(streams, || None);
        self.launches.insert(
            info.number(),
            Launch {
                info: *info,
                tables,
                ended: vec![0; warps as usize],
                is_over: false,
                streams: of_launch,
                accounts: vec![Account::default(); streams],
            },
        );
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
        self.give(device.live())?;
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
            for (piece, number) in slots.bytes.chunks(MAX_READ).zip(0..) {
                memory.write_live(queue + slots.offset + number * MAX_READ as u64, piece)?;
            }
        }
        // Who waited in vain may wait again.
        let gave_up = std::mem::offset_of!(StreamState, gave_up) as u64;
        memory.write_live(self.memory.address + partition.state + gave_up, &[0; 8])
    }

    /// Whether so much is in use that a look is due, though no kernel runs.
    pub(super) fn should_look(&mut self, memory: &mut dyn LiveMemory) -> Result<bool, DeviceError> {
        let Some(partition) = self.partition else { return Ok(false) };
        let tickets = self.tickets(memory, partition)?;
        self.take(tickets);
        Ok(2 * self.in_use.len() >= self.supply.segments() as usize)
    }

    fn tickets(&self, memory: &mut dyn LiveMemory, partition: Partition) -> Result<u64, DeviceError> {
        let bytes = memory.read_live(&[(self.memory.address + partition.state, 8)])?;
        Ok(words(bytes).next().map_or(0, |[low, high]| u64::from(low) | u64::from(high) << 32))
    }

    /// Takes note of how many tickets were taken.
    fn take(&mut self, tickets: u64) {
        let new = self.supply.taken(tickets).map(|given| InUse {
            stream: UNKNOWN,
            lane: 0,
            given,
            taken: 0,
            written: 0,
            part: 0,
            before: 0,
        });
        self.in_use.extend(new);
    }

    /// Looks at what was recorded. With `is_over` no kernel runs: then it is the last look at all launches.
    pub(super) fn look(&mut self, memory: &mut dyn LiveMemory, is_over: bool) -> Result<Look, DeviceError> {
        let Some(partition) = self.partition.filter(|_| !self.launches.is_empty()) else {
            return Ok(Look::default());
        };
        // What had left before this look has written all that it ever will.
        let ended = self.read_ended(memory, is_over)?;
        let tickets = self.tickets(memory, partition)?;
        self.take(tickets);
        let entries = partition.segment_entries;
        let parts = self.read(memory, partition)?;
        let (packed, free) = threads::install(|| {
            self.in_use.par_sort_unstable_by_key(|segment| segment.stream);
            let packed = self.encode(&parts, is_over);
            (packed, self.release(entries, is_over))
        });
        let mut look = Look { packed, ..Look::default() };
        self.supply.free(free);
        if is_over {
            self.end(memory, partition, &mut look)?;
        } else {
            for (launch, ended) in ended {
                if let Some(launch) = self.launches.get_mut(&launch) {
                    launch.ended = ended;
                }
            }
        }
        self.give(memory)?;
        Ok(look)
    }

    /// Reads which lanes of the launches have left.
    fn read_ended(
        &self,
        memory: &mut dyn LiveMemory,
        is_over: bool,
    ) -> Result<Vec<(u32, Vec<u32>)>, DeviceError> {
        let mut all = Vec::new();
        let running = self.launches.values().filter(|launch| !is_over && !launch.is_over);
        for launch in running {
            let warps = launch.info.warps();
            let at = self.memory.address + launch.tables + 8 * launch.streams.len() as u64;
            let bytes = read_all(memory, at, 4 * (warps as usize).next_multiple_of(2))?;
            let ended = words(&bytes).flatten().take(warps as usize).collect();
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

    /// Copies the segments in use, and takes the new runs out of them.
    fn read(&mut self, memory: &mut dyn LiveMemory, partition: Partition) -> Result<Vec<Part>, DeviceError> {
        let bytes_each = (partition.segment_entries * ENTRY_BYTES) as usize;
        let address = self.memory.address + partition.segments;
        threads::install(|| self.in_use.par_sort_unstable_by_key(|segment| segment.given.segment));
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = &mut self.in_use[..];
        while !rest.is_empty() {
            let (count, ranges) = next_ranges(rest, address, bytes_each);
            let (now, later) = rest.split_at_mut(count);
            rest = later;
            let (starts, bytes) = (starts(&ranges), memory.read_live(&ranges)?);
            let first_part = parts.len() as u32;
            let mut found: Vec<Part> = threads::install(|| {
                let take = |(number, segments): (usize, &mut [InUse])| {
                    let mut part = Part::new();
                    for segment in segments {
                        segment.part = first_part + number as u32;
                        segment.before = part.len() as u32;
                        let start = address + u64::from(segment.given.segment) * bytes_each as u64;
                        let range = ranges.partition_point(|(first, _)| *first <= start) - 1;
                        let at = starts[range] + (start - ranges[range].0) as usize;
                        segment.take(&bytes[at..][..bytes_each], &mut part);
                    }
                    part
                };
                now.par_chunks_mut(SEGMENTS_AT_ONCE).enumerate().map(take).collect()
            });
            parts.append(&mut found);
        }
        Ok(parts)
    }

    /// Hands each stream what is new of it, and encodes what can be. The segments in use are ordered by stream.
    fn encode(&mut self, parts: &[Part], is_over: bool) -> Vec<u8> {
        let mut tasks: Vec<Task<'_>> = Vec::new();
        for segments in self.in_use.chunk_by(|a, b| a.stream == b.stream) {
            let key = segments[0].stream;
            let (number, stream) = ((key >> 32) as u32, key as u32);
            let Some(launch) = self.launches.get_mut(&number).filter(|_| key != UNKNOWN) else { continue };
            tasks.extend(launch.task(stream, self.tracks, segments, is_over));
        }
        // Those that only wait for this look. The others are out.
        for launch in self.launches.values_mut() {
            for number in 0..launch.streams.len() {
                if launch.streams[number].as_ref().is_some_and(|stream| !stream.is_empty()) {
                    tasks.extend(launch.task(number as u32, self.tracks, &[], is_over));
                }
            }
        }
        let (codec, chunk_bytes) = (self.codec, self.chunk_bytes as usize);
        let packed: Vec<Vec<u8>> = tasks
            .par_chunks_mut(STREAMS_AT_ONCE)
            .map_init(
                // The codec was checked when the session began.
                || (ChunkEncoder::new(codec).ok(), vec![0; chunk_bytes], Vec::new()),
                |(encoder, chunk, found), tasks| {
                    let mut packed = Vec::new();
                    for task in tasks {
                        if let Some(encoder) = encoder {
                            task.run(parts, encoder, chunk, found, &mut packed);
                        }
                    }
                    packed
                },
            )
            .collect();
        for Task { name, stream, .. } in tasks {
            if let Some(launch) = self.launches.get_mut(&name.launch) {
                let number = name.track * launch.info.warps() + name.warp;
                launch.streams[number as usize] = Some(stream);
            }
        }
        packed.concat()
    }

    /// Takes the segments out of use that nobody writes any more: those that are full, and those of warps that had ended before this
    /// look.
    fn release(&mut self, entries: u32, is_over: bool) -> Vec<u32> {
        let mut free = Vec::new();
        let launches = &self.launches;
        self.in_use.retain_mut(|segment| {
            segment.taken = segment.written;
            let ended = is_over || {
                let launch = launches.get(&((segment.stream >> 32) as u32));
                launch.is_some_and(|launch| launch.has_ended(segment.stream as u32))
            };
            let is_free = segment.taken == entries || ended;
            if is_free {
                free.push(segment.given.segment);
            }
            !is_free
        });
        free
    }

    /// Ends all launches: all of them is encoded.
    fn end(
        &mut self,
        memory: &mut dyn LiveMemory,
        partition: Partition,
        look: &mut Look,
    ) -> Result<(), DeviceError> {
        let address = self.memory.address + partition.tables;
        let tables = read_all(memory, address, self.tables_used as usize)?;
        for (_, mut launch) in std::mem::take(&mut self.launches) {
            let lost = &tables[(launch.tables - partition.tables) as usize..];
            let lost = words(lost).map(|[low, high]| u64::from(low) | u64::from(high) << 32);
            launch.count(lost);
            look.end.push(launch.info);
            look.accounts.append(&mut launch.accounts);
        }
        self.tables_used = 0;
        Ok(())
    }

    /// Ends all launches with what has come of them: the device can no longer be asked.
    pub(super) fn abandon(&mut self) -> Look {
        self.in_use.clear();
        let packed = threads::install(|| self.encode(&[], true));
        let mut look = Look { packed, ..Look::default() };
        for (_, mut launch) in std::mem::take(&mut self.launches) {
            launch.count(std::iter::repeat(0));
            look.end.push(launch.info);
            look.accounts.append(&mut launch.accounts);
        }
        look
    }

    /// Gives the memory back.
    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        Ok(device.free(self.memory)?)
    }
}

impl Launch {
    /// Makes the accounts, of what was recorded and of the originals that each stream has lost.
    fn count(&mut self, lost: impl Iterator<Item = u64>) {
        for ((account, stream), lost) in self.accounts.iter_mut().zip(&self.streams).zip(lost) {
            let counts = |stream: &Stream| (stream.originals(), stream.recorded, stream.chunks);
            let (originals, recorded, chunks) = stream.as_deref().map_or((0, 0, 0), counts);
            // If not all originals have come, as where a kernel was ended.
            let attempted = (originals + lost).max(recorded);
            let lost = attempted - recorded;
            *account = Account::new(WarpAccount { attempted, recorded, lost, chunks, finished: 1 });
        }
    }

    /// Takes a stream out for a task; `None` if there is no such stream.
    fn task<'s>(
        &mut self,
        stream: u32,
        tracks: u32,
        segments: &'s [InUse],
        is_over: bool,
    ) -> Option<Task<'s>> {
        let warps = self.info.warps();
        let is_last = is_over || self.has_ended(stream);
        let name = Name { launch: self.info.number(), track: stream / warps, warp: stream % warps };
        let place = self.streams.get_mut(stream as usize).filter(|_| name.track < tracks)?;
        Some(Task { name, stream: place.take().unwrap_or_default(), segments, is_last })
    }

    /// Whether all lanes of a stream's warp had left before the last look.
    fn has_ended(&self, stream: u32) -> bool {
        let warp = stream % self.info.warps();
        let [x, y, z] = self.info.block();
        let threads = x * y * z;
        let in_block = warp % threads.div_ceil(32);
        let lanes = (threads - 32 * in_block).min(32);
        self.is_over || self.ended[warp as usize] == u32::MAX >> (32 - lanes)
    }
}

impl InUse {
    /// Takes what is new in the segment, which holds `bytes`.
    fn take(&mut self, bytes: &[u8], part: &mut Part) {
        let entries = bytes.chunks_exact(ENTRY_BYTES as usize).map(four).skip(self.taken as usize);
        self.written = self.taken;
        for entry in entries.take_while(|entry| has_tag(*entry, self.given.tag)) {
            if self.written == 0 {
                let [stream, launch, lane, _] = entry;
                (self.stream, self.lane) = (u64::from(launch) << 32 | u64::from(stream), lane);
            } else {
                part.push(Found {
                    entry: untagged(entry),
                    is_sole: is_sole(entry),
                    is_original: is_original(entry, self.lane),
                });
            }
            self.written += 1;
        }
    }

    /// The runs that are new in it.
    fn new_runs<'p>(&self, parts: &'p [Part]) -> &'p [Found] {
        let new = self.written.saturating_sub(self.taken.max(1)) as usize;
        let part = parts.get(self.part as usize).and_then(|part| part.get(self.before as usize..));
        part.and_then(|part| part.get(..new)).unwrap_or_default()
    }
}

/// The next of the segments, which are in order, that are copied at once: how many, and what to copy. Short gaps between them are
/// copied too.
fn next_ranges(segments: &[InUse], address: u64, bytes_each: usize) -> (usize, Vec<(u64, usize)>) {
    let mut ranges: Vec<(u64, usize)> = Vec::new();
    let mut copied = 0;
    for (count, segment) in segments.iter().enumerate() {
        let at = address + u64::from(segment.given.segment) * bytes_each as u64;
        let longer = match ranges.last() {
            Some((start, length)) => (at - start) as usize - length + bytes_each,
            None => bytes_each,
        };
        let joins = !ranges.is_empty() && longer - bytes_each <= GAP_BYTES;
        let more = if joins { longer } else { bytes_each };
        if copied + more > MAX_READ {
            return (count, ranges);
        }
        copied += more;
        match ranges.last_mut() {
            Some((_, length)) if joins => *length += more,
            _ => ranges.push((at, bytes_each)),
        }
    }
    (segments.len(), ranges)
}

/// Where each range begins in what was copied.
fn starts(ranges: &[(u64, usize)]) -> Vec<usize> {
    let lengths = ranges.iter().map(|(_, length)| length);
    lengths
        .scan(0, |at, length| {
            *at += length;
            Some(*at - length)
        })
        .collect()
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

/// A stream, and what is new of it.
struct Task<'s> {
    name: Name,
    stream: Box<Stream>,
    segments: &'s [InUse],
    is_last: bool,
}

impl Task<'_> {
    fn run(
        &mut self,
        parts: &[Part],
        encoder: &mut ChunkEncoder,
        chunk: &mut [u8],
        found: &mut Vec<Found>,
        packed: &mut Vec<u8>,
    ) {
        found.clear();
        for segment in self.segments {
            found.extend(segment.new_runs(parts).iter().filter(|found| found.entry.is_run()));
        }
        self.stream.look(self.name, found, self.is_last, encoder, chunk, packed);
    }
}

/// The four words of an entry.
fn four(bytes: &[u8]) -> [u32; 4] {
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}

/// Pairs of words.
fn words(bytes: &[u8]) -> impl Iterator<Item = [u32; 2]> {
    let (pairs, _) = bytes.as_chunks::<8>();
    pairs
        .iter()
        .map(|&[a, b, c, d, e, f, g, h]| [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])])
}
