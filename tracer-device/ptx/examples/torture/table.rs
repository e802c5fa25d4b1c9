//! The table of results.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::assembled::Kernel;

const EXAMPLES: usize = 3;

#[derive(Default)]
pub(crate) struct TortureTable {
    pub(crate) files: usize,
    pub(crate) bytes: usize,
    pub(crate) kernels: usize,
    pub(crate) functions: usize,
    pub(crate) originals: usize,
    /// Kernels with markers at blocks, and their points.
    pub(crate) marked: usize,
    pub(crate) points: usize,
    /// Traced copies, in all ways.
    pub(crate) traced: usize,
    /// Spliced texts that the assembler accepts.
    pub(crate) assembled: usize,
    /// Rejected texts by reason, with examples.
    refused: BTreeMap<String, (usize, Vec<String>)>,
    unfit: Vec<String>,
    panics: Vec<String>,
    faults: Vec<String>,
    pairs: BTreeMap<String, Vec<[Kernel; 2]>>,
    splices: usize,
    spliced_bytes: usize,
    splicing: Duration,
    slowest: Option<(Duration, usize, String)>,
}

/// Returns a reason with its names and digits replaced, for grouping.
pub(crate) fn kind(reason: &str) -> String {
    let mut parts = reason.split('`');
    let mut kind = parts.next().unwrap_or_default().to_owned();
    while let (Some(_), Some(text)) = (parts.next(), parts.next()) {
        kind.push('…');
        kind.push_str(text);
    }
    kind.replace(|character: char| character.is_ascii_digit(), "#")
}

impl TortureTable {
    pub(crate) fn refuse(&mut self, reason: String, example: &str) {
        let (count, examples) = self.refused.entry(reason).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(example.to_owned());
        }
    }

    /// Adds a file whose original the assembler rejects.
    pub(crate) fn unfit(&mut self, name: &str, error: &str) {
        self.unfit.push(format!("{name}: {}", error.lines().nth(1).unwrap_or(error)));
    }

    pub(crate) fn panic(&mut self, name: &str, doing: &str) {
        self.panics.push(format!("{name}: {doing}"));
    }

    /// Adds a text that the assembler rejects although it accepts the original.
    pub(crate) fn fault(&mut self, fault: String) {
        eprintln!("{fault}");
        self.faults.push(fault);
    }

    pub(crate) fn pair(&mut self, way: String, own: Kernel, traced: Kernel) {
        self.pairs.entry(way).or_default().push([own, traced]);
    }

    pub(crate) fn spliced(&mut self, name: &str, bytes: usize, took: Duration) {
        self.splices += 1;
        self.spliced_bytes += bytes;
        self.splicing += took;
        if self.slowest.as_ref().is_none_or(|(slowest, ..)| *slowest < took) {
            self.slowest = Some((took, bytes, name.to_owned()));
        }
    }
}

/// Returns the median; the upper one for an even count.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

impl fmt::Display for TortureTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("files", self.files),
            ("bytes of PTX", self.bytes),
            ("kernels", self.kernels),
            ("functions", self.functions),
            ("originals that ptxas takes", self.originals),
            ("originals that ptxas refuses", self.unfit.len()),
            ("kernels with markers at blocks", self.marked),
            ("points at blocks", self.points),
            ("texts spliced, all points and ways", self.splices),
            ("traced copies in them", self.traced),
            ("spliced texts that ptxas takes", self.assembled),
            ("spliced texts that ptxas refuses, though it takes the original", self.faults.len()),
            ("panics", self.panics.len()),
        ];
        writeln!(out, "| what | number |\n| --- | --: |")?;
        rows.iter().try_for_each(|(what, number)| writeln!(out, "| {what} | {number} |"))?;
        let seconds = self.splicing.as_secs_f64();
        let speed = self.spliced_bytes as f64 / 1e6 / seconds.max(1e-9);
        writeln!(out, "\nSplicing: {seconds:.2} s for {} bytes, {speed:.0} MB/s.", self.spliced_bytes)?;
        if let Some((took, bytes, name)) = &self.slowest {
            writeln!(out, "The longest took {took:.2?} for {bytes} bytes: {name}.")?;
        }
        writeln!(
            out,
            "\n| way | kernels | code, ratio: median | greatest | registers, own: median | traced | kernels with more spills | bytes spilt more: median of these | most |"
        )?;
        writeln!(out, "| --- | --: | --: | --: | --: | --: | --: | --: | --: |")?;
        for (way, pairs) in &self.pairs {
            let ratios = || {
                pairs
                    .iter()
                    .filter(|[own, _]| own.bytes > 0)
                    .map(|[own, traced]| traced.bytes as f64 / own.bytes as f64)
            };
            let spilt: Vec<f64> = pairs
                .iter()
                .filter(|[own, traced]| traced.spilt > own.spilt)
                .map(|[own, traced]| (traced.spilt - own.spilt) as f64)
                .collect();
            let registers = |of: usize| median(pairs.iter().map(|pair| pair[of].registers as f64).collect());
            writeln!(
                out,
                "| {way} | {} | {:.2} | {:.2} | {} | {} | {} | {} | {} |",
                pairs.len(),
                median(ratios().collect()),
                ratios().fold(0.0, f64::max),
                registers(0),
                registers(1),
                spilt.len(),
                median(spilt.clone()),
                spilt.iter().copied().fold(0.0, f64::max),
            )?;
        }
        writeln!(out, "\n| refused: reason | number | such as |\n| --- | --: | --- |")?;
        for (reason, (count, examples)) in &self.refused {
            writeln!(out, "| {reason} | {count} | {} |", examples.join("; "))?;
        }
        let lists = [
            ("ptxas refuses the original", &self.unfit),
            ("panics", &self.panics),
            ("ptxas refuses what is spliced", &self.faults),
        ];
        for (title, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
            writeln!(out, "\n{title}:")?;
            list.iter().try_for_each(|line| writeln!(out, "- {line}"))?;
        }
        Ok(())
    }
}
