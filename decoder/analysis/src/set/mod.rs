//! Figures of several traces: their sums, and how files differ.
//!
//! Files are analysed some at a time, and only sums and a few numbers of each stay, so memory does not grow with their
//! events.

mod merge;
mod odd;
mod part;
mod spread;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;
use warptrace_decoder::TraceFile;
use warptrace_format::Counting;

pub use self::odd::{OddFile, OddRow};
pub use self::part::{FileHead, FilePart};
use self::spread::Numbers;
pub use self::spread::{Figure, Spread};
pub use self::table::SetTable;
use crate::counts::Counts;
use crate::error::AnalysisError;
use crate::figures::{Analysis, LineFigures, Losses, Point, Totals, WarpFigures};
use crate::selection::Selection;

/// What is summed over files and compared between them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetRow {
    /// A kernel, by its name.
    Kernel(String),
    /// A line, by its file, its number, and its location if it has none.
    Line(String, u32, u16),
    /// A location, by its common number.
    Location(u16),
}

impl SetRow {
    /// Returns the row of a line.
    pub fn of_line(line: &LineFigures) -> Self {
        Self::Line(line.file.clone(), line.line, merge::line_id(line))
    }
}

/// The figures of one of several files.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FileFigures {
    /// The file, as it was named.
    pub file: String,
    /// Its rank, if it says which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Whether all events of what was looked at are there.
    pub whole: bool,
    /// The state of the whole file in one sentence.
    pub state: String,
    /// What is missing.
    pub losses: Losses,
    /// Launches looked at.
    pub launches: u64,
    /// All events.
    #[serde(flatten)]
    pub totals: Totals,
    /// Time of launches, by the device's timer, summed over them; `None` if it is not known of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<u64>,
    /// Why nothing of the file was looked at: it does not have what was selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl FileFigures {
    /// Returns the file's name, with its rank if it says which.
    pub fn label(&self) -> String {
        match self.rank {
            Some(rank) => format!("{} (rank {rank})", self.file),
            None => self.file.clone(),
        }
    }
}

/// The figures of several traces.
#[derive(Debug)]
pub struct SetAnalysis {
    table: SetTable,
    sum: Option<Analysis>,
    files: Vec<FileFigures>,
    rows: BTreeMap<SetRow, Numbers>,
    /// Of each row the files that have it in their tables.
    having: BTreeMap<SetRow, Vec<u32>>,
    /// Warps with the places of their files; `None` if they are not kept.
    warps: Option<Vec<(u32, WarpFigures)>>,
    left_out: Option<AnalysisError>,
}

impl SetAnalysis {
    /// Begins with the locations of all files.
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

    /// Analyses files, as many at a time as rayon's current pool has threads, and adds their figures in order. `open`
    /// opens the file with a number, `names` has what each is called, and `done` is told of each. The selection's focus
    /// is a common number. A file that does not have what is selected is [left out](FileFigures::left_out). Memory is
    /// that of [`analyse`](crate::analyse) for each thread.
    ///
    /// # Errors
    /// The number of the first file that cannot be opened, or be analysed as [`analyse`](crate::analyse) does, and why.
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

    /// Analyses a file called `name`, to be [added](Self::add); the selection's focus is a common number.
    ///
    /// # Errors
    /// As [`FilePart::new`].
    pub fn part(
        &self,
        name: &str,
        trace: &TraceFile,
        selection: &Selection,
    ) -> Result<FilePart, AnalysisError> {
        // No warp comes to 0, the begin, where the file does not have the location.
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
                // Bytes of figures do not have it.
                found.losses.assumed = metadata.counting().and_then(Counting::assumption);
                figures.whole = found.losses.is_whole();
                figures.losses = found.losses.clone();
                figures.launches = found.launches;
                figures.totals = found.totals();
                // Of launches of which only some are timed, the sum would say nothing.
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

    /// Returns the sums; there is nothing of single warps and launches in them.
    ///
    /// # Errors
    /// No file has what was selected: why the first has not.
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

    /// The files, in the order in which they were added.
    pub fn files(&self) -> &[FileFigures] {
        &self.files
    }

    /// The warps that were [kept](Self::with_warps), each with the place of its file; by file, launch and number.
    pub fn warps(&self) -> &[(u32, WarpFigures)] {
        self.warps.as_deref().unwrap_or_default()
    }

    /// The common locations.
    pub const fn table(&self) -> &SetTable {
        &self.table
    }

    /// Returns how many locations some of the files have in their tables, but not all.
    pub fn locations_apart(&self) -> u64 {
        let all = self.looked_at();
        let is_apart =
            |(row, files): &(&SetRow, &Vec<u32>)| matches!(row, SetRow::Location(_)) && files.len() < all;
        self.having.iter().filter(is_apart).count() as u64
    }

    /// Returns how many files were looked at.
    pub fn looked_at(&self) -> usize {
        self.files.iter().filter(|file| file.left_out.is_none()).count()
    }

    /// Returns in how many files something was visited or launched.
    pub fn files_with(&self, row: &SetRow) -> u64 {
        let visited = |numbers: &Numbers| numbers.by_file(Figure::Visits, self.having(row));
        let visited = self.rows.get(row).map(visited).unwrap_or_default();
        visited.iter().filter(|(_, visits)| *visits > 0).count() as u64
    }

    /// The files that have it in their tables.
    fn having(&self, row: &SetRow) -> &[u32] {
        self.having.get(row).map_or(&[], Vec::as_slice)
    }

    /// Compares the files' figures of a row, those that all files know.
    pub fn spreads(&self, row: &SetRow) -> BTreeMap<Figure, Spread> {
        let mut spreads =
            self.rows.get(row).map(|numbers| numbers.spreads(self.having(row))).unwrap_or_default();
        spreads.retain(|figure, _| self.has(*figure));
        spreads
    }
}
