//! Records the events of a warp into the same log memory as traced kernels on a GPU.
//!
//! Each lane has a *record* of its current run: mask, key (location and count) and start time. An event
//! repeats a run if the records of all its lanes have its mask and location and room in their counts; then
//! each lane adds to its own record. Otherwise each lane ends its run, and the event starts a new run of all
//! its lanes. The *leader* of a run, the lowest lane of its mask, appends the ended run to its log. Therefore
//! no lane writes memory that another lane reads, in any order of the warp's groups.
//!
//! Kept logs contain a run from its beginning (`warptrace_abi::log`, "Kernels that run"). Time is a counter
//! of the warp's events, and of the groups whose values were recorded. If waits are recorded, a barrier sets
//! the time of all warps of the block to the maximum among them.

mod after;
mod kept;
mod live;
mod ring;
pub(crate) mod spans;
mod stream;
mod track;
mod values;

use warptrace_abi::log::{Entry, LOCATION_SHIFT, MAX_KEY_COUNT};
use warptrace_abi::recording::Recording;
use warptrace_device::simt::WARP_LANES;

use self::after::Awaited;
use self::spans::SpanMemory;
use self::track::Track;
use self::values::ValueRecorder;
use crate::context::LANES;
use crate::launch::LogMemory;
use crate::warp::bits;

/// Track number of the twin in a dual recording.
const SHADOW: u32 = 1;

#[derive(Clone, Copy, Default)]
struct Record {
    /// Lanes of the run; 0 if the lane has no run.
    mask: u32,
    /// Location in the upper half, count in the lower half.
    key: u32,
    time: u32,
}

impl Record {
    fn entry(self) -> Entry {
        let Self { mask, key, time } = self;
        Entry { mask, location: (key >> LOCATION_SHIFT) as u16, count: key & MAX_KEY_COUNT, time }
    }

    /// Returns true if `count` more events at `location` by the lanes of `mask` continue the run.
    fn takes(self, location: u16, mask: u32, count: u32) -> bool {
        let same = self.mask == mask && self.key >> LOCATION_SHIFT == u32::from(location);
        same && (self.key & MAX_KEY_COUNT) + count <= MAX_KEY_COUNT
    }
}

pub(crate) struct WarpRecorder {
    /// Number of the last event; increased further by waits.
    clock: u32,
    records: [Record; LANES],
    /// State of a recording that starts after an event; `None` records from the lanes' start.
    awaited: Option<Awaited>,
    trace: Option<Box<dyn Track>>,
    shadow: Option<Box<dyn Track>>,
    values: Option<Box<ValueRecorder>>,
    span: Option<SpanMemory>,
}

impl WarpRecorder {
    pub(crate) fn off() -> Self {
        let (trace, shadow, values) = (None, None, None);
        let records = [Record::default(); LANES];
        Self { clock: 0, records, awaited: None, trace, shadow, values, span: None }
    }

    /// Returns the recorder of a warp ([`LogMemory::warp_index`]) that begins on multiprocessor `sm`. It
    /// records nothing if no such warp exists.
    ///
    /// # Safety
    /// As for [`Launch::traced`](crate::Launch::traced) and [`Launch::streamed`](crate::Launch::streamed)
    /// while the recorder is used. No other recorder is for the same warp.
    pub(crate) unsafe fn new(memory: &LogMemory, recording: Recording, warp: u32, sm: u32) -> Self {
        let mut recorder = Self::off();
        recorder.awaited = recording.after.map(Awaited::new);
        // SAFETY: guaranteed by the caller.
        recorder.trace = unsafe { track::open(memory, 0, warp) };
        if recording.dual {
            // SAFETY: guaranteed by the caller.
            recorder.shadow = unsafe { track::open(memory, SHADOW, warp) };
        }
        if let Some(track) = recording.data_track() {
            // SAFETY: guaranteed by the caller.
            recorder.values = unsafe { ValueRecorder::new(memory, track, warp) }.map(Box::new);
        }
        // SAFETY: guaranteed by the caller.
        recorder.span = unsafe { SpanMemory::new(memory, recording, warp) };
        if let Some(span) = recorder.span {
            span.begin(sm);
        }
        recorder
    }

    /// Records that the lanes of `mask` reached `location` `count` times in a row.
    pub(crate) fn record(&mut self, location: u16, mask: u32, count: u32) {
        if self.trace.is_none() || location == 0 || mask == 0 || count == 0 {
            return;
        }
        let count = match &mut self.awaited {
            Some(awaited) => awaited.recorded(location, mask, count),
            None => count,
        };
        if count == 0 {
            return;
        }
        self.clock = self.clock.wrapping_add(1);
        if let Some(span) = self.span {
            span.tick(self.clock);
        }
        self.record_run(location, mask, count);
        if let Some(shadow) = &mut self.shadow {
            shadow.append_run(mask, location, count, self.clock);
        }
    }

    pub(crate) fn value(&mut self, site: u16, lane: usize, mask: u32, value: u64) {
        if let Some(values) = &mut self.values {
            values.value(site, (lane as u32, mask), value, &mut self.clock);
        }
    }

    pub(crate) fn leave_values(&mut self, mask: u32) {
        if let Some(values) = self.values.as_mut().filter(|_| mask != 0) {
            values.leave(mask, &mut self.clock);
        }
    }

    /// Returns the number of the last event, or the block's time at the last barrier if that is later.
    pub(crate) fn clock(&self) -> u32 {
        self.clock
    }

    pub(crate) fn wait_until(&mut self, clock: u32) {
        self.clock = self.clock.max(clock);
    }

    fn record_run(&mut self, location: u16, mask: u32, count: u32) {
        if bits(mask).all(|lane| self.records[lane].takes(location, mask, count)) {
            for lane in bits(mask) {
                self.records[lane].key += count;
            }
            return;
        }
        for lane in bits(mask) {
            self.end_run(lane, mask);
        }
        if count > MAX_KEY_COUNT {
            // No record has a part of the run, so it is complete.
            if let Some(trace) = &mut self.trace {
                trace.append_run(mask, location, count, self.clock);
            }
            return;
        }
        for lane in bits(mask) {
            let key = u32::from(location) << LOCATION_SHIFT | count;
            self.records[lane] = Record { mask, key, time: self.clock };
        }
        let record = self.records[mask.trailing_zeros() as usize];
        if let Some(trace) = &mut self.trace {
            trace.write_open(record.entry());
        }
    }

    /// Ends the lane's run, which the lanes of `group` leave together. Appends it to the lane's log if the
    /// lane is the leader or, in logs with copies, the lowest of the leaving lanes.
    fn end_run(&mut self, lane: usize, group: u32) {
        let record = std::mem::take(&mut self.records[lane]);
        let mask = record.mask;
        let Some(trace) = self.trace.as_mut().filter(|_| mask != 0) else { return };
        let leaving = if trace.has_copies() { mask & group } else { mask };
        if leaving.trailing_zeros() == lane as u32 {
            trace.append(lane as u32, record.entry(), false);
        }
    }

    pub(crate) fn leave(&mut self, lane: usize) {
        debug_assert!(lane < WARP_LANES as usize);
        // Must precede the point where the host can see that the lane has left.
        if let Some(span) = self.span {
            span.leave(self.clock);
        }
        // The lane has no later runs, so other lanes need no copy.
        self.end_run(lane, u32::MAX);
        for track in [&mut self.trace, &mut self.shadow].into_iter().flatten() {
            track.close(lane as u32);
        }
    }
}
