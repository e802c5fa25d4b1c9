//! Traces that can be queried.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use futures::future::{Either, select};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use warptrace_decoder::TraceFile;
use warptrace_tables::{BATCH, Made};

use crate::error::QueryError;
use crate::message;
use crate::scan::{Open, SqlTable, TableName, Traces};
use crate::source::{FoundTrace, Named};
use crate::sums::SumEvents;
use crate::workers::Workers;

/// Maximum number of threads that decode for one query. Each holds a window of the trace.
pub const MAX_PARTITIONS: usize = 8;

/// Any number of traces in common tables.
pub struct Database {
    context: SessionContext,
    /// Set until the database is dropped.
    runtime: Option<Runtime>,
    made: Arc<Made>,
    traces: Traces,
    workers: Option<Workers>,
    stop: Stop,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Database").finish_non_exhaustive()
    }
}

/// The rows of a query's result, batch by batch.
pub struct Answer<'a> {
    database: &'a Database,
    stream: SendableRecordBatchStream,
}

/// Stops the queries of a database, or a worker, from another thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Makes a handle. Nothing is stopped yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }

    /// Stops all queries, including those that another thread waits for.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Database {
    /// Makes tables of traces, each with its text in the column `trace`. Sorting and grouping use at most
    /// `memory` bytes. Fails if the system cannot create threads or memory.
    pub fn new(traces: Vec<(String, TraceFile)>, memory: usize) -> Result<Self, QueryError> {
        let (config, environment) = surroundings(memory)?;
        let traces: Vec<Named> = traces.into_iter().map(|(name, trace)| Named::new(name, trace)).collect();
        let made = Arc::new(Made::default());
        let open = Open { traces: traces.into(), made: Arc::clone(&made) };
        let context = SessionContext::new_with_config_rt(config, environment);
        Self::with(context, &Traces::Here(Arc::new(open)), runtime()?, made, Stop::new())
    }

    /// Makes tables of the workers' traces that match the patterns: files, folders and patterns of names.
    /// Relative patterns start at the folders of each worker. Also returns the traces, sorted by name. Fails
    /// if a worker does not respond, requires another token, or has another version; a pattern matches no
    /// trace; a trace cannot be opened; the system cannot create threads; `stop` was used.
    pub fn of_workers(
        workers: Workers,
        patterns: &[String],
        memory: usize,
        stop: Stop,
    ) -> Result<(Self, Vec<FoundTrace>), QueryError> {
        let (config, environment) = surroundings(memory)?;
        let (session, runtime) = ((&config, &environment), runtime()?);
        let found = until_stopped(&runtime, &stop, workers.find(patterns, session))?;
        let (found, shares) = found.map_err(|error| QueryError::running(&error))?;
        let state = workers.session(&shares, session).map_err(|error| QueryError::running(&error))?;
        let context = SessionContext::new_with_state(state);
        let traces = Traces::Apart(Arc::new(shares));
        let mut database = Self::with(context, &traces, runtime, Arc::new(Made::default()), stop)?;
        database.workers = Some(workers);
        Ok((database, found))
    }

    fn with(
        context: SessionContext,
        traces: &Traces,
        runtime: Runtime,
        made: Arc<Made>,
        stop: Stop,
    ) -> Result<Self, QueryError> {
        for (text, name) in TableName::all() {
            let registered = context
                .register_table(text, Arc::new(SqlTable { name, traces: traces.clone(), chosen: None }));
            registered.map_err(|error| QueryError::running(&error))?;
        }
        context.add_optimizer_rule(Arc::new(SumEvents));
        Ok(Self { context, runtime: Some(runtime), made, traces: traces.clone(), workers: None, stop })
    }

    pub(crate) const fn traces(&self) -> &Traces {
        &self.traces
    }

    pub(crate) const fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Returns the number of rows of events, runs and sums made so far.
    pub fn made_rows(&self) -> u64 {
        self.made.rows.load(Ordering::Relaxed)
    }

    /// Returns the number of column values computed from masks so far.
    pub fn made_masks(&self) -> u64 {
        self.made.masks.load(Ordering::Relaxed)
    }

    /// Starts a query, which cannot change anything and reads no other files. Fails if the text is not SQL,
    /// or names something that does not exist.
    pub fn ask(&self, sql: &str) -> Result<Answer<'_>, QueryError> {
        let only_reads =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let stream = self.until_stopped(async {
            let frame = self.context.sql_with_options(sql, only_reads).await?;
            frame.execute_stream().await
        })?;
        let stream = match stream {
            Err(error) if message::is_from_elsewhere(&error) => return Err(self.failed(&error)),
            stream => stream.map_err(|error| QueryError::planning(&error))?,
        };
        Ok(Answer { database: self, stream })
    }

    /// Returns the error of a query that was started. If a worker no longer responds, returns that instead:
    /// the error may come from another worker that lost the connection and does not name it.
    pub(crate) fn failed(&self, error: &DataFusionError) -> QueryError {
        match self.workers.as_ref().map(|workers| self.until_stopped(workers.check())) {
            Some(Err(stopped)) => stopped,
            Some(Ok(Err(silent))) => QueryError::running(&silent),
            Some(Ok(Ok(()))) | None => QueryError::running(error),
        }
    }

    /// Returns a handle that stops the queries.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    pub(crate) fn until_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, QueryError> {
        let Some(runtime) = &self.runtime else { return Err(QueryError::Stopped) };
        until_stopped(runtime, &self.stop, work)
    }
}

fn until_stopped<T>(runtime: &Runtime, stop: &Stop, work: impl Future<Output = T>) -> Result<T, QueryError> {
    let mut stopped = stop.subscribe();
    runtime.block_on(async {
        let stop = pin!(stopped.wait_for(|is_stopped| *is_stopped));
        // If both are ready, the stop takes precedence.
        match select(stop, pin!(work)).await {
            Either::Left(_) => Err(QueryError::Stopped),
            Either::Right((done, _)) => Ok(done),
        }
    })
}

fn partitions() -> usize {
    rayon::current_num_threads().clamp(1, MAX_PARTITIONS)
}

fn surroundings(memory: usize) -> Result<(SessionConfig, Arc<RuntimeEnv>), QueryError> {
    let config = SessionConfig::new()
        .with_target_partitions(partitions())
        .with_batch_size(BATCH)
        .with_information_schema(true);
    let environment = RuntimeEnvBuilder::new().with_memory_limit(memory, 1.0).build_arc();
    Ok((config, environment.map_err(|error| QueryError::running(&error))?))
}

fn runtime() -> Result<Runtime, QueryError> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(partitions()).enable_all().build()?)
}

impl Drop for Database {
    fn drop(&mut self) {
        // Decoding threads end when their rows are not taken; do not wait for them.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Answer<'_> {
    /// Returns the columns of the result.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// Returns the next rows; `None` after the last. Fails if a trace is damaged, a value does not fit its
    /// type, or the query exceeds its memory limit.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        let next = self.database.until_stopped(self.stream.next())?;
        next.transpose().map_err(|error| self.database.failed(&error))
    }
}

impl std::fmt::Debug for Answer<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Answer").finish_non_exhaustive()
    }
}
