//! Cuts merged runs into stretches and encodes them, on the host. Counterpart of the encoding kernels.

use warptrace_format::account::WarpAccount;
use warptrace_format::chunk::{CHUNK_HEADER_BYTES, SPLIT, TIME_BYTES};
use warptrace_format::{Event, Memory};

use super::memory::{DeviceMemory, Owned, Words, write_words};
use super::merge::Merged;
use crate::chunks;
use crate::codec::Codec;
use crate::encode::Encoder;
use crate::encode::times::padding;
use crate::merged::{Room, are_split, time_words};

struct Bytes<'a>(&'a mut [u8]);

impl Memory for Bytes<'_> {
    #[inline(always)]
    fn get8(&self, at: u32) -> u8 {
        self.0[at as usize]
    }
    #[inline(always)]
    fn set8(&mut self, at: u32, value: u8) {
        self.0[at as usize] = value;
    }
    #[inline(always)]
    fn get32(&self, at: u32) -> u32 {
        let (words, _) = self.0.as_chunks::<4>();
        u32::from_le_bytes(words[at as usize / 4])
    }
    #[inline(always)]
    fn set32(&mut self, at: u32, value: u32) {
        let (words, _) = self.0.as_chunks_mut::<4>();
        words[at as usize / 4] = value.to_le_bytes();
    }
}

pub(super) struct Tables(Vec<u8>);

impl Tables {
    pub(super) fn new<E: Encoder>(params: E::Params) -> Self {
        let mut bytes = vec![0; E::table_bytes(params) as usize];
        E::prepare(params, &mut Bytes(&mut bytes));
        Self(bytes)
    }
}

/// Encodes the runs of a stream that are not recorded yet while the pool has chunks; updates its account.
pub(super) fn encode<E: Encoder>(
    memory: &DeviceMemory<'_>,
    owned: Owned<'_>,
    merged: Merged<'_>,
    codec: Codec,
    params: E::Params,
    tables: &mut Tables,
) {
    let Owned { name, account } = owned;
    let is_first = account.chunks == 0;
    let is_serial = !(matches!(codec, Codec::Predict) && merged.sums.fits);
    let launch = memory.launch(name).launch;
    let room = memory.room(codec, name.track);
    let mut stream =
        Stream { memory, account, params, header: [name.warp, 0, 0, 0, launch, name.track, 0, 0], tables };
    let mut remaining = pass_over(merged.runs, stream.account.recorded);
    let mut is_whole = true;
    while is_whole && !remaining.is_empty() {
        let runs = if merged.sums.fits { fitting(room, remaining) } else { remaining.len() };
        let (stretch, rest) = remaining.split_at_mut(runs);
        remaining = rest;
        let Some(chunk) = memory.claim_chunk() else {
            is_whole = false;
            break;
        };
        if is_serial {
            chunks::count_serial(&memory.pool, 1);
        }
        is_whole = stream.write::<E>(chunk, stretch);
    }
    // Added once per stream, not once per round.
    if is_first && (is_whole || account.chunks != 0) {
        account.attempted = account.attempted.wrapping_add(merged.sums.attempted);
        account.lost = account.lost.wrapping_add(merged.sums.lost);
    }
    if is_whole {
        account.finished = 1;
    } else {
        chunks::count_waiting(&memory.pool);
    }
}

/// Skips the first `recorded` events. Returns the remaining runs, the first with its remaining count.
fn pass_over(runs: &mut [Words], mut recorded: u64) -> &mut [Words] {
    let mut done = 0;
    for run in runs.iter_mut() {
        let count = u64::from(run[2]);
        if count > recorded {
            run[2] = (count - recorded) as u32;
            break;
        }
        recorded -= count;
        done += 1;
    }
    &mut runs[done..]
}

/// Returns how many of the runs are certain to fit into one chunk. Each single run must fit.
fn fitting(room: Room, runs: &[Words]) -> usize {
    if let Codec::Predict = room.codec {
        return runs.len().min(room.predict_runs() as usize);
    }
    let mut bytes = 0_u32;
    let fits = |run: &&Words| {
        bytes = bytes.saturating_add(room.max_bytes(run[2]));
        bytes <= room.bytes
    };
    runs.iter().take_while(fits).count()
}

/// The content that was encoded into a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Number of complete runs.
    pub runs: usize,
    /// Number of events.
    pub events: u32,
    /// Length in bytes, including the times.
    pub length: u32,
    /// Number of runs with a time, plus [`SPLIT`] if one is split, and bytes of padding between events and
    /// times.
    pub times: [u32; 2],
}

/// Encodes as many runs as fit into a payload, and possibly some events of the next, whose count it reduces.
pub(super) fn fill<E: Encoder>(
    params: E::Params,
    tables: &mut Tables,
    runs: &mut [Words],
    payload: &mut [u8],
    time_bytes: u32,
) -> Filled {
    // Excludes the maximum padding between events and times.
    let capacity = payload.len() as u32 - time_bytes;
    let (mut payload, mut tables) = (Bytes(payload), Bytes(&mut tables.0));
    let mut encoder = E::FRESH;
    encoder.begin(params, &mut tables);
    let (mut done, mut part, mut events) = (0, 0, 0_u32);
    for run in runs.iter_mut() {
        let count = run[2];
        let event = Event { location: run[1] as u16, mask: run[0] };
        let capacity = capacity - time_bytes * (done as u32 + 1);
        let taken = encoder.push(params, &mut tables, &mut payload, event, count, capacity);
        events = events.wrapping_add(taken);
        if taken != count {
            run[2] = count - taken;
            part = usize::from(taken != 0);
            break;
        }
        done += 1;
    }
    let mut length = if events == 0 { 0 } else { encoder.finish(params, &mut tables, &mut payload) };
    let mut times = [0; 2];
    if time_bytes != 0 && events != 0 {
        let runs = &runs[..done + part];
        let is_split = runs.array_windows().any(|[run, next]| are_split(*run, *next));
        times = [runs.len() as u32 | if is_split { SPLIT } else { 0 }, padding(length)];
        length += times[1];
        for (at, run) in runs.iter().enumerate() {
            if is_split {
                payload.set64(length, time_words(*run, runs.get(at + 1).copied()));
                length += TIME_BYTES;
            } else {
                payload.set32(length, run[3]);
                length += TIME_BYTES / 2;
            }
        }
    }
    Filled { runs: done, events, length, times }
}

struct Stream<'a, P> {
    memory: &'a DeviceMemory<'a>,
    account: &'a mut WarpAccount,
    params: P,
    /// The header of its chunks, without sequence, events, length and times.
    header: [u32; 8],
    tables: &'a mut Tables,
}

impl<P: Copy> Stream<'_, P> {
    /// Encodes a stretch into `chunk` and further chunks. Returns true if the whole stretch is encoded.
    fn write<E: Encoder<Params = P>>(&mut self, chunk: &mut [u8], mut stretch: &mut [Words]) -> bool {
        let mut chunk = Some(chunk);
        while !stretch.is_empty() {
            let Some(bytes) = chunk.take() else { return false };
            let done = self.fill::<E>(bytes, stretch);
            stretch = &mut stretch[done..];
            if !stretch.is_empty() {
                chunk = self.memory.claim_chunk();
            }
        }
        true
    }

    /// Like the function `fill`, into a chunk. Returns the number of complete runs.
    fn fill<E: Encoder<Params = P>>(&mut self, chunk: &mut [u8], runs: &mut [Words]) -> usize {
        let (header, payload) = chunk.split_at_mut(CHUNK_HEADER_BYTES as usize);
        let time_bytes = self.memory.time_bytes(self.header[5]);
        let Filled { runs: done, events, length, times } =
            fill::<E>(self.params, self.tables, runs, payload, time_bytes);
        let words = &mut self.header;
        (words[1], words[2], words[3]) = (self.account.chunks, events, length);
        (words[6], words[7]) = (times[0], times[1]);
        write_words(header, words);
        if events != 0 {
            self.account.chunks += 1;
            self.account.recorded += u64::from(events);
        }
        done
    }
}
