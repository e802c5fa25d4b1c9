//! Tracks of warps with a slice for each run, in those of the functions and loops around it, for tools that
//! draw time.
//!
//! Of a trace that says where and when warps ran the axis is time, the same for all, and tracks are those of
//! the multiprocessors. Of one with times of runs alone it is each warp's own time, from its first run on: a
//! microsecond is a cycle. A run lasts until the warp's next one begins, which lanes that are apart may do
//! while it goes on. Of other traces the axis is the order of events: the n-th event of a warp lasts from
//! microsecond n to n + 1. The latter two begin in each warp anew: what stands above each other in two tracks
//! need not have happened at once.

mod load;
mod order;
mod perfetto;
mod placed;

use std::io::Write;
use std::ops::Range;

use warptrace_analysis::OpenWaits;
use warptrace_decoder::{EventRun, LossyWarps};
use warptrace_format::file::LaunchInfo;

use self::order::Follows;
use self::perfetto::Perfetto;
pub use self::perfetto::{perfetto, perfetto_ranks};
use crate::axis::{Axis, Scale};
use crate::error::ExportError;
use crate::nest::Nest;
use crate::source::{ExportSource, Step};

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Tracks of warps.
    pub warps: u64,
    /// Slices of runs, or of warps where events have no times; those around them are more.
    pub slices: u64,
    /// Selected warps that were chosen to be recorded and are not there, or not whole, because the trace does
    /// not say when they or their runs began and ended.
    pub unplaced: u64,
    /// What the axis is.
    pub axis: &'static str,
    /// Bytes.
    pub bytes: u64,
}

/// A block or a warp that ran.
struct Ran<'a> {
    /// Name of its kernel.
    kernel: &'a str,
    /// Number of its launch.
    launch: u32,
    /// From where to where on the axis.
    lasts: Range<u64>,
    /// Cycles of its multiprocessor.
    cycles: Option<u64>,
    /// The multiprocessor on which it ended, if that is another one.
    moved_to: Option<u32>,
    /// Of the first block of a launch that began after all before had ended: the launch's place in the order.
    follows: Option<Follows>,
    /// Of the last block of a launch: those that followed it.
    followed_by: Vec<Follows>,
}

/// Gives all of a source to `tracks`; tells `sliced` of each slice.
fn draw<W: Write>(
    source: &ExportSource<'_>,
    scale: Scale,
    tracks: &mut Perfetto<W>,
    sliced: &mut dyn FnMut(u64),
) -> Result<Written, ExportError> {
    let mut written = Written { axis: scale.brief(), ..Written::default() };
    if let Scale::Nanoseconds { zero, until, has_runs } = scale {
        let mut lanes: Vec<u64> = Vec::new();
        for (info, lasts) in scale.on_host(source) {
            let lane = lanes.iter().position(|end| *end <= lasts.start).unwrap_or(lanes.len());
            lanes.resize(lanes.len().max(lane + 1), 0);
            lanes[lane] = lasts.end;
            tracks.on_host(source, info, lane as u32, lasts)?;
        }
        let load = placed::draw(source, (zero, until), has_runs, tracks, &mut written, sliced)?;
        load.iter().try_for_each(|(sm, load)| tracks.load(*sm, load))?;
        return Ok(written);
    }
    let nest = Nest::new(source, |id| source.label(id))?;
    for info in source.launches() {
        tracks.launch(source, info)?;
        let mut launch = Launch {
            source,
            info,
            nest: &nest,
            tracks: &mut *tracks,
            axis: Axis::new(source.trace()),
            open: Open::default(),
            waits: Waiting::new(source),
            block: None,
            warp: None,
        };
        source.walk(info.number(), &mut |step| launch.step(&step, &mut written, sliced))?;
        launch.close()?;
    }
    Ok(written)
}

/// The tracks of a launch in the making.
struct Launch<'a, W> {
    source: &'a ExportSource<'a>,
    info: &'a LaunchInfo,
    nest: &'a Nest,
    tracks: &'a mut Perfetto<W>,
    axis: Axis,
    open: Open,
    waits: Waiting,
    block: Option<[u32; 3]>,
    warp: Option<u32>,
}

impl<W: Write> Launch<'_, W> {
    fn step(
        &mut self,
        step: &Step,
        written: &mut Written,
        sliced: &mut dyn FnMut(u64),
    ) -> Result<(), ExportError> {
        match step {
            Step::Run(run) => self.run(run, written, sliced),
            Step::Missing { missing, next_event } => {
                self.close()?;
                self.begin(missing.first, written)?;
                let at = self.axis.end(missing.first, *next_event);
                self.tracks.missing(missing, at)
            }
        }
    }

    /// Begins the warp's track, and its block's, if they are not the last ones.
    fn begin(&mut self, warp: u32, written: &mut Written) -> Result<(), ExportError> {
        if self.warp == Some(warp) {
            return Ok(());
        }
        let Some(id) = self.info.stream_id(warp) else { return Ok(()) };
        if self.block.replace(id.block) != Some(id.block) {
            self.tracks.block(id.block, warp / self.info.warps_per_block())?;
        }
        self.warp = Some(warp);
        self.tracks.warp(&id)?;
        self.open.end = 0;
        self.waits.begin();
        written.warps += 1;
        Ok(())
    }

    /// Ends all slices around the last run.
    fn close(&mut self) -> Result<(), ExportError> {
        self.open.go_to(&[], self.open.end, self.tracks)
    }

    fn run(
        &mut self,
        run: &EventRun,
        written: &mut Written,
        sliced: &mut dyn FnMut(u64),
    ) -> Result<(), ExportError> {
        if self.warp != Some(run.warp) {
            self.close()?;
        }
        self.begin(run.warp, written)?;
        let lasts = self.axis.lasts(run);
        self.open.go_to(
            self.nest.around(self.source, self.info, run.event.location),
            lasts.start,
            self.tracks,
        )?;
        self.open.end = lasts.end;
        if run.begin.is_some() {
            self.waits.push(self.source, run, lasts.start, self.tracks)?;
        }
        self.tracks.run(self.source, run, lasts)?;
        written.slices += 1;
        sliced(written.slices);
        Ok(())
    }
}

/// The functions and loops that a warp is in.
#[derive(Default)]
struct Open {
    /// Names, the outermost first.
    slices: Vec<String>,
    /// Where the last run ended.
    end: u64,
}

impl Open {
    /// Ends the slices that `around` does not have, and begins those that it has more.
    fn go_to<W: Write>(
        &mut self,
        around: &[String],
        event: u64,
        tracks: &mut Perfetto<W>,
    ) -> Result<(), ExportError> {
        let same = self.slices.iter().zip(around).take_while(|(open, name)| open == name).count();
        for _ in self.slices.drain(same..) {
            tracks.leave(event)?;
        }
        for name in &around[same..] {
            tracks.enter(name, event)?;
            self.slices.push(name.clone());
        }
        Ok(())
    }
}

/// The waits of a warp, of a trace that has points at them and times of runs.
struct Waiting(Option<OpenWaits>);

impl Waiting {
    fn new(source: &ExportSource<'_>) -> Self {
        Self(source.trace().has_times().then(|| OpenWaits::of_trace(source.trace())).flatten())
    }

    /// Begins a warp.
    fn begin(&mut self) {
        if let Some(open) = &mut self.0 {
            open.end(&mut |_| {});
        }
    }

    /// Takes the warp's next run, which begins there on the axis; draws the waits that it ends.
    fn push<W: Write>(
        &mut self,
        source: &ExportSource<'_>,
        run: &EventRun,
        at: u64,
        tracks: &mut Perfetto<W>,
    ) -> Result<(), ExportError> {
        let Some(open) = &mut self.0 else { return Ok(()) };
        let mut result = Ok(());
        open.push(run.event, at, &mut |wait| {
            if let (Ok(()), Some(end)) = (&result, wait.end) {
                result = tracks.wait(source, &wait, wait.begin..end);
            }
        });
        result
    }
}

/// The name of the mark where a warp began of which it is not known when it ended.
const UNENDED: &str = "[end not known]";

/// Says what a mark means: a name, and the reason.
fn mark(missing: &LossyWarps) -> (&'static str, &'static str) {
    let name = if missing.events.is_some() { "[lost]" } else { "[unfinished]" };
    (name, missing.reason.name())
}

/// Counts the bytes that go through.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
