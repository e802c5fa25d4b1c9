//! Figures of several traces: their sums, and how files differ.
//!
//! Files are analysed one after the other, and only sums and a few numbers of each stay, so memory does not grow with
//! their events.

mod merge;
mod odd;
mod spread;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;
use warptrace_decoder::TraceFile;

pub use self::odd::{OddFile, OddRow};
use self::spread::Numbers;
pub use self::spread::{Figure, Spread};
pub use self::table::SetTable;
use crate::analyse::analyse_renamed;
use crate::error::AnalysisError;
use crate::figures::{Analysis, LineFigures, Losses, Totals};
use crate::points::Points;
use crate::selection::Selection;

/// What is summed over files and compared between them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// A kernel, by its name.
    Kernel(String),
    /// A line, by its file, its number, and its location if it has none.
    Line(String, u32, u16),
    /// A location, by its common number.
    Location(u16),
}

impl Row {
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
    /// Time of launches, by the device's timer, summed over them; `None` if it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<u64>,
    /// Why nothing of the file was looked at: it does not have what was selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// The figures of several traces.
#[derive(Debug)]
pub struct SetAnalysis {
    table: SetTable,
    sum: Option<Analysis>,
    files: Vec<FileFigures>,
    rows: BTreeMap<Row, Numbers>,
    /// Of each kernel and line the files that have it in their tables.
    having: BTreeMap<Row, Vec<u32>>,
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
            left_out: None,
        }
    }

    /// Analyses a file called `name`, and adds its figures. A file that does not have what is selected is
    /// [left out](FileFigures::left_out). Memory and time are those of [`analyse`](crate::analyse).
    ///
    /// # Errors
    /// As [`analyse`](crate::analyse), and if all files together have too many locations.
    pub fn add(&mut self, name: &str, trace: &TraceFile, selection: &Selection) -> Result<(), AnalysisError> {
        let renamed = self.table.renamed(trace)?;
        let points = Points::new(trace);
        let points = if self.table.lacks_weights() { points.without_weights() } else { points };
        let state = trace.state().sentence.clone();
        let found = match analyse_renamed(points, trace, selection, None) {
            Ok(found) => found,
            Err(error) if error.is_of_selection() => {
                self.files.push(FileFigures {
                    file: name.to_owned(),
                    whole: trace.state().is_whole,
                    state,
                    losses: Losses::default(),
                    launches: 0,
                    totals: Totals { counts: crate::Counts::default(), time: None },
                    nanoseconds: None,
                    left_out: Some(error.to_string()),
                });
                self.left_out.get_or_insert(error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let file = self.files.len() as u32;
        self.table.note(file, trace, &renamed);
        self.take(file, trace, name, state, found, &renamed);
        Ok(())
    }

    fn take(
        &mut self,
        file: u32,
        trace: &TraceFile,
        name: &str,
        state: String,
        mut found: Analysis,
        renamed: &[u16],
    ) {
        let schedule = found.schedule.take();
        let nanoseconds = schedule.as_ref().map(|schedule| {
            schedule.launches.iter().fold(0_u64, |sum, launch| sum.saturating_add(launch.nanoseconds))
        });
        self.files.push(FileFigures {
            file: name.to_owned(),
            whole: found.losses.is_whole(),
            state,
            losses: found.losses.clone(),
            launches: found.launches,
            totals: found.totals(),
            nanoseconds,
            left_out: None,
        });
        found.rename(renamed);
        for kernel in &trace.metadata().kernels {
            self.have(Row::Kernel(kernel.name.clone()), file);
        }
        for info in &trace.metadata().locations {
            let id = if info.line == 0 { renamed[usize::from(info.id)] } else { 0 };
            self.have(Row::Line(info.file.clone(), info.line, id), file);
        }
        let mut add = |row: Row, figure, number| self.rows.entry(row).or_default().add(file, figure, number);
        for launch in schedule.iter().flat_map(|schedule| &schedule.launches) {
            add(Row::Kernel(launch.kernel.clone()), Figure::Nanoseconds, launch.nanoseconds);
        }
        for kernel in &found.kernels {
            let row = || Row::Kernel(kernel.kernel.clone());
            add(row(), Figure::Launches, kernel.launches);
            add(row(), Figure::Visits, kernel.counts.visits);
            add(row(), Figure::Lanes, kernel.counts.lanes);
            add(row(), Figure::Idle, kernel.counts.idle);
            if let Some(time) = kernel.time {
                add(row(), Figure::WarpCycles, time.warp_cycles);
            }
        }
        for line in &found.lines {
            let row = || Row::of_line(line);
            add(row(), Figure::Visits, line.counts.visits);
            add(row(), Figure::Lanes, line.counts.lanes);
            add(row(), Figure::Idle, line.counts.idle);
            add(row(), Figure::Caused, line.caused);
            if let Some(time) = line.time {
                add(row(), Figure::WarpCycles, time.warp_cycles);
            }
        }
        for at in &found.locations {
            let row = || Row::Location(at.point.location);
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
        match &mut self.sum {
            Some(sum) => sum.merge(found),
            None => self.sum = Some(found),
        }
    }

    fn have(&mut self, row: Row, file: u32) {
        let files = self.having.entry(row).or_default();
        if files.last() != Some(&file) {
            files.push(file);
        }
    }

    /// Returns the sums; there is nothing of single warps and launches in them.
    ///
    /// # Errors
    /// No file has what was selected: why the first has not.
    pub fn sum(&mut self) -> Result<Analysis, AnalysisError> {
        match (self.sum.take(), self.left_out.take()) {
            (Some(sum), _) => Ok(sum),
            (None, Some(error)) => Err(error),
            (None, None) => Err(AnalysisError::NoFiles),
        }
    }

    /// The files, in the order in which they were added.
    pub fn files(&self) -> &[FileFigures] {
        &self.files
    }

    /// The common locations.
    pub const fn table(&self) -> &SetTable {
        &self.table
    }

    /// Returns how many locations some of the files have in their tables, but not all.
    pub fn locations_apart(&self) -> u64 {
        self.table.apart(self.looked_at())
    }

    /// Returns how many files were looked at.
    pub fn looked_at(&self) -> usize {
        self.files.iter().filter(|file| file.left_out.is_none()).count()
    }

    /// Returns in how many files something was visited or launched.
    pub fn files_with(&self, row: &Row) -> u64 {
        let visited = |numbers: &Numbers| numbers.of(Figure::Visits, self.having(row));
        let visited = self.rows.get(row).map(visited).unwrap_or_default();
        visited.iter().filter(|(_, visits)| *visits > 0).count() as u64
    }

    /// The files that have it in their tables.
    fn having(&self, row: &Row) -> &[u32] {
        match row {
            Row::Location(id) => self.table.files(*id),
            row => self.having.get(row).map_or(&[], Vec::as_slice),
        }
    }

    /// Compares the files' figures of a row.
    pub fn spreads(&self, row: &Row) -> BTreeMap<Figure, Spread> {
        self.rows.get(row).map(|numbers| numbers.spreads(self.having(row))).unwrap_or_default()
    }
}
