//! The threads that encode and write the file while the program continues.

mod data;
mod encoding;

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use bytemuck::{Pod, TransparentWrapper, Zeroable};
use warptrace_abi::recording::Recording;
use warptrace_encode::{AccountsJob, HEAD_WORDS};
use warptrace_format::account::WarpAccount;
use warptrace_format::file::{AccountRun, ClockReading, EarlyEnd, HostLaunch, HostTimes, LaunchInfo};
use warptrace_format::span::WarpSpan;

use self::encoding::{EncodedDrain, Encoding};
use super::classes::Firsts;
use super::{LaunchReport, SessionError};
use crate::packed;
use crate::writer::TraceWriter;
use crate::{HostMessage, threads};

/// Maximum threads, each with one drain. Each drain is in host memory, so this bounds that memory.
const MOST_THREADS: usize = 6;
/// Maximum drains that wait for a thread.
const QUEUE: usize = 4;
/// Prepared memory for the first drain: packed chunks, and 131,072 packed accounts.
const READY_PACKED_BYTES: usize = 16 << 20;
const READY_ACCOUNTS: usize = 1 << 17;
/// Reserved bytes for the first drain. The size is large enough that the allocator maps the memory
/// separately. It then does not take heap memory that the program's own results could reuse.
const MAPPED_BYTES: usize = 64 << 20;

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
    pub(super) classes: Option<Arc<Firsts>>,
    pub(super) end: Vec<LaunchInfo>,
    /// Where the accounts of ended launches are. If no launch ends, the content is undefined.
    pub(super) form: Form,
    /// Accounts by launch, track and recorded warp. With classes, only accounts of encoded streams are valid.
    pub(super) accounts: Vec<Account>,
    /// Spans of their warps, if recorded, by launch and recorded warp.
    pub(super) spans: Vec<Span>,
    pub(super) tables: Vec<u64>,
    pub(super) words: Vec<u32>,
    /// A launch that did not complete, and may not have begun before. Boxed because it is rare.
    pub(super) early_end: Option<Box<(LaunchInfo, EarlyEnd)>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// In `accounts` and `spans`.
    #[default]
    Separate,
    /// In `tables` as on the device, by launch; spans follow the accounts of each launch if true.
    Tables(bool),
    /// In `words`, as [`AccountsJob`] packs them; with spans if true.
    Packed(bool),
}

/// Accounts of streams.
#[derive(Clone, Copy)]
enum Accounts<'a> {
    Each(&'a [WarpAccount]),
    Packed(&'a [u32]),
}

impl Accounts<'_> {
    fn get(self, stream: usize) -> WarpAccount {
        let found = match self {
            Self::Each(accounts) => accounts.get(stream).copied(),
            Self::Packed(words) => words.get(stream).map(|word| WarpAccount::unpack(*word)),
        };
        found.unwrap_or_default()
    }

    fn runs(self, streams: Range<usize>) -> Vec<AccountRun> {
        match self {
            Self::Each(accounts) => AccountRun::of(accounts.get(streams).unwrap_or_default()),
            Self::Packed(words) => {
                let equal = words.get(streams).unwrap_or_default().chunk_by(|a, b| a == b);
                let run = |run: &[u32]| AccountRun {
                    warps: run.len() as u32,
                    account: WarpAccount::unpack(run[0]),
                };
                equal.map(run).collect()
            }
        }
    }
}

impl Drained {
    /// Returns an empty value with prepared memory: allocation would dominate a short program's first drain.
    fn ready() -> Self {
        let packed = ready(0xff, READY_PACKED_BYTES, MAPPED_BYTES);
        let words = ready(1, READY_ACCOUNTS, MAPPED_BYTES / size_of::<u32>());
        Self { packed, words, ..Self::default() }.emptied()
    }

    fn emptied(mut self) -> Self {
        self.packed.clear();
        self.spans.clear();
        let Self { packed, accounts, spans, tables, words, .. } = self;
        Self { packed, accounts, spans, tables, words, ..Self::default() }
    }

    /// Separates accounts and spans. Leaves packed accounts as they are.
    fn separate(&mut self, tracks: u32) {
        match self.form {
            Form::Separate | Form::Packed(false) => {}
            Form::Tables(has_spans) => {
                self.accounts.clear();
                let mut rest = &self.tables[..];
                let mut take = |bytes: usize| {
                    let (taken, after) = rest.split_at_checked(bytes / size_of::<u64>()).unwrap_or_default();
                    rest = after;
                    taken
                };
                for info in &self.end {
                    let warps = info.chosen().count() as usize;
                    let accounts = take(size_of::<Account>() * warps * tracks as usize);
                    self.accounts.extend_from_slice(bytemuck::cast_slice(accounts));
                    let spans = take(size_of::<Span>() * warps * usize::from(has_spans));
                    self.spans.extend_from_slice(bytemuck::cast_slice(spans));
                }
            }
            Form::Packed(true) => {
                let job = self.job(tracks);
                let (heads, rest) =
                    self.words.split_at_checked(job.accounts_at() as usize).unwrap_or_default();
                let (heads, _) = heads.as_chunks::<{ HEAD_WORDS as usize }>();
                let (mut spans, _) = rest.get(job.streams as usize..).unwrap_or_default().as_chunks();
                // The first head is that of all words.
                for (info, [a, b, c, d]) in self.end.iter().zip(heads.iter().skip(1)) {
                    let double = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
                    let base = [double(*a, *b), double(*c, *d)];
                    let warps = info.chosen().count() as usize;
                    let (now, after) = spans.split_at_checked(warps).unwrap_or_default();
                    self.spans.extend(now.iter().map(|words| Span(WarpSpan::unpack(*words, base))));
                    spans = after;
                }
            }
        }
    }

    /// Returns the sizes of packed accounts.
    fn job(&self, tracks: u32) -> AccountsJob {
        let streams = self.end.iter().map(|info| tracks * info.chosen().count()).sum();
        let spans = u32::from(self.form == Form::Packed(true));
        AccountsJob { launches: self.end.len() as u32, streams, spans, ..AccountsJob::default() }
    }

    fn accounts(&self, tracks: u32) -> Accounts<'_> {
        match self.form {
            Form::Packed(_) => {
                let job = self.job(tracks);
                let from = job.accounts_at() as usize;
                Accounts::Packed(self.words.get(from..from + job.streams as usize).unwrap_or_default())
            }
            _ => Accounts::Each(Account::peel_slice(&self.accounts)),
        }
    }
}

/// Returns a vector with `written` values and capacity for `reserved`. Only the written part is touched.
fn ready<T: Clone>(value: T, written: usize, reserved: usize) -> Vec<T> {
    let mut memory = Vec::with_capacity(reserved);
    memory.resize(written, value);
    memory
}

enum Message {
    /// Messages of the host, which are written first, and a drain.
    Drained(Vec<HostMessage>, Drained),
    /// Requests the totals after everything before is written.
    Flush(SyncSender<LaunchReport>),
}

/// The writer and its threads. Each thread encodes one drain at a time; they write in the order of the drains.
/// Dropping it writes all pending data. Calls return the first error, which may be of earlier data. Nothing is
/// written after an error.
pub(super) struct Worker<W> {
    queue: Option<SyncSender<Message>>,
    /// Messages for the next drain. A message alone would occupy a thread until all earlier drains are written.
    messages: Vec<HostMessage>,
    /// Written data comes back empty, to reuse its memory.
    written: Receiver<Drained>,
    shared: Arc<Shared<W>>,
    threads: Vec<JoinHandle<()>>,
}

impl<W: Write + Send + 'static> Worker<W> {
    pub(super) fn start(
        writer: TraceWriter<W>,
        chunk_bytes: u32,
        recording: Recording,
    ) -> Result<Self, SessionError> {
        let (queue, messages) = sync_channel(QUEUE);
        // Holds as many as can be in use at once. Memory of other drains is freed.
        let (empty, written) = sync_channel(MOST_THREADS + QUEUE);
        let _ = empty.try_send(Drained::ready());
        let (tracks, data_track) = (recording.tracks(), recording.data_track());
        // Tiles may be longer than chunks.
        let chunk_bytes = if data_track.is_some() { packed::MAX_TILE } else { 0 }.max(chunk_bytes as usize);
        let encoding = Encoding { encoder: writer.encoder(), chunk_bytes, tracks, data_track };
        let work = Work { writer, report: LaunchReport::default() };
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue { messages: Some(messages), next: 0, open: BTreeMap::new() }),
            turn: Mutex::new(Turn { next: 0, work: Ok(work) }),
            passed: Condvar::new(),
        });
        let (messages, threads) = (Vec::new(), Vec::new());
        let mut worker = Self { queue: Some(queue), messages, written, shared, threads };
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
        for _ in 0..threads {
            let (shared, encoding, empty) = (Arc::clone(&worker.shared), encoding.clone(), empty.clone());
            let thread = std::thread::Builder::new()
                .name("warptrace writer".to_owned())
                .spawn(move || shared.run(&encoding, &empty));
            match thread {
                Ok(thread) => worker.threads.push(thread),
                Err(source) if worker.threads.is_empty() => return Err(SessionError::Thread { source }),
                // One thread is enough.
                Err(_) => break,
            }
        }
        Ok(worker)
    }

    /// Returns an empty value, with the memory of written data if available.
    pub(super) fn empty(&self) -> Drained {
        self.written.try_recv().unwrap_or_default()
    }

    /// Queues drained data, after messages. Waits while the queue is full.
    pub(super) fn write(&mut self, drained: Drained) -> Result<(), SessionError> {
        let messages = std::mem::take(&mut self.messages);
        self.give(Message::Drained(messages, drained))
    }

    /// Adds a message, which is written before the next drained data, or at the next flush or the end.
    pub(super) fn send(&mut self, message: HostMessage) {
        self.messages.push(message);
    }

    /// Adds host times of launches and clock readings, if any, like [`send`](Self::send).
    pub(super) fn send_times(&mut self, launches: Vec<HostLaunch>, readings: Vec<ClockReading>) {
        let times = HostTimes { launches, readings };
        if !times.is_empty() {
            self.send(HostMessage::Times(times));
        }
    }

    /// Waits until everything is written. Returns the totals so far.
    pub(super) fn flush(&mut self) -> Result<LaunchReport, SessionError> {
        if !self.messages.is_empty() {
            self.write(Drained::default())?;
        }
        let (answer, answered) = sync_channel(1);
        self.give(Message::Flush(answer))?;
        answered.recv().map_err(|_| self.error())
    }

    /// Ends the threads. Returns the writer and the totals.
    pub(super) fn finish(mut self) -> Result<(TraceWriter<W>, LaunchReport), SessionError> {
        self.end().map(|Work { writer, report }| (writer, report))
    }

    fn give(&mut self, message: Message) -> Result<(), SessionError> {
        let is_sent = self.queue.as_ref().is_some_and(|queue| queue.send(message).is_ok());
        if is_sent { Ok(()) } else { Err(self.error()) }
    }

    /// Returns the error that ended the threads.
    fn error(&mut self) -> SessionError {
        self.end().err().unwrap_or(SessionError::Unusable)
    }

    /// Ends the threads. Returns the writer, once, or the first error, once.
    fn end(&mut self) -> Result<Work<W>, SessionError> {
        self.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut turn = self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut turn.work, Err(SessionError::Unusable))
    }
}

impl<W> Worker<W> {
    /// Waits until all pending data is written. Returns the panic of a thread.
    fn join(&mut self) -> std::thread::Result<()> {
        let messages = std::mem::take(&mut self.messages);
        if let Some(queue) = self.queue.take().filter(|_| !messages.is_empty()) {
            // The queue is closed after an error.
            let _ = queue.send(Message::Drained(messages, Drained::default()));
        }
        let ended: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
        ended.into_iter().collect()
    }
}

impl<W> Drop for Worker<W> {
    fn drop(&mut self) {
        // Errors and panics are ignored; a panic was printed already.
        let _ = self.join();
    }
}

struct Shared<W> {
    queue: Mutex<Queue>,
    turn: Mutex<Turn<W>>,
    /// Signals that a thread has passed its turn.
    passed: Condvar,
}

struct Queue {
    /// `None` after a thread has ended.
    messages: Option<Receiver<Message>>,
    /// Number of the next message.
    next: u64,
    /// Launches that have begun and not ended.
    open: BTreeMap<u32, LaunchInfo>,
}

struct Turn<W> {
    /// Number of the message that is written next.
    next: u64,
    /// The error of the first message that could not be written.
    work: Result<Work<W>, SessionError>,
}

struct Work<W> {
    writer: TraceWriter<W>,
    report: LaunchReport,
}

/// A message's place in the order. If a thread panics before its turn has passed, nothing more is written.
struct Ticket<'a, W> {
    shared: &'a Shared<W>,
    number: u64,
}

impl<W> Ticket<'_, W> {
    /// Waits until all earlier messages are written, then runs `write`. Returns false after an error.
    fn redeem(self, write: impl FnOnce(&mut Work<W>) -> Result<(), SessionError>) -> bool {
        let is_later = |turn: &mut Turn<W>| turn.work.is_ok() && turn.next != self.number;
        let turn = self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.passed.wait_while(turn, is_later);
        let mut turn = waited.unwrap_or_else(PoisonError::into_inner);
        if let Ok(work) = &mut turn.work {
            if let Err(error) = write(work) {
                turn.work = Err(error);
            }
            turn.next += 1;
        }
        turn.work.is_ok()
    }
}

impl<W> Drop for Ticket<'_, W> {
    fn drop(&mut self) {
        let mut turn = self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.next <= self.number && turn.work.is_ok() {
            turn.work = Err(SessionError::Unusable);
        }
        drop(turn);
        self.shared.passed.notify_all();
    }
}

/// Closes the queue when a thread ends, also by a panic, so that no sender waits for it.
struct Close<'a, W>(&'a Shared<W>);

impl<W> Drop for Close<'_, W> {
    fn drop(&mut self) {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner).messages = None;
    }
}

impl<W: Write + Send> Shared<W> {
    /// Waits for the next message. Returns it with its ticket, and with the launches that its chunks may have.
    fn next(&self) -> Option<(Message, Ticket<'_, W>, Vec<LaunchInfo>)> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let message = queue.messages.as_ref()?.recv().ok()?;
        let number = queue.next;
        queue.next += 1;
        let mut launches = Vec::new();
        if let Message::Drained(_, drained) = &message {
            let recorded = drained.begin.iter().filter(|info| info.is_recorded());
            queue.open.extend(recorded.map(|info| (info.number(), *info)));
            launches = queue.open.values().copied().collect();
            for info in &drained.end {
                queue.open.remove(&info.number());
            }
        }
        Some((message, Ticket { shared: self, number }, launches))
    }

    fn run(&self, encoding: &Encoding, empty: &SyncSender<Drained>) {
        let _close = Close(self);
        let mut ordered = Vec::new();
        while let Some((message, ticket, launches)) = self.next() {
            let goes_on = match message {
                Message::Drained(messages, mut drained) => {
                    let started = Instant::now();
                    drained.separate(encoding.tracks);
                    // Runs on compression threads, so that the steps need not wait for this thread.
                    let encoded = threads::install(|| encoding.encode(&drained, &launches, &mut ordered));
                    let encoding = started.elapsed();
                    let goes_on = ticket.redeem(|work| {
                        let started = Instant::now();
                        threads::install(|| work.write(&messages, &drained, encoded?))?;
                        work.report.write += encoding + started.elapsed();
                        Ok(())
                    });
                    // The receiver may be dropped, or have enough.
                    let _ = empty.try_send(drained.emptied());
                    goes_on
                }
                Message::Flush(answer) => ticket.redeem(|work| {
                    let _ = answer.send(work.report);
                    Ok(())
                }),
            };
            if !goes_on {
                return;
            }
        }
    }
}

impl<W: Write + Send> Work<W> {
    fn write(
        &mut self,
        messages: &[HostMessage],
        drained: &Drained,
        encoded: EncodedDrain<'_>,
    ) -> Result<(), SessionError> {
        let EncodedDrain { data, batch, ends, counts } = encoded;
        messages.iter().try_for_each(|message| self.writer.write_message(message))?;
        // After an abandoned drain some launches have begun already.
        let is_new = |info: &&LaunchInfo| !self.writer.has_begun(info.number());
        let begin: Vec<LaunchInfo> = drained.begin.iter().filter(is_new).copied().collect();
        self.writer.begin_launches(&begin)?;
        self.writer.put_data(&data)?;
        if let Some(batch) = batch {
            self.writer.put_batch(batch, &ends)?;
        }
        self.report.add(&counts);
        if let Some((info, end)) = drained.early_end.as_deref() {
            if !self.writer.has_begun(info.number()) {
                self.writer.begin_launch(info)?;
            }
            self.writer.end_early(info.number(), end)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_accounts_and_spans_are_those_of_their_launches() {
        let end = [(3, 2), (5, 1)].map(|(number, blocks)| {
            LaunchInfo::new(number, 0, [blocks, 1, 1], [64, 1, 1], 0).expect("a launch")
        });
        let clocks = [[7 << 33, 1 << 40], [9, 2 << 40]];
        let span = |launch: usize, warp: u64| WarpSpan {
            begin_clock: clocks[launch][0] + warp,
            begin_timer: clocks[launch][1] + 2 * warp,
            end_clock: clocks[launch][0] + 100 + warp,
            end_timer: clocks[launch][1] + 200,
            begin_sm: 1 + warp as u32,
            end_sm: 2,
        };
        let spans: Vec<_> =
            [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)].map(|(of, warp)| (of, span(of, warp))).into();
        let mut words = vec![0; 4];
        words.extend(clocks.iter().flatten().flat_map(|it| [*it as u32, (it >> 32) as u32]));
        // Two tracks of four and of two warps.
        words.extend(1..=12);
        words.extend(spans.iter().flat_map(|(of, span)| span.pack(clocks[*of]).0));
        let mut drained =
            Drained { end: end.to_vec(), form: Form::Packed(true), words, ..Drained::default() };
        drained.separate(2);
        assert_eq!(Span::peel_slice(&drained.spans), spans.iter().map(|(_, span)| *span).collect::<Vec<_>>());
        let accounts = drained.accounts(2);
        assert_eq!(accounts.runs(0..12).len(), 12);
        assert_eq!((accounts.get(0).recorded, accounts.get(11).recorded), (1, 12));
        // Memory that does not fit the launches has no accounts.
        drained.words.truncate(9);
        drained.spans.clear();
        drained.separate(2);
        assert!(drained.spans.is_empty() && drained.accounts(2).runs(0..12).is_empty());
    }
}
