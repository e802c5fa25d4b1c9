//! Computes figures of `.wtrc` traces from runs and cycles, without expanding them to events.
//!
//! ```text
//! TraceFile ── Selection ── analyse ──┬─ locations, lines   visits, lanes, idle slots, splits, trips
//!                                     ├─ edges              from event to event, lane by lane
//!                                     ├─ warps, paths       work, groups of equal paths
//!                                     ├─ roll_up            sums by kernel, function and loop
//!                                     └─ losses             missing events and warps
//! TraceFile ── Selection ── accesses   sectors, passes and strides of sites and lines; buffers
//! TraceFile ── Selection ── values     ends, means and histograms of named values, the first NaN
//! TraceFile ── Summary          contents and losses, without reading events
//! TraceFiles of ranks ── Timeline   launches of all ranks on one time axis, and the late rank
//! two TraceFiles ── compare           changes, and where a warp first takes another path
//! several TraceFiles ── SetAnalysis   sums, and the file that differs most
//! ```
//!
//! `docs/reference/answers.md` defines each figure.
//!
//! ```no_run
//! use warptrace_analysis::{Selection, analyse};
//! let trace = warptrace_decoder::TraceFile::open("run.wtrc")?;
//! let analysis = analyse(&trace, &Selection::default())?;
//! for line in &analysis.lines {
//!     println!("{}:{}: {} idle slots", line.file, line.line, line.counts.idle);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accesses;
mod analyse;
mod blocks;
mod cause_lines;
mod causes;
mod compare;
mod counts;
mod decisions;
mod distribution;
mod ends;
mod error;
mod figures;
mod first_difference;
pub mod fuzzing;
mod hangs;
mod host;
mod labels;
mod launch_sites;
mod matching;
mod nesting;
mod order;
mod outlier;
mod pairs;
mod path;
mod points;
mod ranks;
mod recordings;
mod roles;
mod roll_up;
mod runs;
mod schedule;
mod selection;
mod set;
mod source;
mod summary;
mod tally;
#[cfg(test)]
mod testing;
mod times;
mod transitions;
mod trips;
mod values;
mod visits;
mod waits;
mod warps;
mod watch;
pub mod words;

pub use accesses::buffers::{BufferFigures, HEAT_PARTS, OutsideFigures};
pub use accesses::changes::{AccessChange, access_changes};
pub use accesses::requests::{SECTOR_BYTES, passes, sectors};
pub use accesses::rows::{AccessLacks, AccessRow, AccessTable, access_losses, access_rows};
pub use accesses::unwritten::{TouchedBy, UnwrittenFigures, UnwrittenReads};
pub use accesses::{AccessCounts, AccessLine, Accesses, SiteFigures, accesses, accesses_with_unwritten};
pub use analyse::{analyse, analyse_watched};
pub use blocks::{BlockRan, LaunchBlocks, blocks, hottest_of_blocks};
pub use cause_lines::CauseLine;
pub use compare::{CauseChange, Comparison, FirstChange, Greatest, LocationChange, Measure, compare};
pub use counts::{Counts, Weight, share};
pub use distribution::Distribution;
pub use ends::WarpEnd;
pub use error::AnalysisError;
pub use figures::{
    Analysis, Cause, CausePlace, Edge, KernelFigures, LANE_COUNTS, LineFigures, LocationFigures, Losses,
    PathGroup, Point, Reconvergence, Totals, WarpFigures, WarpName, edges_from, lanes_from,
};
pub use hangs::{Doing, Hang, HangGroup, HangPlace, hang};
pub use host::{HostRan, HostReading, HostSchedule, HostSummary};
pub use labels::{LabelFigures, by_label};
pub use launch_sites::{LaunchSiteFigures, by_launch_site};
pub use order::OrderItems;
pub use outlier::{MadeBy, Outlier, OutlierTrips};
pub use points::{branches, weights};
pub use ranks::{Alignment, LateRank, RankClock, RankLaunch, RankOnAxis, RankSlices, RankTimes, Timeline};
pub use recordings::Difference;
pub use roles::{KernelRoles, Role};
pub use roll_up::{Part, PartKind, roll_up};
pub use runs::{WarpRun, WarpRuns};
pub use schedule::{LaunchSchedule, Schedule, SpanSummary, WarpRan};
pub use selection::{Selection, kernel_name};
pub use set::{
    Figure, FileFigures, FileHead, FilePart, OutlierFile, OutlierRow, SetAnalysis, SetRow, SetTable, Spread,
};
pub use source::{NoSource, SourceCode, source_code};
pub use summary::{AccessSummary, Chosen, LaunchSummary, LossRow, LossSum, NotTraced, Summary};
pub use times::{Time, WarpTime};
pub use values::changes::{ValueChange, value_changes};
pub use values::number::ValueReading;
pub use values::{Bucket, Odd, ValueFigures, Values, values};
pub use waits::{Arrivals, OpenWaits, Wait, WaitFigures};
pub use warps::WarpTable;
pub use watch::Watch;
