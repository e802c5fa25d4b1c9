//! Medians, ratios and overheads, and their tables.

use super::compressors::COMPRESSORS;
use super::overview;
use super::row::{BenchRow, Kind};
use crate::codecs::{MAIN, RAW, UNTRACED};
use crate::table::{MarkdownTable, count, digits, seconds};
use crate::thesis;

#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) program: String,
    pub(crate) input: String,
    /// The thesis's numbers for comparison.
    pub(crate) thesis: Option<&'static thesis::Ratios>,
    rows: Vec<BenchRow>,
}

#[derive(Clone, Debug)]
pub(crate) struct Measurements {
    pub(crate) subjects: Vec<Subject>,
    first: BenchRow,
}

impl Subject {
    pub(crate) fn codecs(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for row in self.rows.iter().filter(|row| row.kind == Kind::Run) {
            if !names.contains(&row.codec.as_str()) {
                names.push(row.codec.as_str());
            }
        }
        names
    }

    pub(crate) fn median(&self, codec: &str, of: impl Fn(&BenchRow) -> f64) -> Option<f64> {
        let runs = self.rows.iter().filter(|row| row.kind == Kind::Run && row.codec == codec);
        median(runs.map(of).collect())
    }

    /// Returns the spread of the runs of a codec: (largest - smallest) / median.
    pub(crate) fn spread(&self, codec: &str, of: impl Fn(&BenchRow) -> f64) -> Option<f64> {
        let runs = self.rows.iter().filter(|row| row.kind == Kind::Run && row.codec == codec);
        spread(runs.map(of).collect())
    }

    /// Returns a codec's median time divided by the untraced program's.
    pub(crate) fn overhead(&self, codec: &str, time: impl Fn(&BenchRow) -> f64) -> Option<f64> {
        Some(self.median(codec, &time)? / self.median(UNTRACED, &time)?)
    }

    /// Returns the compression ratio of a codec's trace on the device.
    pub(crate) fn ratio(&self, codec: &str) -> Option<f64> {
        self.median(codec, BenchRow::ratio)
    }

    /// Returns the compression ratio of a codec's file.
    pub(crate) fn ratio_at_rest(&self, codec: &str) -> Option<f64> {
        self.median(codec, |row| row.raw_bytes as f64 / row.file_bytes as f64)
    }

    pub(crate) fn compressor(&self, name: &str) -> Option<&BenchRow> {
        self.rows.iter().find(|row| row.kind == Kind::Compressor && row.codec == name)
    }

    /// Returns the total time of a raw recording and another compressor, scaled up from a prefix if
    /// necessary.
    pub(crate) fn time_with(&self, compressor: &BenchRow) -> Option<f64> {
        let raw = self.median(RAW, |row| row.whole_s)?;
        Some(raw + compressor.whole_s * compressor.trace_bytes() as f64 / compressor.raw_bytes as f64)
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.program, self.input)
    }
}

pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(numbers[middle]),
        _ => Some(f64::midpoint(numbers[middle - 1], numbers[middle])),
    }
}

/// Returns (largest - smallest) / median; `None` for no numbers.
pub(crate) fn spread(numbers: Vec<f64>) -> Option<f64> {
    let largest = numbers.iter().copied().max_by(f64::total_cmp)?;
    let smallest = numbers.iter().copied().min_by(f64::total_cmp)?;
    Some((largest - smallest) / median(numbers)?)
}

/// Formats a spread as a percentage, or a dash if it is missing or not finite.
pub(crate) fn percent(spread: Option<f64>) -> String {
    match spread {
        Some(spread) if spread.is_finite() => format!("{:.1}%", spread * 100.0),
        _ => "-".to_owned(),
    }
}

pub(super) fn cell(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), digits)
}

impl Measurements {
    /// Groups rows by program and input. Panics if there are no rows.
    pub(crate) fn new(rows: Vec<BenchRow>) -> Self {
        let first = rows.first().expect("there is a line").clone();
        let mut subjects: Vec<Subject> = Vec::new();
        for row in rows {
            let known = subjects.iter_mut().find(|s| s.program == row.program && s.input == row.input);
            match known {
                Some(subject) => subject.rows.push(row),
                None => subjects.push(Subject {
                    program: row.program.clone(),
                    input: row.input.clone(),
                    thesis: thesis::find(&row.thesis),
                    rows: vec![row],
                }),
            }
        }
        Self { subjects, first }
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.first.device == "simulator"
    }

    pub(crate) fn origin(&self) -> String {
        let BenchRow { machine, driver, commit, date, .. } = &self.first;
        format!("{machine}; driver {driver}; commit {commit}; {date}")
    }

    pub(crate) fn codecs(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.subjects.iter().flat_map(Subject::codecs) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    pub(super) fn line(&self, program: &str, input: &str) -> String {
        let Some(subject) = self.subjects.iter().find(|s| s.program == program && s.input == input) else {
            return String::new();
        };
        let kernel = subject.median(UNTRACED, |row| row.kernel_s).unwrap_or(f64::NAN);
        let whole = subject.median(UNTRACED, |row| row.whole_s).unwrap_or(f64::NAN);
        let spread = |codec| percent(subject.spread(codec, |row| row.kernel_s));
        let mut line = format!(
            "{}: kernel {} (spread {}), whole {}",
            subject.name(),
            seconds(kernel),
            spread(UNTRACED),
            seconds(whole)
        );
        for codec in subject.codecs().into_iter().filter(|name| *name != UNTRACED) {
            line += &format!(
                "; {codec}: kernel x{} (spread {}), with encoding x{}, whole x{}, ratio {}",
                cell(subject.overhead(codec, |row| row.kernel_s)),
                spread(codec),
                cell(subject.overhead(codec, BenchRow::kernels_s)),
                cell(subject.overhead(codec, |row| row.whole_s)),
                cell(subject.ratio(codec))
            );
        }
        line
    }

    pub(crate) fn markdown(&self) -> String {
        let runs = self.subjects.iter().flat_map(|s| &s.rows).map(|row| row.repetition).max().unwrap_or(0);
        let mut text = format!(
            "# Measurements\n\n{}. Medians of {runs} samples, each of a run or of the mean of several short ones; a spread is the \
             largest less the smallest, over the median.\n",
            self.origin()
        );
        if self.is_simulated() {
            text += "\n**From the simulator: sizes are real, times are not performance.**\n";
        }
        text += "\nMade by `warptrace-bench bench`; every run is in `bench.csv`. What the columns mean, and how it was \
                 measured, is in `docs/evaluation/method.md`.\n";
        text +=
            &format!("\n## Ratios beside the thesis's\n\n{}\n{}", self.ratios().markdown(), self.prefixes());
        text += &format!("\n## Overview\n\n{}\n{}", overview::HEAD, overview::table(self).markdown());
        text += &format!("\n## Times\n\n{}", self.times().markdown());
        text += &format!("\n## Sizes\n\n{}", self.sizes().markdown());
        let compressors = self.compressors();
        if !compressors.is_empty() {
            text += &format!("\n## Other compressors on the raw trace\n\n{}", compressors.markdown());
        }
        text
    }

    fn ratios(&self) -> MarkdownTable {
        let codecs: Vec<&str> =
            self.codecs().into_iter().filter(|name| ![UNTRACED, RAW].contains(name)).collect();
        let mut headings = vec!["program".to_owned(), "input".to_owned(), "thesis's input".to_owned()];
        headings.extend(codecs.iter().map(|name| (*name).to_owned()));
        headings.push("thesis ECL".to_owned());
        for compressor in COMPRESSORS {
            headings.push(compressor.name.to_owned());
            match compressor.name {
                "gzip -9" => headings.push("thesis gzip".to_owned()),
                "bzip2 -9" => headings.push("thesis bzip2".to_owned()),
                _ => {}
            }
        }
        let mut table = MarkdownTable::new(3, headings);
        for subject in &self.subjects {
            let of_thesis = |of: fn(&thesis::Ratios) -> f64| cell(subject.thesis.map(of));
            let name = subject.thesis.map_or("-", |ratios| ratios.name).to_owned();
            let mut row = vec![subject.program.clone(), subject.input.clone(), name];
            row.extend(codecs.iter().map(|codec| cell(subject.ratio(codec))));
            row.push(of_thesis(|ratios| ratios.ecl));
            for compressor in COMPRESSORS {
                let line = subject.compressor(compressor.name);
                let mark = if line.is_some_and(BenchRow::is_prefix) { "*" } else { "" };
                row.push(format!("{}{mark}", cell(line.map(BenchRow::ratio))));
                match compressor.name {
                    "gzip -9" => row.push(of_thesis(|ratios| ratios.gzip)),
                    "bzip2 -9" => row.push(of_thesis(|ratios| ratios.bzip2)),
                    _ => {}
                }
            }
            table.row(row);
        }
        table
    }

    fn prefixes(&self) -> String {
        let rows = self.subjects.iter().flat_map(|subject| &subject.rows);
        match rows
            .filter(|row| row.kind == Kind::Compressor && row.is_prefix())
            .map(|row| row.raw_bytes)
            .max()
        {
            Some(bytes) => format!(
                "\\* Only the first {} bytes of the raw trace were compressed; the ratio is that of these bytes.\n",
                count(bytes)
            ),
            None => String::new(),
        }
    }

    fn times(&self) -> MarkdownTable {
        let mut table = MarkdownTable::new(
            3,
            [
                "program",
                "input",
                "codec",
                "launches",
                "kernel",
                "spread",
                "over untraced",
                "kernel + encoding",
                "spread",
                "over untraced",
                "copy",
                "write",
                "whole",
                "spread",
                "over untraced",
                "set-up",
            ],
        );
        for subject in &self.subjects {
            for codec in subject.codecs() {
                let time =
                    |of: fn(&BenchRow) -> f64| subject.median(codec, of).map_or_else(String::new, seconds);
                let over = |of: fn(&BenchRow) -> f64| cell(subject.overhead(codec, of));
                let spread = |of: fn(&BenchRow) -> f64| percent(subject.spread(codec, of));
                let launches = subject.median(codec, |row| f64::from(row.launches)).unwrap_or(0.0);
                let traced = codec != UNTRACED;
                let if_traced = |text: String| if traced { text } else { "-".to_owned() };
                table.row([
                    subject.program.clone(),
                    subject.input.clone(),
                    codec.to_owned(),
                    count(launches as u64),
                    time(|row| row.kernel_s),
                    spread(|row| row.kernel_s),
                    over(|row| row.kernel_s),
                    time(BenchRow::kernels_s),
                    spread(BenchRow::kernels_s),
                    over(BenchRow::kernels_s),
                    if_traced(time(|row| row.copy_s)),
                    if_traced(time(|row| row.write_s)),
                    time(|row| row.whole_s),
                    spread(|row| row.whole_s),
                    over(|row| row.whole_s),
                    if_traced(time(|row| row.setup_s)),
                ]);
            }
        }
        table
    }

    fn sizes(&self) -> MarkdownTable {
        let mut table = MarkdownTable::new(
            3,
            ["program", "input", "codec", "events", "raw bytes", "device bytes", "ratio", "file bytes"],
        );
        for subject in &self.subjects {
            for codec in subject.codecs().into_iter().filter(|name| *name != UNTRACED) {
                let whole = |of: fn(&BenchRow) -> u64| {
                    subject
                        .median(codec, |row| of(row) as f64)
                        .map_or_else(String::new, |median| count(median as u64))
                };
                table.row([
                    subject.program.clone(),
                    subject.input.clone(),
                    codec.to_owned(),
                    whole(|row| row.events),
                    whole(|row| row.raw_bytes),
                    whole(|row| row.bytes),
                    cell(subject.ratio(codec)),
                    whole(|row| row.file_bytes),
                ]);
            }
        }
        table
    }

    fn compressors(&self) -> MarkdownTable {
        let mut table = MarkdownTable::new(
            3,
            [
                "program",
                "input",
                "compressor",
                "of bytes",
                "to bytes",
                "ratio",
                "time",
                "MB/s",
                "with raw tracing, over ecl",
            ],
        );
        for subject in &self.subjects {
            for compressor in COMPRESSORS {
                let Some(row) = subject.compressor(compressor.name) else { continue };
                let mark = if row.is_prefix() { "*" } else { "" };
                let relative = subject
                    .time_with(row)
                    .zip(subject.median(MAIN, |row| row.whole_s))
                    .map(|(with, ecl)| with / ecl);
                table.row([
                    subject.program.clone(),
                    subject.input.clone(),
                    compressor.name.to_owned(),
                    format!("{}{mark}", count(row.raw_bytes)),
                    count(row.bytes),
                    digits(row.ratio()),
                    seconds(row.whole_s),
                    digits(row.raw_bytes as f64 / row.whole_s / 1e6),
                    format!("{}{mark}", cell(relative)),
                ]);
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::{median, percent, spread};

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn spreads_are_over_the_median() {
        assert_eq!(spread(vec![]), None);
        assert_eq!(spread(vec![3.0]), Some(0.0));
        assert_eq!(spread(vec![4.0, 5.0, 3.0]), Some(0.5));
        assert_eq!(percent(Some(0.0312)), "3.1%");
        assert_eq!([percent(None), percent(spread(vec![0.0, 0.0]))], ["-", "-"]);
    }
}
