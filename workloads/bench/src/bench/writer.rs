//! Lines to the file as they come, so that an interrupted run leaves what it had.

use std::fs::File;
use std::path::Path;

use anyhow::Context;

use super::row::{Kind, Row};
use crate::codecs::UNTRACED;
use crate::date;
use crate::machine::Machine;
use crate::runs::Times;
use crate::subject::Case;

/// Writes lines and keeps them.
pub(super) struct Writer {
    file: csv::Writer<File>,
    /// What all lines have in common.
    common: Row,
    pub(super) rows: Vec<Row>,
}

/// What differs from line to line.
pub(super) struct Measured<'a> {
    pub(super) kind: Kind,
    pub(super) codec: &'a str,
    pub(super) repetition: u32,
    pub(super) launches: u32,
    pub(super) averaged: u32,
    pub(super) events: u64,
    pub(super) raw_bytes: u64,
    pub(super) bytes: u64,
    pub(super) file_bytes: u64,
    pub(super) times: Times,
}

impl Measured<'_> {
    /// A run without tracing.
    pub(super) fn untraced(repetition: u32, launches: u32, averaged: u32, times: Times) -> Self {
        Self {
            kind: Kind::Run,
            codec: UNTRACED,
            repetition,
            launches,
            averaged,
            events: 0,
            raw_bytes: 0,
            bytes: 0,
            file_bytes: 0,
            times,
        }
    }
}

impl Writer {
    pub(super) fn create(path: &Path, machine: &Machine, commit: &str) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        let common = Row {
            date: date::today(),
            commit: commit.to_owned(),
            machine: machine.name.clone(),
            driver: machine.driver.clone(),
            device: machine.kind.to_owned(),
            program: String::new(),
            input: String::new(),
            thesis: String::new(),
            kind: Kind::Run,
            codec: String::new(),
            repetition: 0,
            launches: 0,
            averaged: 1,
            events: 0,
            raw_bytes: 0,
            bytes: 0,
            file_bytes: 0,
            setup_s: 0.0,
            kernel_s: 0.0,
            encoding_s: 0.0,
            copy_s: 0.0,
            write_s: 0.0,
            whole_s: 0.0,
        };
        Ok(Self { file: csv::Writer::from_writer(file), common, rows: Vec::new() })
    }

    pub(super) fn add(&mut self, case: &Case, measured: Measured<'_>) -> anyhow::Result<()> {
        let Measured {
            kind,
            codec,
            repetition,
            launches,
            averaged,
            events,
            raw_bytes,
            bytes,
            file_bytes,
            times,
        } = measured;
        let row = Row {
            program: case.program.to_owned(),
            input: case.input.clone(),
            thesis: case.thesis.unwrap_or_default().to_owned(),
            kind,
            codec: codec.to_owned(),
            repetition,
            launches,
            averaged,
            events,
            raw_bytes,
            bytes,
            file_bytes,
            setup_s: (times.setup + times.end).as_secs_f64(),
            kernel_s: times.kernel.as_secs_f64(),
            encoding_s: times.encoding.as_secs_f64(),
            copy_s: times.copy.as_secs_f64(),
            write_s: times.write.as_secs_f64(),
            whole_s: times.whole.as_secs_f64(),
            ..self.common.clone()
        };
        self.file.serialize(&row).context("cannot write the table")?;
        self.file.flush().context("cannot write the table")?;
        self.rows.push(row);
        Ok(())
    }
}
