//! Source lines and their trace points.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use warptrace_analysis::{Counts, NoSource, SourceCode, source_code};
use warptrace_decoder::TraceFile;

/// Maximum number of files that are read.
const MAX_FILES: usize = 1_000;
/// Bytes of source in memory after which no further files are read.
const MAX_SOURCE_BYTES: usize = 32 << 20;

/// Location ids by line. A location without a line has a separate key, with its id.
type Points = BTreeMap<(u32, u16), Vec<u16>>;

#[derive(Debug)]
pub(crate) enum ScreenRow {
    /// Name and state of a file.
    File { text: String },
    /// A source line, or a location without source.
    Line(SourceLine),
}

#[derive(Debug)]
pub(crate) struct SourceLine {
    /// Line number; 0 if it is not known.
    pub(crate) number: u32,
    pub(crate) code: String,
    pub(crate) locations: Vec<u16>,
}

#[derive(Debug, Default)]
pub(crate) struct SourceScreen {
    pub(crate) rows: Vec<ScreenRow>,
    /// Indices of the rows with locations.
    pub(crate) points: Vec<usize>,
    by_location: HashMap<u16, usize>,
}

impl SourceScreen {
    /// Reads the files named by the table of locations, in table order.
    pub(crate) fn read(trace: &TraceFile, folders: &[PathBuf]) -> Self {
        let mut files: Vec<(&str, Points)> = Vec::new();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for info in &trace.metadata().locations {
            let number = *numbers.entry(&info.file).or_insert_with(|| {
                files.push((&info.file, BTreeMap::new()));
                files.len() - 1
            });
            // A location without a line is a separate row.
            let key = (info.line, if info.line == 0 { info.id } else { 0 });
            files[number].1.entry(key).or_default().push(info.id);
        }
        let mut source = Self::default();
        let mut bytes = 0;
        for (number, (file, lines)) in files.into_iter().enumerate() {
            let is_read = !file.is_empty() && number < MAX_FILES && bytes < MAX_SOURCE_BYTES;
            let code = if is_read { source_code(trace, file, folders) } else { Err(NoSource::NotFound) };
            bytes += code.as_ref().map_or(0, SourceCode::bytes);
            source.add_file(file, &lines, code.as_ref());
        }
        source
    }

    fn add_file(&mut self, file: &str, lines: &Points, code: Result<&SourceCode, &NoSource>) {
        let last = lines.last_key_value().map_or(0, |((line, _), _)| *line);
        let said = match code {
            _ if file.is_empty() => "locations without a file".to_owned(),
            Err(NoSource::NotFound) => format!("{file} (not found here: --source FOLDER says where)"),
            Err(refused) => format!("{file} ({refused})"),
            Ok(code) if code.is_compiled == Some(false) => {
                format!("{file} (changed since it was recorded: lines may be others)")
            }
            Ok(SourceCode { lines: code, .. }) if (code.len() as u64) < u64::from(last) => {
                format!("{file} (it has {} lines now: not the source that was recorded)", code.len())
            }
            Ok(_) => file.to_owned(),
        };
        self.rows.push(ScreenRow::File { text: said });
        let mut rest = lines.iter().peekable();
        for (number, text) in (1..).zip(code.map_or(&[][..], |code| &code.lines)) {
            while let Some(((_, _), ids)) = rest.next_if(|((line, _), _)| *line < number) {
                self.add_line(0, String::new(), ids.clone());
            }
            let ids =
                rest.next_if(|((line, _), _)| *line == number).map_or_else(Vec::new, |(_, ids)| ids.clone());
            self.add_line(number, text.clone(), ids);
        }
        for ((line, _), ids) in rest {
            self.add_line(*line, String::new(), ids.clone());
        }
    }

    fn add_line(&mut self, number: u32, code: String, locations: Vec<u16>) {
        if !locations.is_empty() {
            self.points.push(self.rows.len());
            self.by_location.extend(locations.iter().map(|&id| (id, self.rows.len())));
        }
        self.rows.push(ScreenRow::Line(SourceLine { number, code, locations }));
    }

    /// Adds locations that the table does not contain.
    pub(crate) fn add_unknown(&mut self, locations: impl Iterator<Item = u16>) {
        let unknown: Vec<u16> = locations.filter(|id| !self.by_location.contains_key(id)).collect();
        if unknown.is_empty() {
            return;
        }
        self.rows.push(ScreenRow::File { text: "locations that the trace's table does not have".to_owned() });
        unknown.into_iter().for_each(|id| self.add_line(0, String::new(), vec![id]));
    }

    pub(crate) fn row_of(&self, location: u16) -> Option<usize> {
        self.by_location.get(&location).copied()
    }

    /// Returns the line at a row, or `None` for a file name.
    pub(crate) fn line(&self, row: usize) -> Option<&SourceLine> {
        match self.rows.get(row)? {
            ScreenRow::Line(line) => Some(line),
            ScreenRow::File { .. } => None,
        }
    }

    pub(crate) fn counts(&self, row: usize, at: &dyn Fn(u16) -> Counts) -> Counts {
        let mut sum = Counts::default();
        let locations = self.line(row).map_or(&[][..], |line| &line.locations);
        locations.iter().for_each(|&id| sum.add(&at(id)));
        sum
    }

    pub(crate) fn hottest(&self, heat: &dyn Fn(usize) -> u64) -> Vec<usize> {
        let mut rows: Vec<(usize, u64)> = self.points.iter().map(|&row| (row, heat(row))).collect();
        rows.retain(|(_, heat)| *heat > 0);
        rows.sort_by_key(|(_, heat)| std::cmp::Reverse(*heat));
        rows.into_iter().map(|(row, _)| row).collect()
    }
}
