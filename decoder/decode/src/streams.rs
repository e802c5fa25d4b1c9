//! The warps that recorded or lost events, or did not finish, with their accounting.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{LaunchInfo, StreamId};

use crate::accounts::{AccountCursor, Accounted};
use crate::error::DecodeError;
use crate::file::TraceFile;
use crate::work::Work;

/// Maximum number of warps that one pass over frames without accounting counts.
const WARPS_AT_ONCE: usize = 1 << 16;

/// One warp of a launch that recorded or lost events on a track, or did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamSummary {
    /// Linear index of the warp in its launch.
    pub warp: u32,
    /// Launch, kernel, block and warp in block.
    pub id: StreamId,
    /// Number of chunks, from the accounting or, without accounting, from the frames.
    pub chunks: u64,
    /// Number of recorded events, from the accounting or, without accounting, from the frames.
    pub events: u64,
    /// The warp's accounting, if the file has it.
    pub account: Option<WarpAccount>,
}

/// The streams of a track in order of warp; see [`TraceFile::streams`]. Ends after the first error.
#[derive(Debug)]
pub struct Streams<'a> {
    file: &'a TraceFile,
    launch: &'a LaunchInfo,
    track: u32,
    cursor: AccountCursor<'a>,
    rest: Range<u32>,
    uncounted: Range<u32>,
    accounted: (Range<u32>, WarpAccount),
    ready: VecDeque<StreamSummary>,
}

impl TraceFile {
    /// Returns the warps of `launch` that recorded or lost events on `track`, or did not finish, in order.
    /// Reads only the accounting; if it is missing (an interrupted recording), counts the entries of the
    /// frames' tables. Memory: one accounting section, or the counts of 65,536 warps. Fails if the file has
    /// no such launch or track; the iterator returns the error of a damaged section.
    pub fn streams(&self, launch: u32, track: u32) -> Result<Streams<'_>, DecodeError> {
        let (info, _) = self.resolve(launch, track)?;
        let cursor = AccountCursor::new(self, launch, track);
        let (rest, ready) = (0..info.warps(), VecDeque::new());
        let accounted = (0..0, WarpAccount::default());
        Ok(Streams { file: self, launch: info, track, cursor, rest, uncounted: 0..0, accounted, ready })
    }
}

impl Streams<'_> {
    fn refill(&mut self) -> Result<(), DecodeError> {
        if !self.uncounted.is_empty() {
            return self.count();
        }
        match self.cursor.next(self.rest.clone()) {
            Accounted::Missing(warps) => {
                self.rest.start = warps.end;
                self.uncounted = warps;
            }
            Accounted::Damaged(_, error) => return Err(error),
            Accounted::Account(warps, account) => {
                self.rest.start = warps.end;
                let steps = Work::steps_of_warps(&warps, &account);
                if steps != 0 {
                    self.file.work.spend(steps)?;
                    self.accounted = (warps, account);
                }
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), DecodeError> {
        let mut warps = self.uncounted.clone();
        let mut counts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for entry in self.file.frames(self.launch.number(), self.track) {
            if entry.first_warp >= warps.end || entry.last_warp < warps.start {
                continue;
            }
            let frame = self.file.load_frame(entry)?;
            for chunk in frame.entries().filter(|chunk| warps.contains(&chunk.warp)) {
                let count = counts.entry(chunk.warp).or_default();
                *count = (count.0 + 1, count.1 + u64::from(chunk.events));
            }
            // Postpones the highest warps to the next pass.
            while counts.len() > WARPS_AT_ONCE
                && let Some((warp, _)) = counts.pop_last()
            {
                warps.end = warp;
            }
        }
        self.uncounted.start = warps.end;
        for (warp, (chunks, events)) in counts {
            if let Some(id) = self.launch.stream_id(warp) {
                self.ready.push_back(StreamSummary { warp, id, chunks, events, account: None });
            }
        }
        Ok(())
    }
}

impl Iterator for Streams<'_> {
    type Item = Result<StreamSummary, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(summary) = self.ready.pop_front() {
                return Some(Ok(summary));
            }
            let (warps, account) = &mut self.accounted;
            if let Some(warp) = warps.next() {
                let (chunks, events) = (u64::from(account.chunks), account.recorded);
                let account = Some(*account);
                // The launch has the warp, so this always succeeds.
                let Some(id) = self.launch.stream_id(warp) else { continue };
                return Some(Ok(StreamSummary { warp, id, chunks, events, account }));
            }
            if self.rest.is_empty() && self.uncounted.is_empty() {
                return None;
            }
            if let Err(error) = self.refill() {
                (self.rest, self.uncounted) = (0..0, 0..0);
                return Some(Err(error));
            }
        }
    }
}
