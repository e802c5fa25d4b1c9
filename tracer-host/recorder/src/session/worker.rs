//! The threads that encode and write the file while the program continues.

mod data;
mod drained;
mod encoding;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use warptrace_abi::recording::Recording;
use warptrace_format::file::{ClockReading, HostLaunch, HostTimes, LaunchInfo};

pub(super) use self::drained::{Account, Drained, Form, Span, append};
use self::encoding::{EncodedDrain, Encoding};
use super::{LaunchReport, SessionError};
use crate::packed;
use crate::writer::TraceWriter;
use crate::{HostMessage, threads};

/// Maximum threads, each with one drain.
const MOST_THREADS: usize = 6;
/// Maximum bytes of drains and messages that are not written yet, unless a single drain has more. Bounds host memory,
/// and is large enough that short bursts of a program do not wait for compression. Unit tests reach it.
const MOST_BYTES: usize = if cfg!(test) { 64 << 10 } else { 384 << 20 };

/// Assumed bytes of a message of the host.
const MESSAGE_BYTES: usize = 1 << 10;

#[derive(Default)]
struct Message {
    /// Written before the drain.
    messages: Vec<HostMessage>,
    drained: Drained,
    /// Gets the totals after the drain and everything before is written.
    flush: Option<SyncSender<LaunchReport>>,
    /// Its share of the backlog.
    bytes: usize,
}

/// The writer and its threads. Each thread encodes one drain at a time; they write in the order of the drains.
/// Dropping it writes all pending data. Calls return the first error, which may be of earlier data. Nothing is
/// written after an error.
pub(super) struct Worker<W> {
    queue: Option<Sender<Message>>,
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
        let (queue, messages) = channel();
        // Memory of further drains is freed.
        let (empty, written) = sync_channel(2 * MOST_THREADS);
        let (tracks, data_track) = (recording.tracks(), recording.data_track());
        // Tiles may be longer than chunks.
        let chunk_bytes = if data_track.is_some() { packed::MAX_TILE } else { 0 }.max(chunk_bytes as usize);
        let encoding = Encoding { encoder: writer.encoder(), chunk_bytes, tracks, data_track };
        let work = Work { writer, report: LaunchReport::default() };
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue { messages: Some(messages), next: 0, open: BTreeMap::new() }),
            backlog: Mutex::new(Some(0)),
            room: Condvar::new(),
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
        self.give(drained, None)
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
        let (answer, answered) = sync_channel(1);
        self.give(Drained::default(), Some(answer))?;
        answered.recv().map_err(|_| self.error())
    }

    /// Ends the threads. Returns the writer and the totals.
    pub(super) fn finish(mut self) -> Result<(TraceWriter<W>, LaunchReport), SessionError> {
        self.end().map(|Work { writer, report }| (writer, report))
    }

    fn give(
        &mut self,
        drained: Drained,
        flush: Option<SyncSender<LaunchReport>>,
    ) -> Result<(), SessionError> {
        let messages = std::mem::take(&mut self.messages);
        let bytes = drained.bytes() + size_of::<Message>() + MESSAGE_BYTES * messages.len();
        let is_full = |backlog: &mut Option<usize>| {
            backlog.is_some_and(|before| before > 0 && before + bytes > MOST_BYTES)
        };
        let backlog = self.shared.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        let mut backlog =
            self.shared.room.wait_while(backlog, is_full).unwrap_or_else(PoisonError::into_inner);
        let is_open = backlog.as_mut().map(|backlog| *backlog += bytes).is_some();
        drop(backlog);
        let message = Message { messages, drained, flush, bytes };
        let is_sent = is_open && self.queue.as_ref().is_some_and(|queue| queue.send(message).is_ok());
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
            let _ = queue.send(Message { messages, ..Message::default() });
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
    /// Bytes of queued drains and of those that are being encoded or written; `None` after a thread has ended.
    backlog: Mutex<Option<usize>>,
    /// Signals that the backlog has become smaller, or that a thread has ended.
    room: Condvar,
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
        // First wakes the sender, for which a thread may wait that holds the queue.
        *self.0.backlog.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.room.notify_all();
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
        let recorded = message.drained.begin.iter().filter(|info| info.is_recorded());
        queue.open.extend(recorded.map(|info| (info.number(), *info)));
        let launches = queue.open.values().copied().collect();
        for info in &message.drained.end {
            queue.open.remove(&info.number());
        }
        Some((message, Ticket { shared: self, number }, launches))
    }

    fn run(&self, encoding: &Encoding, empty: &SyncSender<Drained>) {
        let _close = Close(self);
        let mut ordered = Vec::new();
        while let Some((message, ticket, launches)) = self.next() {
            let (Message { messages, mut drained, flush, bytes }, started) = (message, Instant::now());
            let is_flush = flush.is_some();
            drained.separate(encoding.tracks);
            // Runs on compression threads, so that the steps need not wait for this thread.
            let encoded = threads::install(|| encoding.encode(&drained, &launches, &mut ordered));
            let encoding = started.elapsed();
            let goes_on = ticket.redeem(|work| {
                let started = Instant::now();
                threads::install(|| work.write(&messages, &drained, encoded?))?;
                work.report.write += encoding + started.elapsed();
                if let Some(flush) = flush {
                    let _ = flush.send(work.report);
                }
                Ok(())
            });
            if !is_flush {
                // The receiver may be dropped, or have enough.
                let _ = empty.try_send(drained.emptied());
            }
            let mut backlog = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
            *backlog = backlog.map(|before| before - bytes);
            drop(backlog);
            self.room.notify_all();
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
