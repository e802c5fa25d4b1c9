//! Work of the host while a kernel runs, if warps that have left it are encoded on the device, in rounds.
//!
//! The host takes runs itself only if lanes wait too long for memory, for example because most of the warps
//! that hold it still run: one part of the warps at a time, because a round may encode the others soon.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use warptrace_abi::stream::StreamLogs;
use warptrace_encode::{FLATTENED, NO_ROOM};

use super::launch::{Consumer, Launch};
use super::partition::Partition;
use super::plan::{Plan, Room};
use super::rounds::{Flattened, News, Round, Running};
use super::scan::{ReadOptions, TAKEOVER_PARTS, TakesOver};
use super::{Drained, SessionError, Streams};
use crate::LiveMemory;
use crate::session::worker::Account;

/// How long lanes wait before the host takes over warps: while a round is being flattened, and otherwise.
const PATIENCE_WITH_ROUND: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_millis(2);
/// A round needs at least 1 / `WORTH_SHARE` of all segments in use: with fewer, no lane lacks memory.
const WORTH_SHARE: usize = 16;
/// Minimum number of segments in use for a round after the kernel has ended. The host encodes fewer itself.
const WORTH_SEGMENTS: usize = 4096;
/// Minimum number of warps that are expected to fit into a round.
const MIN_FITTED: usize = 64;
/// Maximum wait of an interruption for rounds that have copied their segments; a tenth of it for others.
const LAST_WAIT: Duration = Duration::from_secs(2);

impl Drained {
    /// Returns this data, preceded by the chunks of `before`.
    pub(super) fn behind(mut self, before: Self) -> Self {
        let mut packed = before.packed;
        if packed.is_empty() {
            return self;
        }
        packed.vec().append(self.packed.vec());
        Self { packed, ..self }
    }
}

impl Streams {
    /// Works while a kernel runs: polls and starts rounds, and takes over warps if lanes wait too long.
    pub(super) fn attend(
        &mut self,
        memory: &mut dyn LiveMemory,
        asked: Option<&AtomicBool>,
    ) -> Result<Drained, SessionError> {
        let mut scan = Drained::default();
        let Some(partition) = self.partition.filter(|_| !self.launches.is_empty()) else { return Ok(scan) };
        let ended = self.read_ended(memory, false)?;
        self.take_tickets(memory, partition)?;
        self.poll(memory, Duration::ZERO, &mut scan)?;
        if WORTH_SHARE * self.in_use.count() >= self.supply.segments() as usize {
            self.begin_round(partition)?;
        }
        if self.has_waited_long() {
            self.takeover_part = (self.takeover_part + 1) % TAKEOVER_PARTS;
            let takes_over = TakesOver::Part(self.takeover_part);
            self.read(memory, partition, ReadOptions { is_over: false, gives: true, asked, takes_over })?;
            scan.packed.vec().append(&mut self.encode(false, asked));
            self.short_since = None;
        }
        self.note(ended);
        Ok(scan)
    }

    /// Returns true if lanes have waited too long for memory, so that the host must take runs itself.
    fn has_waited_long(&mut self) -> bool {
        if !self.supply.is_short() {
            self.short_since = None;
            return false;
        }
        let since = self.short_since.get_or_insert_with(Instant::now).elapsed();
        let mut running = self.rounds.iter().filter_map(|rounds| rounds.running.as_ref());
        since >= if running.any(|it| it.outcomes.is_none()) { PATIENCE_WITH_ROUND } else { PATIENCE }
    }

    fn poll(
        &mut self,
        memory: &mut dyn LiveMemory,
        wait: Duration,
        scan: &mut Drained,
    ) -> Result<(), SessionError> {
        for number in 0..self.rounds.len() {
            if let Some(news) = self.rounds[number].poll(wait)? {
                self.take_news(memory, number, news, scan)?;
            }
        }
        Ok(())
    }

    fn take_news(
        &mut self,
        memory: &mut dyn LiveMemory,
        number: usize,
        news: News,
        scan: &mut Drained,
    ) -> Result<(), SessionError> {
        match news {
            News::Flattened(Flattened { new_headers, segments, outcomes }) => {
                for [segment, tag] in new_headers {
                    if let Some(slot) = self.in_use.take_slot(segment, tag) {
                        self.supply.slot_was_read(slot);
                    }
                }
                self.free_flattened(&segments);
                self.give(memory)?;
                self.short_since = None;
                let Some(running) = &mut self.rounds[number].running else { return Ok(()) };
                let Some(launch) = self.launches.get_mut(&running.launch) else { return Ok(()) };
                let fitted = outcomes.iter().filter(|outcome| **outcome == FLATTENED).count();
                for (&warp, &outcome) in running.warps.iter().zip(&outcomes) {
                    match outcome {
                        FLATTENED => {}
                        NO_ROOM if fitted != 0 => {
                            launch.set_consumer(warp, Consumer::Undecided);
                            launch.left.push(warp);
                        }
                        // The warp is too long for any round, or only the host can count its losses.
                        _ => launch.set_consumer(warp, Consumer::Host),
                    }
                }
                self.warps_in_rounds += fitted as u64;
                if fitted < running.warps.len() {
                    self.fitted = fitted;
                }
                running.outcomes = Some(outcomes);
            }
            News::Chunks(mut chunks) => {
                if scan.packed.is_empty() {
                    scan.packed = chunks;
                } else {
                    scan.packed.vec().append(chunks.vec());
                }
            }
            News::Done(accounts) => {
                let running = self.rounds[number].running.take();
                let launch = running.as_ref().and_then(|it| self.launches.get_mut(&it.launch));
                if let (Some(running), Some(launch)) = (running, launch) {
                    note_accounts(launch, &running, &accounts);
                }
            }
            // `poll` returns this as an error.
            News::Failed(error) => return Err(error),
        }
        Ok(())
    }

    fn free_flattened(&mut self, segments: &[u32]) {
        let mut free = Vec::with_capacity(segments.len());
        for &segment in segments {
            if let Some(slot) = self.in_use.remove(segment) {
                // Its lane has written into it.
                slot.into_iter().for_each(|slot| self.supply.slot_was_read(slot));
                free.push(segment);
            }
        }
        self.supply.free(&free);
        self.in_use.tidy();
    }

    /// Starts a round of warps that left before the last scan. Returns false without warps or idle thread.
    fn begin_round(&mut self, partition: Partition) -> Result<bool, SessionError> {
        let idle = self.rounds.iter().position(|rounds| rounds.running.is_none());
        let Some((idle, area)) = idle.and_then(|idle| Some((idle, self.areas().nth(idle)?))) else {
            return Ok(false);
        };
        // Most of the warps that do not fit wait for another round.
        let most = 2 * self.fitted.max(MIN_FITTED);
        for launch in self.launches.values_mut().filter(|launch| !launch.left.is_empty()) {
            let room = Room {
                area,
                chunk_bytes: self.chunk_bytes,
                times: self.times,
                tracks: self.tracks,
                segment_count: partition.segment_count,
            };
            let logs = launch_logs(self.memory.address, partition, launch);
            let Some(plan) = Plan::new(room, &logs) else {
                // The launch has too many warps for the tables of a round. The host takes them all.
                launch.left.clear();
                continue;
            };
            let from = launch.left.len().saturating_sub(most.min(plan.max_warps as usize));
            let mut warps = launch.left.split_off(from);
            warps.retain(|warp| launch.consumer(*warp) == Consumer::Undecided);
            warps.iter().for_each(|warp| launch.set_consumer(*warp, Consumer::Round));
            if !warps.is_empty() {
                self.rounds[idle].begin(Round { plan, warps })?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Encodes the remaining logs on the device, after all kernels have ended, if enough segments are in use.
    pub(super) fn encode_rest(&mut self, memory: &mut dyn LiveMemory) -> Result<Drained, SessionError> {
        let mut scan = Drained::default();
        let Some(partition) = self.partition.filter(|_| !self.rounds.is_empty()) else { return Ok(scan) };
        self.take_tickets(memory, partition)?;
        let is_worth_it = self.in_use.count() >= WORTH_SEGMENTS;
        for launch in self.launches.values_mut() {
            launch.left.clear();
            if is_worth_it {
                let warps = (0..launch.warps).filter(|warp| launch.consumer(*warp) == Consumer::Undecided);
                launch.left = warps.collect();
            }
        }
        loop {
            let has_begun = self.in_use.count() >= WORTH_SEGMENTS && self.begin_round(partition)?;
            if has_begun {
                continue;
            }
            if !self.is_running() {
                return Ok(scan);
            }
            self.poll(memory, Duration::from_micros(100), &mut scan)?;
        }
    }

    fn is_running(&self) -> bool {
        self.rounds.iter().any(|rounds| rounds.running.is_some())
    }

    /// Abandons rounds for an interruption. The host takes the warps that a round has not copied yet.
    pub(super) fn leave_rounds(&mut self) {
        for running in self.rounds.iter_mut().filter_map(|rounds| rounds.running.take()) {
            if running.outcomes.is_none()
                && let Some(launch) = self.launches.get(&running.launch)
            {
                running.warps.iter().for_each(|warp| launch.set_consumer(*warp, Consumer::Host));
            }
        }
    }

    /// Waits for running rounds, whose chunks belong in the file. Stops at an error, or after [`LAST_WAIT`].
    pub(in super::super) fn finish_rounds(&mut self, memory: &mut dyn LiveMemory) -> Drained {
        let (mut scan, started) = (Drained::default(), Instant::now());
        while self.is_running() {
            let mut running = self.rounds.iter().filter_map(|rounds| rounds.running.as_ref());
            let most = if running.any(|it| it.outcomes.is_some()) { LAST_WAIT } else { LAST_WAIT / 10 };
            if started.elapsed() >= most || self.poll(memory, LAST_WAIT / 50, &mut scan).is_err() {
                break;
            }
        }
        scan
    }
}

fn launch_logs(memory: u64, partition: Partition, launch: &Launch) -> StreamLogs {
    StreamLogs {
        segments: memory + partition.segments,
        lost: memory + launch.tables,
        warps: launch.warps,
        launch: launch.info.number(),
        segment_entries: partition.segment_entries,
        ..StreamLogs::default()
    }
}

fn note_accounts(launch: &mut Launch, running: &Running, accounts: &[Account]) {
    for (track, accounts) in (0..).zip(accounts.chunks(running.warps.len())) {
        for (number, (&warp, account)) in running.warps.iter().zip(accounts).enumerate() {
            let outcome = running.outcomes.as_ref().and_then(|outcomes| outcomes.get(number));
            if outcome == Some(&FLATTENED) {
                let (recorded, chunks) = account.recorded();
                launch.note_encoded(track, warp, recorded, chunks);
            }
        }
    }
}
