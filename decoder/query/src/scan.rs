//! The tables, and the plan node that makes their rows.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use warptrace_tables::{EventTable, Made, Sink, TraceTable};

use crate::filter::Bounds;
use crate::parts::{self, Chosen};
use crate::source::Named;
use crate::workers::{Shares, Task};
use crate::{figures, listing, runs, traces};

const WAITING: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableName {
    /// A row for each event, figure or access of each trace.
    Rows(TraceTable),
    /// The file of each rank.
    Traces,
    /// The traces of the workers. Internal.
    Listing,
    /// Data of each file before its analysis. Internal.
    Heads,
    /// Figures of each file. Internal.
    Parts,
}

impl TableName {
    pub(crate) fn all() -> impl Iterator<Item = (&'static str, Self)> {
        TraceTable::all().map(|table| (table.name(), Self::Rows(table))).chain([("traces", Self::Traces)])
    }

    pub(crate) fn known() -> impl Iterator<Item = (&'static str, Self)> {
        Self::all().chain([
            (EventTable::Sums.name(), Self::Rows(TraceTable::Events(EventTable::Sums))),
            ("listing", Self::Listing),
            ("heads", Self::Heads),
            ("parts", Self::Parts),
        ])
    }

    pub(crate) fn schema(self) -> SchemaRef {
        match self {
            Self::Rows(table) => table.schema(),
            Self::Traces => traces::batch(&[]).map_or_else(|_| Schema::empty().into(), |rows| rows.schema()),
            Self::Listing => {
                listing::batch(0, &[]).map_or_else(|_| Schema::empty().into(), |rows| rows.schema())
            }
            Self::Heads | Self::Parts => parts::schema(),
        }
    }

    /// Returns the number of parts made in parallel, at most `most`.
    fn parts(self, most: usize) -> usize {
        match self {
            Self::Rows(TraceTable::Events(_) | TraceTable::Accesses(_)) => most,
            // Each analysis uses all cores.
            Self::Rows(TraceTable::Figures(_)) | Self::Traces | Self::Listing | Self::Heads | Self::Parts => {
                1
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) traces: Arc<[Named]>,
    pub(crate) made: Arc<Made>,
}

#[derive(Clone, Debug)]
pub(crate) enum Traces {
    Here(Arc<Open>),
    Apart(Arc<Shares>),
    /// The share of one worker, on the client: it can only be sent.
    Share(Arc<Shares>, usize),
    Task(Arc<Task>),
}

#[derive(Clone, Debug)]
pub(crate) struct SqlTable {
    pub(crate) name: TableName,
    pub(crate) traces: Traces,
    /// Only for the table of parts.
    pub(crate) chosen: Option<Arc<Chosen>>,
}

#[async_trait]
impl TableProvider for SqlTable {
    fn schema(&self) -> SchemaRef {
        self.name.schema()
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
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = projection.cloned().unwrap_or_else(|| (0..self.schema().fields().len()).collect());
        let parts = self.name.parts(state.config().target_partitions());
        // DataFusion would not collect a single part from several workers.
        let parts = if matches!(self.traces, Traces::Apart(_)) { parts.max(2) } else { parts };
        let scan = Scan::new(self.name, columns, Bounds::new(filters), parts, self.traces.clone())?;
        Ok(Arc::new(scan.with_chosen(self.chosen.clone())))
    }
}

/// A plan node that makes the rows of a table within bounds, with some of its columns.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) table: TableName,
    pub(crate) columns: Vec<usize>,
    pub(crate) bounds: Bounds,
    pub(crate) traces: Traces,
    pub(crate) chosen: Option<Arc<Chosen>>,
    properties: Arc<PlanProperties>,
}

impl Scan {
    pub(crate) fn new(
        table: TableName,
        columns: Vec<usize>,
        bounds: Bounds,
        parts: usize,
        traces: Traces,
    ) -> Result<Self> {
        let schema = Arc::new(table.schema().project(&columns)?);
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(parts),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Self { table, columns, bounds, traces, chosen: None, properties })
    }

    pub(crate) fn with_chosen(self, chosen: Option<Arc<Chosen>>) -> Self {
        Self { chosen, ..self }
    }

    pub(crate) fn with_traces(&self, traces: Traces) -> Self {
        Self { traces, ..self.clone() }
    }

    pub(crate) fn part_count(&self) -> usize {
        self.properties.partitioning.partition_count()
    }

    fn rows(&self, part: usize, sink: &mut Sink<'_>) -> Result<()> {
        if part >= self.table.parts(part + 1) {
            return Ok(());
        }
        // `Break` can be ignored, because the table has only one batch.
        let mut whole = |batch: RecordBatch| -> Result<()> {
            let _ = sink(batch.project(&self.columns)?);
            Ok(())
        };
        let open = match &self.traces {
            Traces::Here(open) => open,
            Traces::Task(task) if self.table == TableName::Listing => {
                return whole(listing::batch(task.worker(), &task.list()?)?);
            }
            Traces::Task(task) => task.open()?,
            Traces::Apart(_) | Traces::Share(..) => {
                return Err(DataFusionError::Plan(
                    "this part of the query is not for several workers: ask for sums of each table apart"
                        .to_owned(),
                ));
            }
        };
        match self.table {
            TableName::Rows(TraceTable::Figures(table)) => figures::rows(&open.traces, table, self, sink),
            TableName::Rows(table) => runs::rows(open, table, self, part, sink),
            TableName::Traces => whole(traces::batch(&open.traces)?),
            TableName::Heads | TableName::Parts => {
                parts::rows(&open.traces, &self.columns, self.chosen.as_deref(), sink)
            }
            TableName::Listing => Ok(()),
        }
    }
}

impl DisplayAs for Scan {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = TableName::known().find(|(_, table)| *table == self.table).map_or("?", |(name, _)| name);
        write!(out, "Scan: {name}")
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &str {
        "Scan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, part: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), WAITING);
        let (sender, scan) = (builder.tx(), self.clone());
        builder.spawn_blocking(move || {
            let mut late = None;
            scan.rows(part, &mut |batch| {
                if let Traces::Task(task) = &scan.traces
                    && let Err(error) = task.in_time()
                {
                    late = Some(error);
                    return ControlFlow::Break(());
                }
                match sender.blocking_send(Ok(batch)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            })?;
            late.map_or(Ok(()), Err)
        });
        Ok(builder.build())
    }
}
