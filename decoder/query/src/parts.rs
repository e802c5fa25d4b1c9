//! Figures of the workers' traces, file by file.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use datafusion::arrow::array::{AsArray, BinaryArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;
use futures::StreamExt;
use rayon::prelude::*;
use warptrace_analysis::{FileHead, FilePart, Selection, SetAnalysis, SetTable};
use warptrace_tables::Sink;

use crate::database::Database;
use crate::error::QueryError;
use crate::scan::{SqlTable, TableName};
use crate::source::{FoundTrace, Named};

#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Chosen {
    selection: Selection,
    lacks_weights: bool,
}

pub(crate) fn schema() -> SchemaRef {
    let column = |name, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![column("trace", DataType::Utf8), column("bytes", DataType::Binary)]))
}

/// Makes the rows of a worker, in parallel. With `chosen` makes parts, otherwise heads.
pub(crate) fn rows(
    traces: &[Named],
    columns: &[usize],
    chosen: Option<&Chosen>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    for some in traces.chunks(rayon::current_num_threads()) {
        let made: Vec<Result<Vec<u8>>> = some.par_iter().map(|named| bytes(named, chosen)).collect();
        for (named, bytes) in some.iter().zip(made) {
            let names = Arc::new(StringArray::from(vec![named.name.as_str()]));
            let bytes = Arc::new(BinaryArray::from(vec![&bytes?[..]]));
            let batch = RecordBatch::try_new(schema(), vec![names, bytes])?;
            if sink(batch.project(columns)?) == ControlFlow::Break(()) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn bytes(named: &Named, chosen: Option<&Chosen>) -> Result<Vec<u8>> {
    let (name, trace) = (named.name.as_str(), &named.trace);
    let bytes = match chosen {
        None => borsh::to_vec(&FileHead::new(name, trace)),
        Some(Chosen { selection, lacks_weights }) => {
            let part = FilePart::new(name, trace, selection, *lacks_weights);
            borsh::to_vec(&part.map_err(|error| named.error(error))?)
        }
    };
    bytes.map_err(|error| named.error(error))
}

impl Database {
    /// Analyses traces on their workers, and sums the figures as [`SetAnalysis::add_all`] does for local
    /// files. Calls `done` after each file. The result has no figures of single warps, and the selection's
    /// focus is not used. Holds the figures of files that arrive before their turn. Fails as
    /// [`ask`](Self::ask); also if the traces are in this process, or cannot be analysed together.
    pub fn summed(
        &self,
        found: &[FoundTrace],
        selection: &Selection,
        mut done: impl FnMut(),
    ) -> Result<SetAnalysis, QueryError> {
        let failed = |error: &dyn std::fmt::Display| QueryError::Failed(error.to_string());
        let mut heads = BTreeMap::new();
        self.each(None, |name, bytes| {
            heads.insert(
                name.to_owned(),
                borsh::from_slice::<FileHead>(bytes).map_err(|error| failed(&error))?,
            );
            Ok(())
        })?;
        let lacks = |name: &str| QueryError::Failed(format!("{name}: its worker says nothing of it"));
        let mut table = SetTable::default();
        for file in found {
            let head = heads.remove(&file.name).ok_or_else(|| lacks(&file.name))?;
            table.add(&head).map_err(|error| failed(&error))?;
        }
        let selection = Selection { focus: None, ..selection.clone() };
        let chosen = Chosen { selection, lacks_weights: table.lacks_weights() };
        let (mut set, mut waiting, mut turn) = (SetAnalysis::new(table), BTreeMap::new(), 0);
        self.each(Some(chosen), |name, bytes| {
            waiting.insert(
                name.to_owned(),
                borsh::from_slice::<FilePart>(bytes).map_err(|error| failed(&error))?,
            );
            while let Some(part) = found.get(turn).and_then(|file| waiting.remove(&file.name)) {
                set.add(part);
                turn += 1;
            }
            done();
            Ok(())
        })?;
        match found.get(turn) {
            Some(file) => Err(lacks(&file.name)),
            None => Ok(set),
        }
    }

    fn each(
        &self,
        chosen: Option<Chosen>,
        mut take: impl FnMut(&str, &[u8]) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let name = if chosen.is_some() { TableName::Parts } else { TableName::Heads };
        let provider = SqlTable { name, traces: self.traces().clone(), chosen: chosen.map(Arc::new) };
        let stream = self
            .until_stopped(async { self.context().read_table(Arc::new(provider))?.execute_stream().await })?;
        let mut stream = stream.map_err(|error| self.failed(&error))?;
        while let Some(batch) = self.until_stopped(stream.next())? {
            let batch = batch.map_err(|error| self.failed(&error))?;
            let (names, bytes) = (batch.column(0).as_string::<i32>(), batch.column(1).as_binary::<i32>());
            for row in 0..batch.num_rows() {
                take(names.value(row), bytes.value(row))?;
            }
        }
        Ok(())
    }
}
