//! The thread that writes the file while the program continues.

mod data;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use bytemuck::{Pod, TransparentWrapper, Zeroable};
use rayon::prelude::*;
use warptrace_abi::recording::Recording;
use warptrace_format::account::WarpAccount;
use warptrace_format::chunk::TIME_BYTES;
use warptrace_format::file::{AccountRun, ClockReading, EarlyEnd, HostLaunch, HostTimes, LaunchInfo};
use warptrace_format::span::WarpSpan;

use super::classes::{ClassRun, Classes, StreamName};
use super::{LaunchReport, SessionError};
use crate::packed::{self, Piece, Unpacked};
use crate::writer::{Batch, BatchChunk, ChunkRef, TraceWriter, TrackEnd};
use crate::{HostMessage, threads};

/// Maximum drains that wait for the thread, in addition to the current one.
const QUEUE: usize = 2;
/// Prepared memory for the first drain: packed chunks, and 131,072 accounts.
const READY_PACKED_BYTES: usize = 16 << 20;
const READY_ACCOUNTS: usize = 1 << 17;
/// Reserved bytes for the first drain. The size is large enough that the allocator maps the memory
/// separately. It then does not take heap memory that the program's own results could reuse.
pub(super) const MAPPED_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(super) struct Account(WarpAccount);

impl Account {
    pub(super) fn new(account: WarpAccount) -> Self {
        Self(account)
    }

    /// Returns the events in chunks, and the number of chunks.
    pub(super) fn recorded(&self) -> (u64, u32) {
        (self.0.recorded, self.0.chunks)
    }
}

// SAFETY: `WarpAccount` has C layout with three 8-byte and two 4-byte integers, without padding.
unsafe impl Zeroable for Account {}
// SAFETY: see above.
unsafe impl Pod for Account {}
// SAFETY: the struct is `repr(transparent)`.
unsafe impl TransparentWrapper<WarpAccount> for Account {}

#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(super) struct Span(WarpSpan);

// SAFETY: `WarpSpan` has C layout with four 8-byte and two 4-byte integers, without padding.
unsafe impl Zeroable for Span {}
// SAFETY: see above.
unsafe impl Pod for Span {}
// SAFETY: the struct is `repr(transparent)`.
unsafe impl TransparentWrapper<WarpSpan> for Span {}

impl Span {
    pub(super) fn warps(spans: &mut [Self]) -> &mut [WarpSpan] {
        Self::peel_slice_mut(spans)
    }
}

/// Appends the values in `bytes`, whose length is a multiple of the value's size.
pub(super) fn append<T: Pod>(to: &mut Vec<T>, bytes: &[u8]) {
    let from = to.len();
    to.resize(from + bytes.len() / size_of::<T>(), T::zeroed());
    bytemuck::cast_slice_mut(&mut to[from..]).copy_from_slice(bytes);
}

/// Data copied from the device.
#[derive(Debug, Default)]
pub(super) struct Drained {
    /// Launches that begin, recorded or not.
    pub(super) begin: Vec<LaunchInfo>,
    /// Packed chunks of launches that have begun.
    pub(super) packed: Vec<u8>,
    pub(super) classes: Option<Arc<Classes>>,
    pub(super) end: Vec<LaunchInfo>,
    /// Their accounts from the device, by launch, track and recorded warp. With classes, only accounts of
    /// encoded streams are valid. If no launch ends, the content is undefined.
    pub(super) accounts: Vec<Account>,
    /// Spans of their warps, if recorded, by launch and recorded warp.
    pub(super) spans: Vec<Span>,
    /// A launch that did not complete, and may not have begun before. Boxed because it is rare.
    pub(super) early_end: Option<Box<(LaunchInfo, EarlyEnd)>>,
}

impl Drained {
    /// Returns an empty value with prepared memory: allocation would dominate a short program's first drain.
    fn ready() -> Self {
        let one = WarpAccount { finished: 1, ..WarpAccount::default() };
        let packed = ready(0xff, READY_PACKED_BYTES, MAPPED_BYTES);
        let accounts = ready(Account(one), READY_ACCOUNTS, MAPPED_BYTES / size_of::<Account>());
        Self { packed, accounts, ..Self::default() }.emptied()
    }

    fn emptied(mut self) -> Self {
        self.packed.clear();
        self.spans.clear();
        Self { packed: self.packed, accounts: self.accounts, spans: self.spans, ..Self::default() }
    }
}

/// Returns a vector with `written` values and capacity for `reserved`. Only the written part is touched.
fn ready<T: Clone>(value: T, written: usize, reserved: usize) -> Vec<T> {
    let mut memory = Vec::with_capacity(reserved);
    memory.resize(written, value);
    memory
}

enum Message {
    Drained(Drained),
    Host(HostMessage),
    /// Requests the totals after everything before is written.
    Flush(SyncSender<LaunchReport>),
}

/// The writer on its thread. Dropping it writes all pending data. Calls return the thread's error, which may
/// be of earlier data. Nothing is written after an error.
pub(super) struct Worker<W> {
    queue: Option<SyncSender<Message>>,
    /// Written data comes back empty, to reuse its memory.
    written: Receiver<Drained>,
    thread: Option<JoinHandle<Result<Work<W>, SessionError>>>,
}

impl<W: Write + Send + 'static> Worker<W> {
    pub(super) fn start(
        writer: TraceWriter<W>,
        chunk_bytes: u32,
        recording: Recording,
    ) -> Result<Self, SessionError> {
        let (queue, messages) = sync_channel(QUEUE);
        let (empty, written) = channel();
        let _ = empty.send(Drained::ready());
        let (launches, report) = (BTreeSet::new(), LaunchReport::default());
        let (tracks, data_track) = (recording.tracks(), recording.data_track());
        let work = Work { writer, chunk_bytes, tracks, data_track, launches, report, empty };
        let thread = std::thread::Builder::new()
            .name("warptrace writer".to_owned())
            .spawn(move || work.run(&messages))
            .map_err(|source| SessionError::Thread { source })?;
        Ok(Self { queue: Some(queue), written, thread: Some(thread) })
    }

    /// Returns an empty value, with the memory of written data if available.
    pub(super) fn empty(&self) -> Drained {
        self.written.try_recv().unwrap_or_default()
    }

    /// Queues drained data. Waits while the queue is full.
    pub(super) fn write(&mut self, drained: Drained) -> Result<(), SessionError> {
        self.give(Message::Drained(drained))
    }

    pub(super) fn send(&mut self, message: HostMessage) -> Result<(), SessionError> {
        self.give(Message::Host(message))
    }

    /// Queues host times of launches and clock readings, if any.
    pub(super) fn send_times(
        &mut self,
        launches: Vec<HostLaunch>,
        readings: Vec<ClockReading>,
    ) -> Result<(), SessionError> {
        let times = HostTimes { launches, readings };
        if times.is_empty() { Ok(()) } else { self.send(HostMessage::Times(times)) }
    }

    /// Waits until everything is written. Returns the totals so far.
    pub(super) fn flush(&mut self) -> Result<LaunchReport, SessionError> {
        let (answer, answered) = sync_channel(1);
        self.give(Message::Flush(answer))?;
        match answered.recv() {
            Ok(report) => Ok(report),
            Err(_) => Err(self.error()),
        }
    }

    /// Ends the thread. Returns the writer and the totals.
    pub(super) fn finish(mut self) -> Result<(TraceWriter<W>, LaunchReport), SessionError> {
        let Work { writer, report, .. } = self.join().unwrap_or(Err(SessionError::Unusable))?;
        Ok((writer, report))
    }

    fn give(&mut self, message: Message) -> Result<(), SessionError> {
        let is_sent = self.queue.as_ref().is_some_and(|queue| queue.send(message).is_ok());
        if is_sent { Ok(()) } else { Err(self.error()) }
    }

    /// Returns the error that ended the thread.
    fn error(&mut self) -> SessionError {
        match self.join() {
            Some(Err(error)) => error,
            _ => SessionError::Unusable,
        }
    }
}

impl<W> Worker<W> {
    fn join(&mut self) -> Option<Result<Work<W>, SessionError>> {
        self.queue = None;
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl<W> Drop for Worker<W> {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // Errors and panics are ignored; a panic was printed already.
            let _ = thread.join();
        }
    }
}

struct Work<W> {
    writer: TraceWriter<W>,
    chunk_bytes: u32,
    tracks: u32,
    data_track: Option<u32>,
    /// Launches that have begun and not ended.
    launches: BTreeSet<u32>,
    report: LaunchReport,
    /// Returns the memory of written data.
    empty: Sender<Drained>,
}

impl<W: Write + Send> Work<W> {
    fn run(mut self, messages: &Receiver<Message>) -> Result<Self, SessionError> {
        for message in messages {
            match message {
                Message::Drained(drained) => {
                    let started = Instant::now();
                    // Runs on a compression thread, so that the steps need not wait for this thread.
                    threads::install(|| self.write(&drained))?;
                    self.report.write += started.elapsed();
                    // The receiver may be dropped.
                    let _ = self.empty.send(drained.emptied());
                }
                Message::Host(message) => self.writer.write_message(&message)?,
                Message::Flush(answer) => drop(answer.send(self.report)),
            }
        }
        Ok(self)
    }

    fn write(&mut self, drained: &Drained) -> Result<(), SessionError> {
        // After an abandoned drain some launches have begun already.
        let is_new = |info: &&LaunchInfo| !self.writer.has_begun(info.number());
        let begin: Vec<LaunchInfo> = drained.begin.iter().filter(is_new).copied().collect();
        self.writer.begin_launches(&begin)?;
        let recorded = drained.begin.iter().filter(|info| info.is_recorded());
        self.launches.extend(recorded.map(LaunchInfo::number));
        let launches = self.launches.clone();
        for info in &drained.end {
            self.launches.remove(&info.number());
        }
        let of_ended = if drained.end.is_empty() { &[][..] } else { &drained.accounts };
        let spans = Span::peel_slice(&drained.spans);
        self.report.time_bytes += size_of_val(spans) as u64;
        let classes = drained.classes.as_deref();
        let ends = self.ends(&drained.end, Account::peel_slice(of_ended), classes, spans);
        self.write_data(drained, &launches)?;
        if !drained.packed.is_empty() || !ends.is_empty() {
            self.write_batch(drained, launches, &ends)?;
        }
        if let Some((info, end)) = drained.early_end.as_deref() {
            if !self.writer.has_begun(info.number()) {
                self.writer.begin_launch(info)?;
            }
            self.writer.end_early(info.number(), end)?;
        }
        Ok(())
    }

    /// Writes chunks of `launches`, and the accounts in `ends`.
    fn write_batch(
        &mut self,
        drained: &Drained,
        launches: BTreeSet<u32>,
        ends: &[TrackEnd<'_>],
    ) -> Result<(), SessionError> {
        let (chunk_bytes, data_track, report) =
            (self.chunk_bytes as usize, self.data_track, &mut self.report);
        let find = |batch: &mut Batch| {
            let pieces = packed::pieces(&drained.packed, chunk_bytes, packed::piece_bytes(&drained.packed));
            // Chunks of one piece are read while the next piece is searched.
            let classes = drained.classes.as_deref();
            let find = |(number, piece)| (number, found(batch, piece, chunk_bytes, data_track, classes));
            let mut pieces: Vec<_> = pieces.enumerate().par_bridge().map(find).collect();
            pieces.sort_unstable_by_key(|(number, _)| *number);
            for (_, piece) in pieces {
                let (found, [chunks, payload_bytes, time_bytes]) = piece?;
                report.chunks += chunks;
                report.payload_bytes += payload_bytes;
                report.time_bytes += time_bytes;
                batch.add(found);
            }
            Ok(())
        };
        let payload = |found: &BatchChunk| {
            let [runs, padding] = found.times;
            let times = found.length + padding;
            let of = |bytes| packed::payload(&drained.packed, found.at, bytes);
            [of(0..found.length), of(times..times + TIME_BYTES * runs)]
        };
        self.writer.write(launches, find, payload, drained.classes.as_deref(), ends)
    }

    /// Returns the accounts of each launch and track, and adds them to the report.
    fn ends<'a>(
        &mut self,
        launches: &[LaunchInfo],
        accounts: &[WarpAccount],
        classes: Option<&Classes>,
        mut spans: &'a [WarpSpan],
    ) -> Vec<TrackEnd<'a>> {
        // Accounts in damaged memory may have any value.
        let add = |sum: &mut u64, more| *sum = sum.wrapping_add(more);
        let mut rest = accounts;
        let mut ends = Vec::new();
        for info in launches {
            for track in 0..self.tracks {
                let warps = info.chosen().count() as usize;
                let (of_streams, after) = rest.split_at_checked(warps).unwrap_or_default();
                rest = after;
                let mut of_track = &[][..];
                if track == 0 {
                    (of_track, spans) = spans.split_at_checked(warps).unwrap_or_default();
                }
                let of_class =
                    |run: ClassRun| AccountRun { warps: run.count, account: accounts[run.class as usize] };
                let runs = match classes.and_then(|classes| classes.of_track(info, track)) {
                    Some((_, runs)) => AccountRun::joined(runs.map(of_class)),
                    None => AccountRun::of(of_streams),
                };
                let [attempted, recorded, lost] = sums(&runs);
                ends.push(TrackEnd { launch: info.number(), track, accounts: runs, spans: of_track });
                if track == 0 {
                    add(&mut self.report.attempted, attempted);
                    add(&mut self.report.recorded, recorded);
                    add(&mut self.report.lost, lost);
                } else if self.data_track == Some(track) {
                    add(&mut self.report.accesses, recorded);
                    add(&mut self.report.lost_accesses, lost);
                } else {
                    add(&mut self.report.twin_lost, lost);
                }
            }
        }
        ends
    }
}

fn sums(runs: &[AccountRun]) -> [u64; 3] {
    runs.iter().fold([0; 3], |sums, AccountRun { warps, account }| {
        let each = [account.attempted, account.recorded, account.lost];
        std::array::from_fn(|at| u64::wrapping_add(sums[at], each[at].wrapping_mul((*warps).into())))
    })
}

/// Returns the chunks of a piece, except on the data track. Also returns the number of chunks counted for all
/// streams of their classes, and for track 0 the bytes of events and of times.
fn found(
    batch: &Batch,
    piece: Piece<'_>,
    chunk_bytes: usize,
    data_track: Option<u32>,
    classes: Option<&Classes>,
) -> Result<(Vec<BatchChunk>, [u64; 3]), SessionError> {
    let (mut all, mut chunks) = (Vec::with_capacity(piece.chunks), 0);
    let (mut payload_bytes, mut time_bytes) = (0, 0);
    for Unpacked { header, payload, at } in packed::chunks(piece, chunk_bytes) {
        if data_track == Some(header.track) {
            continue;
        }
        let (launch, warp) = (header.launch, header.warp);
        // A kernel that writes out of bounds may have overwritten the pool.
        let damaged = |problem: String| SessionError::DamagedChunk { launch, warp, problem };
        let Some(info) = batch.launch(launch) else {
            return Err(damaged("no such launch is being recorded".to_owned()));
        };
        // The device numbers only recorded warps.
        let Some(warp) = info.chosen_warp(warp) else {
            return Err(damaged(format!("{} warps of the launch record", info.chosen().count())));
        };
        let payload =
            payload.ok_or_else(|| damaged(format!("it claims {} bytes of payload", header.length)))?;
        let (sequence, events, track) = (header.sequence, header.events, header.track);
        let behind = u64::from(header.runs) * u64::from(TIME_BYTES) + u64::from(header.padding);
        let encoded = (payload.len() as u64).checked_sub(behind).filter(|_| header.padding < TIME_BYTES);
        let encoded =
            encoded.ok_or_else(|| damaged(format!("it claims the times of {} runs", header.runs)))?;
        let payload = &payload[..encoded as usize];
        let mut found = batch.check(launch, &ChunkRef { track, warp, sequence, events, payload }, at)?;
        found.times = [header.runs, header.padding];
        all.push(found);
        let name = StreamName { launch, track, warp: header.warp };
        let streams = classes.map_or(1, |classes| classes.size(name).into());
        chunks += streams;
        if track == 0 {
            payload_bytes += streams * encoded;
            time_bytes += behind;
        }
    }
    Ok((all, [chunks, payload_bytes, time_bytes]))
}
