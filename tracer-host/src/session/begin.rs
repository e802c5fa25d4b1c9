//! Launches that are begun, and not waited for.
//!
//! A launch's logs lie in the pool from its begin on. When launches have ended, the counters of claims tell
//! how much of the pool they took; when all have, the pool can be drained. Nobody needs to wait for that,
//! unless the next launch finds no room: it waits for those before it, but not for longer than its caller
//! says. For a kernel may itself wait for what the program does next.

use std::time::{Duration, Instant};

use warptrace_device::KernelCall;
use warptrace_format::file::LaunchInfo;

use super::{Logs, Room, Session, SessionError};
use crate::{Begun, LaunchShape, Tracing};

/// Who waits for a kernel, asks again and again; first without a pause, and then with pauses up to so long.
const WITHOUT_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// When so many launches have not ended, those behind them are not asked for: a program may begin hundreds,
/// and most end in the order in which they began.
const LOOKED_AT: usize = 16;

/// How long a launch waits for launches that run.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// If they leave it too little room.
    pub short: Duration,
    /// If nobody knows, because one of them is the first of its kernel.
    pub unknown: Duration,
}

/// Launches that were begun in one go, and have not ended as far as is known.
#[derive(Debug)]
pub(super) struct Running {
    /// The device's number of them.
    begun: u64,
    pub(super) launches: Vec<LaunchInfo>,
}

impl<W: std::io::Write + Send + 'static> Session<'_, W> {
    /// Begins launches in one go, and does not wait for them: one, or all of a graph, in an order in which
    /// they may run. If there may be no room for their logs, launches that were begun before are waited for,
    /// at most for
    /// `patience`, and drained.
    ///
    /// If they are [refused](SessionError::is_refusal), the session is as it was: nothing has run, the file
    /// says nothing of it, and the caller may run the kernels untraced.
    ///
    /// # Safety
    /// As [`record`](Self::record), until the kernels have ended.
    ///
    /// # Errors
    /// As `record`; also if the session was not [started](Self::start_overlapping) for launches that overlap, and
    /// [`SessionError::Busy`] if those before do not end and leave no room.
    pub unsafe fn begin(
        &mut self,
        launches: &[(KernelCall, LaunchShape)],
        patience: Patience,
    ) -> Result<(), SessionError> {
        let begun = self.guarded(|session| {
            // SAFETY: the caller's promise.
            unsafe { session.begin_all(launches, patience) }
        });
        if begun.as_ref().is_err_and(SessionError::is_refusal) {
            self.failed = false;
        }
        begun
    }

    unsafe fn begin_all(
        &mut self,
        launches: &[(KernelCall, LaunchShape)],
        patience: Patience,
    ) -> Result<(), SessionError> {
        if !self.overlap || matches!(self.logs, Logs::Streamed(_)) {
            return Err(SessionError::NoOverlap);
        }
        let mut infos = Vec::with_capacity(launches.len());
        for (number, (call, shape)) in (self.launches..).zip(launches) {
            infos.push(self.describe(number, &infos, call, shape)?);
        }
        let patience = self.make_room(&infos, patience)?;
        let still_running = self.running.iter().map(|running| running.launches.len()).sum();
        let Logs::Kept(pool) = &mut self.logs else { return Err(SessionError::NoOverlap) };
        let mark = pool.mark();
        let recorded: Vec<LaunchInfo> = infos.iter().filter(|info| info.is_recorded()).copied().collect();
        let logs = match pool.prepare(&recorded, still_running > 0) {
            Ok(logs) => logs,
            Err(error) => {
                pool.take_back(&mark);
                return Err(match error {
                    SessionError::Memory { .. } if still_running > 0 => {
                        SessionError::Busy { running: still_running, patience }
                    }
                    error => error,
                });
            }
        };
        let Self { recording, placement, chooses, .. } = *self;
        let mut logs = logs.into_iter();
        let mut tracing = |info: &LaunchInfo| {
            let logs = if info.is_recorded() { logs.next() } else { None };
            logs.map(|logs| Tracing { recording, placement, chooses, logs })
        };
        let all: Vec<Begun<'_>> = launches
            .iter()
            .zip(&infos)
            .map(|((call, shape), info)| Begun { call, shape, tracing: tracing(info) })
            .collect();
        // SAFETY: the caller's promise for the arguments; the pool is prepared for these launches.
        match unsafe { self.device.begin(&all) } {
            Ok(begun) => {
                self.launches += infos.len() as u32;
                infos.iter().filter(|info| info.is_recorded()).for_each(|info| self.count_recorded(info));
                self.running.push(Running { begun, launches: infos });
                Ok(())
            }
            Err(error) => {
                let error = SessionError::from(error);
                if error.is_refusal() {
                    pool.take_back(&mark);
                } else if let Some(info) = infos.first() {
                    self.end_failed(*info, &error);
                }
                Err(error)
            }
        }
    }

    /// Waits, drains, or neither, until launches should find room; or until those that run have not ended for
    /// too long. Answers how long that would be.
    fn make_room(&mut self, infos: &[LaunchInfo], patience: Patience) -> Result<Duration, SessionError> {
        let recorded: Vec<LaunchInfo> = infos.iter().filter(|info| info.is_recorded()).copied().collect();
        self.look_at_running()?;
        let patience = match self.has_room(&recorded) {
            Room::Enough => return Ok(Duration::ZERO),
            Room::Unknown => patience.unknown,
            Room::Short => patience.short,
        };
        // Nobody waits once more for launches that were waited for in vain, before one of them has ended.
        let waits = self.in_vain.is_none_or(|waited| waited < patience);
        if self.wait_for_running(if waits { patience } else { Duration::ZERO })? {
            if self.has_room(&recorded) != Room::Enough {
                self.drain()?;
            }
        } else if waits {
            self.in_vain = Some(patience);
        }
        Ok(patience)
    }

    fn has_room(&self, infos: &[LaunchInfo]) -> Room {
        let Logs::Kept(pool) = &self.logs else { return Room::Enough };
        let running = self.running.iter().flat_map(|running| &running.launches);
        let kernels: Vec<u32> = running.filter(|info| info.is_recorded()).map(LaunchInfo::kernel).collect();
        pool.has_room(infos, &kernels)
    }

    /// Takes note of launches that have ended, and tells whether all have. Does not wait.
    ///
    /// # Errors
    /// If one has failed: then the file has ended.
    pub fn look(&mut self) -> Result<bool, SessionError> {
        self.guarded(Self::look_at_running)
    }

    fn look_at_running(&mut self) -> Result<bool, SessionError> {
        let (mut still, mut kernels) = (Vec::new(), Vec::new());
        let mut all = std::mem::take(&mut self.running).into_iter();
        while let Some(running) = all.next() {
            if still.len() >= LOOKED_AT {
                still.push(running);
                still.extend(all);
                break;
            }
            match self.device.ended(running.begun) {
                Ok(None) => still.push(running),
                Ok(Some(time)) => {
                    self.in_vain = None;
                    self.total.kernel += time;
                    self.total.launches += running.launches.len() as u64;
                    let recorded = running.launches.iter().filter(|info| info.is_recorded());
                    let before = kernels.len();
                    kernels.extend(recorded.map(LaunchInfo::kernel));
                    self.total.recorded_launches += (kernels.len() - before) as u64;
                    self.pending.extend(running.launches);
                }
                Err(error) => {
                    let error = SessionError::from(error);
                    self.running = still;
                    self.running.extend(all);
                    // What ended before may still be there.
                    let _ = self.drain();
                    if let Some(info) = running.launches.first() {
                        self.end_failed(*info, &error);
                    }
                    return Err(error);
                }
            }
        }
        self.running = still;
        if !kernels.is_empty()
            && let Logs::Kept(pool) = &mut self.logs
        {
            let claims = pool.read_claims(self.device)?;
            pool.ended(&kernels, claims);
        }
        // A file's launches stand in the order of their numbers.
        self.pending.sort_unstable_by_key(LaunchInfo::number);
        Ok(self.running.is_empty())
    }

    /// Waits for launches that run, at most for `patience`; tells whether all have ended.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn wait(&mut self, patience: Duration) -> Result<bool, SessionError> {
        self.guarded(|session| session.wait_for_running(patience))
    }

    pub(super) fn wait_for_running(&mut self, patience: Duration) -> Result<bool, SessionError> {
        let (started, mut pause) = (Instant::now(), Duration::from_micros(20));
        loop {
            if self.look_at_running()? {
                return Ok(true);
            }
            match started.elapsed() {
                waited if waited >= patience => return Ok(false),
                waited if waited < WITHOUT_PAUSE => std::hint::spin_loop(),
                _ => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}
