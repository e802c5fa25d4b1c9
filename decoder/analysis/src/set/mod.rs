//! Figures of several traces: their sums, and the differences between files.
//!
//! A limited number of files is analysed at a time, and only sums and a few numbers of each file are kept, so
//! memory does not grow with the number of events.

mod merge;
mod outlier;
mod part;
mod spread;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;
use warptrace_decoder::TraceFile;

pub use self::outlier::{OutlierFile, OutlierRow};
pub use self::part::{FileHead, FilePart};
use self::spread::Numbers;
pub use self::spread::{Figure, Spread};
pub use self::table::SetTable;
use crate::counts::Counts;
use crate::error::AnalysisError;
use crate::figures::{Analysis, LineFigures, Losses, Point, Totals, WarpFigures};
use crate::selection::Selection;

/// Subject of sums and comparisons over files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetRow {
    /// A kernel, by name.
    Kernel(String),
    /// A line, by file and number, and by location if it has no number.
    Line(String, u32, u16),
    /// A location, by common id.
    Location(u16),
}

impl SetRow {
    /// Returns the row of a line.
    pub fn of_line(line: &LineFigures) -> Self {
        Self::Line(line.file.clone(), line.line, merge::line_id(line))
    }
}

/// Figures of one file of a set.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FileFigures {
    /// Name of the file.
    pub file: String,
    /// Rank; `None` if the file does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// True if all events of the selection are present.
    pub whole: bool,
    /// Sentence about the state of the whole file.
    pub state: String,
    /// Missing data.
    pub losses: Losses,
    /// Launches analysed.
    pub launches: u64,
    /// Sums of counts and time.
    #[serde(flatten)]
    pub totals: Totals,
    /// Run time of launches by the device's timer, summed; `None` unless it is known for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<u64>,
    /// Reason why the file was left out: it does not have the selection. `None` if it was analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl FileFigures {
    /// Returns the name of the file, with its rank if known.
    pub fn label(&self) -> String {
        match self.rank {
            Some(rank) => format!("{} (rank {rank})", self.file),
            None => self.file.clone(),
        }
    }
}

/// Figures of several traces.
#[derive(Debug)]
pub struct SetAnalysis {
    table: SetTable,
    sum: Option<Analysis>,
    files: Vec<FileFigures>,
    rows: BTreeMap<SetRow, Numbers>,
    /// Files with the row in their tables.
    having: BTreeMap<SetRow, Vec<u32>>,
    /// Warps with the indices of their files; `None` if they are not kept.
    warps: Option<Vec<(u32, WarpFigures)>>,
    left_out: Option<AnalysisError>,
}

impl SetAnalysis {
    /// Creates an empty analysis with the locations of all files.
    pub const fn new(table: SetTable) -> Self {
        Self {
            table,
            sum: None,
            files: Vec::new(),
            rows: BTreeMap::new(),
            having: BTreeMap::new(),
            warps: None,
            left_out: None,
        }
    }

    /// Keeps the figures of each warp, 136 bytes each.
    #[must_use]
    pub fn with_warps(mut self) -> Self {
        self.warps = Some(Vec::new());
        self
    }

    /// Analyses files and adds their figures in order. Analyses as many files at a time as rayon's current
    /// pool has threads; each takes as much memory as a call of [`analyse`](crate::analyse). Calls `open`
    /// with the index of each file in `names`, and `done` after each file. The selection's focus is a common
    /// id. A file that does not have the selection is [left out](FileFigures::left_out). Fails with the index
    /// and the error of the first file that could not be opened or [analysed](crate::analyse).
    pub fn add_all<E: From<AnalysisError> + Send>(
        &mut self,
        names: &[String],
        selection: &Selection,
        open: impl Fn(usize) -> Result<TraceFile, E> + Sync,
        mut done: impl FnMut(),
    ) -> Result<(), (usize, E)> {
        let at_a_time = rayon::current_num_threads();
        let numbers: Vec<usize> = (0..names.len()).collect();
        for numbers in numbers.chunks(at_a_time) {
            let part = |&number: &usize| Ok(self.part(&names[number], &open(number)?, selection)?);
            let parts: Vec<Result<FilePart, E>> = numbers.par_iter().map(part).collect();
            for (&number, part) in numbers.iter().zip(parts) {
                self.add(part.map_err(|error| (number, error))?);
                done();
            }
        }
        Ok(())
    }

    /// Analyses a file `name`, to be [added](Self::add), as [`FilePart::new`]. The focus is a common id.
    pub fn part(
        &self,
        name: &str,
        trace: &TraceFile,
        selection: &Selection,
    ) -> Result<FilePart, AnalysisError> {
        // In a file without the location, the focus is the start, which no warp visits.
        let of_file = |focus: u16| {
            let renamed = self.table.renamed(trace.metadata());
            let mut ids = trace.metadata().locations.iter().map(|info| info.id);
            ids.find(|id| renamed[usize::from(*id)] == focus).unwrap_or(Point::BEGIN)
        };
        let selection = Selection { focus: selection.focus.map(of_file), ..selection.clone() };
        FilePart::new(name, trace, &selection, self.table.lacks_weights())
    }

    /// Adds the figures of a file.
    pub fn add(&mut self, part: FilePart) {
        let FilePart { head, launches, found } = part;
        let FileHead { name, rank, state, is_whole, metadata, .. } = head;
        let renamed = self.table.renamed(&metadata);
        let mut figures = FileFigures {
            file: name,
            rank,
            whole: is_whole,
            state,
            losses: Losses::default(),
            launches: 0,
            totals: Totals { counts: Counts::default(), time: None },
            nanoseconds: None,
            left_out: None,
        };
        let file = self.files.len() as u32;
        match found {
            Ok(mut found) => {
                found.rename(&renamed);
                // The borsh encoding of figures does not include it.
                found.losses.assumed = metadata.assumption();
                figures.whole = found.losses.is_whole();
                figures.losses = found.losses.clone();
                figures.launches = found.launches;
                figures.totals = found.totals();
                // The sum is not useful if only some launches are timed.
                let is_timed = found.losses.unplaced_warps == Some(0);
                let timed =
                    launches.as_ref().filter(|known| is_timed && known.len() as u64 == found.launches);
                figures.nanoseconds =
                    timed.map(|known| known.iter().fold(0_u64, |sum, (_, time)| sum.saturating_add(*time)));
                let kernels = metadata.kernels.iter().map(|kernel| SetRow::Kernel(kernel.name.clone()));
                let lines = metadata.locations.iter().flat_map(|info| {
                    let id = renamed[usize::from(info.id)];
                    let line =
                        SetRow::Line(info.file.clone(), info.line, if info.line == 0 { id } else { 0 });
                    [SetRow::Location(id), line]
                });
                let has: BTreeSet<SetRow> = kernels.chain(lines).collect();
                for row in has {
                    self.having.entry(row).or_default().push(file);
                }
                self.take(file, *found, launches.unwrap_or_default());
            }
            Err(error) => {
                figures.left_out = Some(error.to_string());
                self.left_out.get_or_insert(error);
            }
        }
        self.files.push(figures);
    }

    fn take(&mut self, file: u32, mut found: Analysis, launches: Vec<(String, u64)>) {
        let mut add =
            |row: SetRow, figure, number| self.rows.entry(row).or_default().add(file, figure, number);
        for (kernel, nanoseconds) in launches {
            add(SetRow::Kernel(kernel), Figure::Nanoseconds, nanoseconds);
        }
        for kernel in &found.kernels {
            let row = || SetRow::Kernel(kernel.kernel.clone());
            add(row(), Figure::Launches, kernel.launches);
            add(row(), Figure::Visits, kernel.counts.visits);
            add(row(), Figure::Lanes, kernel.counts.lanes);
            add(row(), Figure::Idle, kernel.counts.idle);
            if let Some(time) = kernel.time {
                add(row(), Figure::WarpCycles, time.warp_cycles);
            }
        }
        for line in &found.lines {
            let row = || SetRow::of_line(line);
            add(row(), Figure::Visits, line.counts.visits);
            add(row(), Figure::Lanes, line.counts.lanes);
            add(row(), Figure::Idle, line.counts.idle);
            add(row(), Figure::Caused, line.caused);
            if let Some(time) = line.time {
                add(row(), Figure::WarpCycles, time.warp_cycles);
            }
        }
        for at in &found.locations {
            let row = || SetRow::Location(at.point.location);
            add(row(), Figure::Visits, at.counts.visits);
            add(row(), Figure::Idle, at.counts.idle);
            add(row(), Figure::Caused, at.caused);
            if at.trips.max() > 1 {
                add(row(), Figure::Trips, at.trips.sum());
            }
            if let Some(time) = at.time {
                add(row(), Figure::WarpCycles, time.warp_cycles);
            }
        }
        let warps = std::mem::take(&mut found.warps);
        if let Some(kept) = &mut self.warps {
            kept.extend(warps.iter().map(|warp| (file, warp)));
        }
        match &mut self.sum {
            Some(sum) => sum.merge(found),
            None => self.sum = Some(found),
        }
    }

    /// Returns the sums, without single warps and launches. Fails if no file was added or has the selection.
    pub fn sum(&mut self) -> Result<Analysis, AnalysisError> {
        match (self.sum.take(), self.left_out.take()) {
            (Some(sum), _) => Ok(sum),
            (None, Some(error)) if self.files.len() == 1 => Err(error),
            (None, Some(error)) => {
                let (count, first) = (self.files.len(), &self.files[0].file);
                Err(AnalysisError::NotThere(format!(
                    "none of {count} traces has what is asked for; {first}: {error}"
                )))
            }
            (None, None) => Err(AnalysisError::NoFiles),
        }
    }

    /// Returns the files, in the order in which they were added.
    pub fn files(&self) -> &[FileFigures] {
        &self.files
    }

    /// Returns the [kept](Self::with_warps) warps with the indices of their files, by file, launch and index.
    pub fn warps(&self) -> &[(u32, WarpFigures)] {
        self.warps.as_deref().unwrap_or_default()
    }

    /// Returns the common locations.
    pub const fn table(&self) -> &SetTable {
        &self.table
    }

    /// Counts the locations that only some files have in their tables.
    pub fn separate_locations(&self) -> u64 {
        let all = self.looked_at();
        let is_apart =
            |(row, files): &(&SetRow, &Vec<u32>)| matches!(row, SetRow::Location(_)) && files.len() < all;
        self.having.iter().filter(is_apart).count() as u64
    }

    /// Counts the files that were not left out.
    pub fn looked_at(&self) -> usize {
        self.files.iter().filter(|file| file.left_out.is_none()).count()
    }

    /// Counts the files with visits of a row.
    pub fn files_with(&self, row: &SetRow) -> u64 {
        let visited = |numbers: &Numbers| numbers.by_file(Figure::Visits, self.having(row));
        let visited = self.rows.get(row).map(visited).unwrap_or_default();
        visited.iter().filter(|(_, visits)| *visits > 0).count() as u64
    }

    fn having(&self, row: &SetRow) -> &[u32] {
        self.having.get(row).map_or(&[], Vec::as_slice)
    }

    /// Compares the files' figures of a row. Includes only figures that all files have.
    pub fn spreads(&self, row: &SetRow) -> BTreeMap<Figure, Spread> {
        let mut spreads =
            self.rows.get(row).map(|numbers| numbers.spreads(self.having(row))).unwrap_or_default();
        spreads.retain(|figure, _| self.has(*figure));
        spreads
    }
}
