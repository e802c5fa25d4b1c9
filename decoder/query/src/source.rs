//! Tables whose rows are made while a query runs.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use warptrace_analysis::{Analysis, AnalysisError, Selection, analyse};
use warptrace_decoder::TraceFile;
use warptrace_tables::Sink;

use crate::filter::Bounds;

/// Batches that wait to be taken.
const WAITING: usize = 2;

/// A trace with what queries call it.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) trace: TraceFile,
    analysis: OnceLock<Result<Arc<Analysis>, Arc<AnalysisError>>>,
}

impl Named {
    pub(crate) fn new(name: String, trace: TraceFile) -> Self {
        Self { name, trace, analysis: OnceLock::new() }
    }

    /// The figures of the whole trace, which are computed once.
    pub(crate) fn analysis(&self) -> Result<Arc<Analysis>, Arc<AnalysisError>> {
        let analysed = || analyse(&self.trace, &Selection::default()).map(Arc::new).map_err(Arc::new);
        self.analysis.get_or_init(analysed).clone()
    }

    /// An error of this trace.
    pub(crate) fn error(&self, error: impl fmt::Display) -> DataFusionError {
        DataFusionError::External(format!("{}: {error}", self.name).into())
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Named").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Makes the rows of one part of a table.
pub(crate) type Part = Arc<dyn Fn(&mut Sink<'_>) -> Result<()> + Send + Sync>;

/// What is asked of a table.
pub(crate) struct Asked {
    /// Numbers of the columns, in the order in which they are wanted.
    pub(crate) columns: Vec<usize>,
    /// The columns.
    pub(crate) schema: SchemaRef,
    pub(crate) bounds: Bounds,
    /// How many parts can be made at once.
    pub(crate) parts: usize,
}

/// A table that can be asked for some of its columns, in parts that are made at once.
pub(crate) trait Rows: fmt::Debug + Send + Sync + 'static {
    /// All columns.
    fn schema(&self) -> SchemaRef;
    /// The parts of an answer.
    fn parts(&self, asked: Asked) -> Vec<Part>;
}

/// A table for DataFusion.
#[derive(Debug)]
pub(crate) struct Table<R>(pub(crate) R);

#[async_trait]
impl<R: Rows> TableProvider for Table<R> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = self.0.schema();
        let columns = projection.cloned().unwrap_or_else(|| (0..all.fields().len()).collect());
        let schema = Arc::new(all.project(&columns)?);
        let parts = state.config().target_partitions();
        let asked = Asked { columns, schema: Arc::clone(&schema), bounds: Bounds::of(filters), parts };
        let stream =
            |part| -> Arc<dyn PartitionStream> { Arc::new(Stream { schema: Arc::clone(&schema), part }) };
        let streams: Vec<_> = self.0.parts(asked).into_iter().map(stream).collect();
        // The batches have only the columns that were asked for.
        let plan = StreamingTableExec::try_new(Arc::clone(&schema), streams, None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

struct Stream {
    schema: SchemaRef,
    part: Part,
}

impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl PartitionStream for Stream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), WAITING);
        let (sender, part) = (builder.tx(), Arc::clone(&self.part));
        builder.spawn_blocking(move || {
            part(&mut |batch| match sender.blocking_send(Ok(batch)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        });
        builder.build()
    }
}
