//! Batches produced by a thread while a consumer reads them.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use warptrace_tables::{Sink, TableError};

use crate::error;

/// Maximum number of batches that wait for the consumer.
const WAITING: usize = 2;

/// A reader of batches. If it is dropped, the thread ends at its next batch.
pub(crate) struct Batches {
    schema: SchemaRef,
    batches: Receiver<RecordBatch>,
    thread: Option<JoinHandle<Result<(), TableError>>>,
}

impl Batches {
    pub(crate) fn start(
        schema: SchemaRef,
        make: impl FnOnce(&mut Sink<'_>) -> Result<(), TableError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, batches) = sync_channel(WAITING);
        let work = move || {
            make(&mut |batch| match sender.send(batch) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        };
        let thread = std::thread::Builder::new().name("warptrace".to_owned()).spawn(work)?;
        Ok(Self { schema, batches, thread: Some(thread) })
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(batch) = self.batches.recv() {
            return Some(Ok(batch));
        }
        match self.thread.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Err(error::of_table(error))),
            Err(_) => Some(Err(ArrowError::ComputeError("warptrace met an error of its own".to_owned()))),
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
