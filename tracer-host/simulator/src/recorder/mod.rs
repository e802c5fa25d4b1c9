//! Records the events of a warp as traced kernels on a GPU do, into the same log memory.
//!
//! Each lane has a *record* of the run that it is in: mask, key (location and count) and the time at which
//! the run began. An event repeats a run if the records of all its lanes hold that mask and location and
//! their counts have room; then each lane adds to its own. Otherwise each lane ends its run, and the event
//! becomes the run of all its lanes. A run that ends is appended to the log of its *leader*, the lowest lane
//! of its mask, by the leader. So no lane writes what another lane reads, whichever groups of the warp run in
//! between.
//!
//! Logs that are kept have a run from its beginning on (`warptrace_abi::log`, "Kernels that run").
//!
//! The time is a counter of the warp's events, and of the groups whose values were recorded. Where waits are
//! recorded, the warps of a block that go on from a barrier have the time of the last one that came there.

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

/// Number of the raw shadow's track.
const SHADOW: u32 = 1;

/// The run that a lane is in.
#[derive(Clone, Copy, Default)]
struct Record {
    /// Lanes of the run; 0 if the lane is in none.
    mask: u32,
    /// Location in the upper half, count in the lower half.
    key: u32,
    /// When it began.
    time: u32,
}

impl Record {
    /// As it is in a log.
    fn entry(self) -> Entry {
        let Self { mask, key, time } = self;
        Entry { mask, location: (key >> LOCATION_SHIFT) as u16, count: key & MAX_KEY_COUNT, time }
    }

    /// Whether `count` more events at `location` by the lanes of `mask` continue the run.
    fn takes(self, location: u16, mask: u32, count: u32) -> bool {
        let same = self.mask == mask && self.key >> LOCATION_SHIFT == u32::from(location);
        same && (self.key & MAX_KEY_COUNT) + count <= MAX_KEY_COUNT
    }
}

/// The recorder of one warp.
pub(crate) struct WarpRecorder {
    /// Number of the last event; more, where it waited.
    clock: u32,
    records: [Record; LANES],
    /// From where on lanes are recorded; `None`: from their start on.
    awaited: Option<Awaited>,
    /// The logs of the trace; none if the launch is not traced.
    trace: Option<Box<dyn Track>>,
    /// The logs of its raw shadow.
    shadow: Option<Box<dyn Track>>,
    /// What records values.
    values: Option<Box<ValueRecorder>>,
    /// Where it is written where and when the warp runs.
    span: Option<SpanMemory>,
}

impl WarpRecorder {
    /// A recorder that records nothing.
    pub(crate) fn off() -> Self {
        let (trace, shadow, values) = (None, None, None);
        let records = [Record::default(); LANES];
        Self { clock: 0, records, awaited: None, trace, shadow, values, span: None }
    }

    /// A recorder for the warp with this index among those that record ([`LogMemory::warp_index`]), which
    /// begins on multiprocessor `sm`. It records nothing if there is no such warp.
    ///
    /// # Safety
    /// As for [`Launch::traced`](crate::Launch::traced) and [`Launch::streamed`](crate::Launch::streamed),
    /// for as long as the recorder is used. No other recorder is for the same warp.
    pub(crate) unsafe fn new(memory: &LogMemory, recording: Recording, warp: u32, sm: u32) -> Self {
        let mut recorder = Self::off();
        recorder.awaited = recording.after.map(Awaited::new);
        // SAFETY: the caller's promise.
        recorder.trace = unsafe { track::open(memory, 0, warp) };
        if recording.dual {
            // SAFETY: the caller's promise.
            recorder.shadow = unsafe { track::open(memory, SHADOW, warp) };
        }
        if let Some(track) = recording.data_track() {
            // SAFETY: the caller's promise.
            recorder.values = unsafe { ValueRecorder::new(memory, track, warp) }.map(Box::new);
        }
        // SAFETY: the caller's promise.
        recorder.span = unsafe { SpanMemory::new(memory, recording, warp) };
        if let Some(span) = recorder.span {
            span.begin(sm);
        }
        recorder
    }

    /// Records that the lanes of `mask` came to `location` `count` times in a row.
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

    /// Records what a lane of `mask` holds at a site, as
    /// [`Lane::value`](warptrace_device::simt::host::Lane::value) says.
    pub(crate) fn value(&mut self, site: u16, lane: usize, mask: u32, value: u64) {
        if let Some(values) = &mut self.values {
            values.value(site, (lane as u32, mask), value, &mut self.clock);
        }
    }

    /// Ends what lanes that leave the kernel together have recorded of values.
    pub(crate) fn leave_values(&mut self, mask: u32) {
        if let Some(values) = self.values.as_mut().filter(|_| mask != 0) {
            values.leave(mask, &mut self.clock);
        }
    }

    /// Number of the last event, or of the block's last one before a barrier that the warp has passed.
    pub(crate) fn clock(&self) -> u32 {
        self.clock
    }

    /// Lets time pass until then.
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
            // No record counts so far: the run is complete at once.
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

    /// Ends the lane's run, which the lanes of `group` leave together: appends it to the lane's log if the
    /// lane keeps it, or, where there are copies, is the lowest of those that leave it.
    fn end_run(&mut self, lane: usize, group: u32) {
        let record = std::mem::take(&mut self.records[lane]);
        let mask = record.mask;
        let Some(trace) = self.trace.as_mut().filter(|_| mask != 0) else { return };
        let leaving = if trace.has_copies() { mask & group } else { mask };
        if leaving.trailing_zeros() == lane as u32 {
            trace.append(lane as u32, record.entry(), false);
        }
    }

    /// Closes the logs of a lane that leaves the kernel.
    pub(crate) fn leave(&mut self, lane: usize) {
        debug_assert!(lane < WARP_LANES as usize);
        // Before the host may see that the lane has left.
        if let Some(span) = self.span {
            span.leave(self.clock);
        }
        // Nothing of this lane comes later: others need no copy.
        self.end_run(lane, u32::MAX);
        for track in [&mut self.trace, &mut self.shadow].into_iter().flatten() {
            track.close(lane as u32);
        }
    }
}
