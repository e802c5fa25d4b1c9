//! Traces that can be queried.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use futures::future::{Either, select};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use warptrace_decoder::TraceFile;
use warptrace_tables::{AccessTable, BATCH, Kind, Made, Table as FigureTable};

use crate::error::QueryError;
use crate::figures::Figures;
use crate::runs::{AccessRuns, Runs};
use crate::source::{Named, Rows, Table};
use crate::sums::SumEvents;

/// Most threads that decode for one query: each holds a window of the trace.
pub const MAX_PARTITIONS: usize = 8;

/// The tables of figures, in the order in which they are named to people.
pub(crate) const FIGURES: [(&str, FigureTable); 10] = [
    ("warps", FigureTable::Warps),
    ("locations", FigureTable::Locations),
    ("loops", FigureTable::Loops),
    ("launches", FigureTable::Launches),
    ("kernels", FigureTable::Kernels),
    ("lines", FigureTable::Lines),
    ("causes", FigureTable::Causes),
    ("edges", FigureTable::Edges),
    ("sites", FigureTable::Sites),
    ("access_losses", FigureTable::AccessLosses),
];

/// Any number of traces, whose rows stand in the same tables.
pub struct Database {
    context: SessionContext,
    /// There until the database is dropped.
    runtime: Option<Runtime>,
    made: Arc<Made>,
    stop: watch::Sender<bool>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Database").finish_non_exhaustive()
    }
}

/// The rows that answer a query, batch by batch.
pub struct Answer<'a> {
    database: &'a Database,
    stream: SendableRecordBatchStream,
}

/// Stops the queries of a database, from another thread.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Ends all queries, those that are waited for as well.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Database {
    /// Makes tables of traces, each with the text that the column `trace` has for it. Sorting and grouping
    /// take at most `memory` bytes.
    ///
    /// # Errors
    /// The system gives no threads, or no memory.
    pub fn new(traces: Vec<(String, TraceFile)>, memory: usize) -> Result<Self, QueryError> {
        let partitions = rayon::current_num_threads().clamp(1, MAX_PARTITIONS);
        let config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_batch_size(BATCH)
            .with_information_schema(true);
        let environment = RuntimeEnvBuilder::new().with_memory_limit(memory, 1.0).build_arc();
        let environment = environment.map_err(|error| QueryError::running(&error))?;
        let context = SessionContext::new_with_config_rt(config, environment);
        let traces: Vec<Named> = traces.into_iter().map(|(name, trace)| Named::new(name, trace)).collect();
        let traces: Arc<[Named]> = traces.into();
        let figures = |table| Figures { traces: Arc::clone(&traces), table };
        let made = Arc::new(Made::default());
        let runs = |kind| Runs { traces: Arc::clone(&traces), kind, made: Arc::clone(&made) };
        register(&context, "events", runs(Kind::Events))?;
        register(&context, "runs", runs(Kind::Runs))?;
        for (name, table) in FIGURES {
            register(&context, name, figures(table))?;
        }
        for (name, table) in AccessTable::ALL.map(|table| (table.name(), table)) {
            register(&context, name, AccessRuns { traces: Arc::clone(&traces), table })?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(partitions).build()?;
        context.add_optimizer_rule(Arc::new(SumEvents));
        Ok(Self { context, runtime: Some(runtime), made, stop: watch::Sender::new(false) })
    }

    /// How many rows of events, runs, and sums of events were made so far to answer.
    pub fn made_rows(&self) -> u64 {
        self.made.rows.load(Ordering::Relaxed)
    }

    /// How many values of columns were made of masks so far to answer.
    pub fn made_masks(&self) -> u64 {
        self.made.masks.load(Ordering::Relaxed)
    }

    /// Begins to answer a query. Only queries are answered: nothing can be made or changed, and no other file
    /// is read.
    ///
    /// # Errors
    /// The text is no SQL, or names what is not there.
    pub fn ask(&self, sql: &str) -> Result<Answer<'_>, QueryError> {
        let only_reads =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let stream = self.until_stopped(async {
            let frame = self.context.sql_with_options(sql, only_reads).await?;
            frame.execute_stream().await
        })?;
        let stream = stream.map_err(|error| QueryError::planning(&error))?;
        Ok(Answer { database: self, stream })
    }

    /// What stops the queries.
    pub fn stop(&self) -> Stop {
        Stop(self.stop.clone())
    }

    /// Waits for `work`, or for the end of all queries.
    fn until_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, QueryError> {
        let Some(runtime) = &self.runtime else { return Err(QueryError::Stopped) };
        let mut stopped = self.stop.subscribe();
        runtime.block_on(async {
            let stop = pin!(stopped.wait_for(|is_stopped| *is_stopped));
            // Of both, the end comes first.
            match select(stop, pin!(work)).await {
                Either::Left(_) => Err(QueryError::Stopped),
                Either::Right((done, _)) => Ok(done),
            }
        })
    }
}

fn register(context: &SessionContext, name: &str, rows: impl Rows) -> Result<(), QueryError> {
    let registered = context.register_table(name, Arc::new(Table(rows)));
    registered.map(|_| ()).map_err(|error| QueryError::running(&error))
}

impl Drop for Database {
    fn drop(&mut self) {
        // Threads that decode end when their rows are not taken; that is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Answer<'_> {
    /// The columns of the answer.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// A trace is damaged, a value does not fit its type, or more memory is needed than may be taken.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        let next = self.database.until_stopped(self.stream.next())?;
        next.transpose().map_err(|error| QueryError::running(&error))
    }
}

impl std::fmt::Debug for Answer<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Answer").finish_non_exhaustive()
    }
}
