//! The table of both languages' times.

use serde::Serialize;

use crate::date;
use crate::machine::Machine;
use crate::subject::Case;
use crate::table::{digits, seconds};

/// Times of one program in one language.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Timing {
    /// Median of a run's kernels together, in seconds.
    pub(super) median: f64,
    /// The least, in seconds.
    pub(super) least: f64,
    /// Runs that were counted.
    pub(super) runs: u32,
    /// Steps that were computed, where the program says.
    pub(super) work: Option<u64>,
}

/// One line of `baseline.csv`.
#[derive(Clone, Debug, Serialize)]
struct Row {
    date: String,
    commit: String,
    machine: String,
    driver: String,
    device: String,
    program: String,
    input: String,
    /// `rust` or `cuda`.
    language: &'static str,
    runs: u32,
    median_s: f64,
    least_s: f64,
    /// Sum of the picture's steps, or nothing.
    work: Option<u64>,
}

/// All pairs.
pub(super) struct Table {
    machine: Machine,
    date: String,
    commit: String,
    pairs: Vec<(String, String, Timing, Option<Timing>)>,
}

impl Table {
    pub(super) fn new(machine: &Machine, commit: &str) -> Self {
        Self { machine: machine.clone(), date: date::today(), commit: commit.to_owned(), pairs: Vec::new() }
    }

    pub(super) fn add(&mut self, case: &Case, rust: Timing, cuda: Option<Timing>) {
        self.pairs.push((case.program.to_owned(), case.input.clone(), rust, cuda));
    }

    /// The pairs whose programs say that they did different work.
    pub(super) fn different_work(&self) -> Vec<String> {
        let differs = |rust: &Timing, cuda: &Option<Timing>| {
            cuda.as_ref()
                .is_some_and(|cuda| cuda.work.zip(rust.work).is_some_and(|(one, other)| one != other))
        };
        (self.pairs.iter())
            .filter(|(.., rust, cuda)| differs(rust, cuda))
            .map(|(program, input, ..)| format!("{program} {input}"))
            .collect()
    }

    /// A line for each program, input and language.
    pub(super) fn csv(&self) -> anyhow::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for (program, input, rust, cuda) in &self.pairs {
            for (language, timing) in [("rust", Some(rust)), ("cuda", cuda.as_ref())] {
                let Some(Timing { median, least, runs, work }) = timing.cloned() else { continue };
                writer.serialize(Row {
                    date: self.date.clone(),
                    commit: self.commit.clone(),
                    machine: self.machine.name.clone(),
                    driver: self.machine.driver.clone(),
                    device: self.machine.kind.to_owned(),
                    program: program.clone(),
                    input: input.clone(),
                    language,
                    runs,
                    median_s: median,
                    least_s: least,
                    work,
                })?;
            }
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }

    pub(super) fn markdown(&self) -> String {
        let Machine { name, driver, kind } = &self.machine;
        let headings =
            ["program", "input", "Rust", "CUDA C++", "Rust / CUDA C++", "least / least", "same work"];
        let mut table = crate::table::Table::new(2, headings);
        let cell = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        for (program, input, rust, cuda) in &self.pairs {
            let of_cuda = |value: fn(&Timing) -> f64| cuda.as_ref().map(value);
            let over =
                |value: fn(&Timing) -> f64| cell(of_cuda(value).map(|cuda| digits(value(rust) / cuda)));
            let same =
                (cuda.as_ref().and_then(|cuda| cuda.work).zip(rust.work)).map(|(one, other)| one == other);
            table.row([
                program.clone(),
                input.clone(),
                seconds(rust.median),
                cell(of_cuda(|cuda| cuda.median).map(seconds)),
                over(|timing| timing.median),
                over(|timing| timing.least),
                cell(same.map(|same| if same { "yes" } else { "NO" }.to_owned())),
            ]);
        }
        let mut text = format!(
            "# Untraced kernels in Rust and in CUDA C++\n\n{name}; driver {driver}; commit {}; {}. Medians of {} runs.\n",
            self.commit,
            self.date,
            self.pairs.first().map_or(0, |(.., rust, _)| rust.runs),
        );
        if *kind == "simulator" {
            text += "\n**Rust on the simulator: its times are not performance.**\n";
        }
        text += "\nMade by `warptrace-bench baseline`: for each input first Rust, then CUDA C++ (`workloads/baseline`, \
                 compiled by nvcc), on the same device in the same run. Times are of all kernels of a run, between device \
                 events around each launch. Same work: both programs took the same number of steps in all.\n\n";
        text + &table.markdown()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(median: f64, work: Option<u64>) -> Timing {
        Timing { median, least: median / 2.0, runs: 3, work }
    }

    #[test]
    fn ratios_and_differences_are_told() {
        let machine = Machine { name: "card".to_owned(), driver: "1.2".to_owned(), kind: "cuda" };
        let mut table = Table::new(&machine, "abc");
        let add = |table: &mut Table, program: &str, rust, cuda| {
            table.pairs.push((program.to_owned(), "input".to_owned(), rust, cuda));
        };
        add(&mut table, "same", timing(0.003, Some(7)), Some(timing(0.002, Some(7))));
        assert!(table.different_work().is_empty());
        add(&mut table, "silent", timing(0.001, None), Some(timing(0.002, None)));
        add(&mut table, "alone", timing(0.001, Some(7)), None);
        add(&mut table, "other", timing(0.002, Some(7)), Some(timing(0.002, Some(8))));
        assert_eq!(table.different_work(), ["other input"]);
        let text = table.markdown();
        let words: Vec<&str> = text.split_whitespace().collect();
        for part in [&["3.00", "ms"][..], &["1.50"], &["yes"], &["NO"], &["0.50"]] {
            assert!(words.windows(part.len()).any(|found| found == part), "no {part:?} in\n{text}");
        }
        assert_eq!(table.csv().unwrap().lines().count(), 1 + 7);
    }
}
