//! Means over the inputs of each program, and over all programs.

use super::compressors::COMPRESSORS;
use super::row::BenchRow;
use super::summary::{Measurements, Subject, cell};
use crate::codecs::UNTRACED;
use crate::table::MarkdownTable;
use crate::thesis;

pub(super) const HEAD: &str = "A program's number is the geometric mean over its inputs; the rows \"all\" are the geometric \
    mean over the thesis's programs, and programs of other kinds come after them. Times are over the untraced program's; ratios are raw bytes over bytes on the device, over those \
    of the file (at rest), and over those that other compressors make of the same raw trace.\n";

/// The inputs of one program, or of all programs.
pub(crate) struct Program<'m> {
    /// Name of the program, or the number of programs.
    pub(crate) name: String,
    inputs: Vec<Vec<&'m Subject>>,
}

impl Program<'_> {
    /// Returns the name, and a short description of the mean.
    pub(crate) fn label(&self) -> String {
        match &self.inputs[..] {
            [inputs] if inputs.len() == 1 => self.name.clone(),
            [inputs] => format!("{} {} inputs", self.name, inputs.len()),
            programs => format!("all {} programs", programs.len()),
        }
    }

    /// Returns the geometric mean over inputs, and over programs if there are several; `None` if any lacks
    /// the value.
    pub(crate) fn mean(&self, value: impl Fn(&Subject) -> Option<f64>) -> Option<f64> {
        let of_program = |inputs: &Vec<&Subject>| {
            geometric_mean(&inputs.iter().map(|subject| value(subject)).collect::<Option<Vec<f64>>>()?)
        };
        geometric_mean(&self.inputs.iter().map(of_program).collect::<Option<Vec<f64>>>()?)
    }

    /// Returns the mean ratio of another compressor, and whether it compressed only a part of some input.
    pub(crate) fn compressor(&self, name: &str) -> Option<(f64, bool)> {
        let ratio = self.mean(|subject| subject.compressor(name).map(BenchRow::ratio))?;
        let mut inputs = self.inputs.iter().flatten();
        Some((ratio, inputs.any(|subject| subject.compressor(name).is_some_and(BenchRow::is_prefix))))
    }
}

/// Returns the thesis's programs in row order, their combination if there are several, and then the others.
pub(crate) fn programs(measurements: &Measurements) -> Vec<Program<'_>> {
    let mut programs: Vec<Program<'_>> = Vec::new();
    for subject in &measurements.subjects {
        match programs.iter_mut().find(|program| program.name == subject.program) {
            Some(program) => program.inputs[0].push(subject),
            None => {
                programs.push(Program { name: subject.program.clone(), inputs: vec![vec![subject]] });
            }
        }
    }
    let is_thesis = |program: &Program<'_>| thesis::PROGRAMS.contains(&program.name.as_str());
    let (mut programs, others): (Vec<_>, Vec<_>) = programs.into_iter().partition(is_thesis);
    if programs.len() > 1 {
        let inputs = programs.iter().map(|program| program.inputs[0].clone()).collect();
        programs.push(Program { name: format!("all {}", programs.len()), inputs });
    }
    programs.extend(others);
    programs
}

fn geometric_mean(numbers: &[f64]) -> Option<f64> {
    let logarithms: f64 = numbers.iter().map(|number| number.ln()).sum();
    (!numbers.is_empty()).then(|| (logarithms / numbers.len() as f64).exp())
}

pub(super) fn table(measurements: &Measurements) -> MarkdownTable {
    let mut headings = vec![
        "program",
        "codec",
        "kernel",
        "kernel + encoding",
        "whole program",
        "device ratio",
        "ratio at rest",
    ];
    headings.extend(COMPRESSORS.iter().map(|compressor| compressor.name));
    let mut table = MarkdownTable::new(2, headings);
    for program in programs(measurements) {
        for codec in measurements.codecs().into_iter().filter(|name| *name != UNTRACED) {
            let mut row = vec![program.name.clone(), codec.to_owned()];
            row.extend([
                cell(program.mean(|subject| subject.overhead(codec, |row| row.kernel_s))),
                cell(program.mean(|subject| subject.overhead(codec, BenchRow::kernels_s))),
                cell(program.mean(|subject| subject.overhead(codec, |row| row.whole_s))),
                cell(program.mean(|subject| subject.ratio(codec))),
                cell(program.mean(|subject| subject.ratio_at_rest(codec))),
            ]);
            row.extend(COMPRESSORS.iter().map(|compressor| {
                let found = program.compressor(compressor.name);
                let star = if found.is_some_and(|(_, partial)| partial) { "*" } else { "" };
                format!("{}{star}", cell(found.map(|(ratio, _)| ratio)))
            }));
            table.row(row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Kind;

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
    }

    fn row(program: &str, input: &str, codec: &str, kernel_s: f64) -> BenchRow {
        BenchRow {
            device: "cuda".to_owned(),
            program: program.to_owned(),
            input: input.to_owned(),
            codec: codec.to_owned(),
            repetition: 1,
            launches: 1,
            averaged: 1,
            events: 20,
            raw_bytes: 100,
            bytes: 10,
            file_bytes: 5,
            kernel_s,
            whole_s: 2.0 * kernel_s,
            ..BenchRow::default()
        }
    }

    #[test]
    fn each_program_counts_once_and_a_missing_value_is_not_passed_over() {
        // Overheads 2 and 8 for one program and 16 for the other: means 4 and 16, combined 8.
        let mut rows = vec![
            row("matmul", "zero", UNTRACED, 1.0),
            row("matmul", "zero", "ecl", 5.0),
            row("nbody", "one", UNTRACED, 1.0),
            row("nbody", "one", "ecl", 2.0),
            row("nbody", "two", UNTRACED, 1.0),
            row("nbody", "two", "ecl", 8.0),
            row("mst", "three", UNTRACED, 1.0),
            row("mst", "three", "ecl", 16.0),
            row("mst", "three", "new", 3.0),
        ];
        let mut part = row("nbody", "one", "gzip -9", 1.0);
        (part.kind, part.events) = (Kind::Compressor, 1_000);
        rows.push(part);
        let measurements = Measurements::new(rows);
        let programs = programs(&measurements);
        let kernel = |codec: &str| -> Vec<String> {
            programs.iter().map(|p| cell(p.mean(|s| s.overhead(codec, |row| row.kernel_s)))).collect()
        };
        assert_eq!(
            programs.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
            ["nbody", "mst", "all 2", "matmul"]
        );
        let labels: Vec<String> = programs.iter().map(Program::label).collect();
        assert_eq!(labels, ["nbody 2 inputs", "mst", "all 2 programs", "matmul"]);
        assert_eq!(kernel("ecl"), ["4.00", "16.0", "8.00", "5.00"]);
        assert_eq!(kernel("new"), ["-", "3.00", "-", "-"]);
        assert_eq!(programs[2].mean(|subject| subject.ratio_at_rest("ecl")).map(f64::round), Some(20.0));
        // gzip did not run on the second input.
        assert_eq!(programs[0].compressor("gzip -9"), None);
    }
}
