//! Tracks of warps with a slice for each run, in those of the functions and loops around it, for tools that
//! draw time.
//!
//! A trace has no times. The axis is the order of events: the n-th event of a warp lasts from microsecond n
//! to n + 1, in each warp anew. What stands above each other in two tracks need not have happened at once.

mod chrome;
mod perfetto;

use std::io::Write;

use warptrace_decoder::Missing;
use warptrace_format::file::{LaunchInfo, StreamId};

pub use self::chrome::chrome;
pub use self::perfetto::perfetto;
use crate::error::ExportError;
use crate::nest::Nest;
use crate::runs::{Run, Step};
use crate::source::Source;

/// What the axis means, in words that stand in each file.
pub(crate) const AXIS: &str = "Event order, not time: a warp's n-th event lasts from microsecond n to n + 1, \
     in each warp anew. Nothing is said about the order between warps.";

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Tracks of warps.
    pub warps: u64,
    /// Slices of runs; those of functions and loops are more.
    pub slices: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Takes the tracks of a timeline, one after the other.
trait Tracks {
    /// Begins a launch.
    fn launch(&mut self, source: &Source<'_>, info: &LaunchInfo) -> Result<(), ExportError>;
    /// Begins a block of the launch.
    fn block(&mut self, block: [u32; 3], linear: u32) -> Result<(), ExportError>;
    /// Begins a warp of the block.
    fn warp(&mut self, warp: u32, id: &StreamId) -> Result<(), ExportError>;
    /// Begins a slice around the warp's next runs: a function or a loop.
    fn enter(&mut self, name: &str, event: u64) -> Result<(), ExportError>;
    /// Ends the slice that was begun last, at the event `from`.
    fn leave(&mut self, name: &str, from: u64, to: u64) -> Result<(), ExportError>;
    /// Takes the warp's next run.
    fn run(&mut self, source: &Source<'_>, run: &Run) -> Result<(), ExportError>;
    /// Takes a mark: events are missing.
    fn missing(&mut self, missing: &Missing, next_event: u64) -> Result<(), ExportError>;
}

/// Gives all of a source to `tracks`; tells `sliced` of each slice.
fn draw(
    source: &Source<'_>,
    tracks: &mut impl Tracks,
    sliced: &mut dyn FnMut(u64),
) -> Result<Written, ExportError> {
    let mut written = Written::default();
    let nest = Nest::new(source, |id| source.label(id))?;
    for info in source.launches() {
        tracks.launch(source, info)?;
        let mut open = Open::default();
        let (mut block, mut warp) = (None, None);
        source.walk(info.number(), &mut |step| {
            let (index, id) = match &step {
                Step::Run(run) => (run.warp, run.id),
                Step::Missing { id, missing, .. } => (missing.warp, *id),
            };
            let is_missing = matches!(step, Step::Missing { .. });
            if warp != Some(index) || is_missing {
                open.go_to(&[], open.end, tracks)?;
            }
            if block != Some(id.block) {
                tracks.block(id.block, index / info.warps_per_block())?;
                block = Some(id.block);
            }
            if warp != Some(index) {
                tracks.warp(index, &id)?;
                warp = Some(index);
                written.warps += 1;
            }
            match step {
                Step::Run(run) => {
                    open.go_to(nest.around(source, info, run.event.location), run.first_event, tracks)?;
                    tracks.run(source, &run)?;
                    open.end = run.first_event.saturating_add(run.count);
                    written.slices += 1;
                    sliced(written.slices);
                    Ok(())
                }
                Step::Missing { missing, next_event, .. } => tracks.missing(&missing, next_event),
            }
        })?;
        open.go_to(&[], open.end, tracks)?;
    }
    Ok(written)
}

/// The functions and loops that a warp is in.
#[derive(Default)]
struct Open {
    /// Names, the outermost first, and with which event of the warp they began.
    slices: Vec<(String, u64)>,
    /// Where the last run ended.
    end: u64,
}

impl Open {
    /// Ends the slices that `around` does not have, and begins those that it has more.
    fn go_to(&mut self, around: &[String], event: u64, tracks: &mut impl Tracks) -> Result<(), ExportError> {
        let same = self.slices.iter().zip(around).take_while(|((open, _), name)| open == *name).count();
        for (name, from) in self.slices.drain(same..).rev() {
            tracks.leave(&name, from, event)?;
        }
        for name in &around[same..] {
            tracks.enter(name, event)?;
            self.slices.push((name.clone(), event));
        }
        Ok(())
    }
}

/// Says what a mark means: a name, and the reason.
fn mark(missing: &Missing) -> (&'static str, &'static str) {
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
