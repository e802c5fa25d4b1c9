//! Tracks of warps with a slice for each run, nested in slices of functions and loops.
//!
//! If the trace has spans (begin and end of each warp on the global timer), all warps share one time axis, and
//! each track belongs to a multiprocessor. Otherwise each warp has its own axis, which starts at 0, so
//! positions in two tracks are unrelated. If runs have times, this axis is the time since the warp's first
//! run, with one microsecond for each cycle. Without times, event n of a warp lasts from microsecond n to
//! n + 1.
//!
//! A run with a time lasts until the warp's next run begins, although diverged lanes may continue longer.

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

/// Counts of a written timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Number of tracks of warps.
    pub warps: u64,
    /// Number of slices of runs; of warps, if warps have times and runs do not. Slices of functions and loops
    /// are not counted.
    pub slices: u64,
    /// Number of selected, chosen warps that are missing or incomplete because the trace lacks their times or
    /// the times of their runs.
    pub unplaced: u64,
    /// Description of the axis.
    pub axis: &'static str,
    /// Number of bytes.
    pub bytes: u64,
}

struct Ran<'a> {
    kernel: &'a str,
    launch: u32,
    lasts: Range<u64>,
    cycles: Option<u64>,
    /// The multiprocessor at the end, if it changed.
    moved_to: Option<u32>,
    /// For the first block of a launch that began after all earlier ones had ended: the order of the launch.
    follows: Option<Follows>,
    /// For the last block of a launch: the launches that followed.
    followed_by: Vec<Follows>,
}

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

/// The functions and loops around the current run of a warp.
#[derive(Default)]
struct Open {
    slices: Vec<String>,
    end: u64,
}

impl Open {
    /// Ends the slices that `around` lacks, and begins the new ones.
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

/// The waits of a warp, if the trace has wait points and times of runs.
struct Waiting(Option<OpenWaits>);

impl Waiting {
    fn new(source: &ExportSource<'_>) -> Self {
        Self(source.trace().has_times().then(|| OpenWaits::of_trace(source.trace())).flatten())
    }

    fn begin(&mut self) {
        if let Some(open) = &mut self.0 {
            open.end(&mut |_| {});
        }
    }

    /// Takes the warp's next run, which begins at `at` on the axis, and draws the waits that it ends.
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

const UNENDED: &str = "[end not known]";

fn mark(missing: &LossyWarps) -> (&'static str, &'static str) {
    let name = if missing.events.is_some() { "[lost]" } else { "[unfinished]" };
    (name, missing.reason.name())
}

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
