//! Writes rows to the file immediately, so that an interrupted run leaves them.

use std::fs::File;
use std::path::Path;

use anyhow::Context;

use super::row::BenchRow;
use crate::machine::Machine;
use crate::runs::Times;
use crate::subject::Case;
use crate::{date, files};

pub(super) struct Writer {
    file: csv::Writer<File>,
    /// Values shared by all rows.
    common: BenchRow,
    pub(super) rows: Vec<BenchRow>,
}

impl Writer {
    pub(super) fn create(path: &Path, machine: &Machine, commit: &str) -> anyhow::Result<Self> {
        let file = files::create(path)?;
        let common = BenchRow {
            date: date::today(),
            commit: commit.to_owned(),
            machine: machine.name.clone(),
            driver: machine.driver.clone(),
            device: machine.kind.to_owned(),
            averaged: 1,
            ..BenchRow::default()
        };
        Ok(Self { file: csv::Writer::from_writer(file), common, rows: Vec::new() })
    }

    pub(super) fn row(&self, case: &Case, codec: &str, times: &Times) -> BenchRow {
        BenchRow {
            program: case.program.to_owned(),
            input: case.input.clone(),
            thesis: case.thesis.unwrap_or_default().to_owned(),
            codec: codec.to_owned(),
            setup_s: (times.setup + times.end).as_secs_f64(),
            kernel_s: times.kernel.as_secs_f64(),
            encoding_s: times.encoding.as_secs_f64(),
            copy_s: times.copy.as_secs_f64(),
            write_s: times.write.as_secs_f64(),
            whole_s: times.whole.as_secs_f64(),
            ..self.common.clone()
        }
    }

    pub(super) fn add(&mut self, row: BenchRow) -> anyhow::Result<()> {
        self.file.serialize(&row).context("cannot write the table")?;
        self.file.flush().context("cannot write the table")?;
        self.rows.push(row);
        Ok(())
    }
}
