//! The client: lists the workers' traces, and makes sessions that send plans to workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{UInt32Type, UInt64Type};
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{
    ChannelResolver, DistributedExt, GetWorkerInfoRequest, SessionStateBuilderExt, WorkerResolver,
};
use futures::future::try_join_all;
use url::Url;

use super::channel::{Channels, header, shown};
use super::task::Codec;
use super::{Share, Shares, VERSION};
use crate::error::QueryError;
use crate::listing::Listed;
use crate::scan::{SqlTable, TableName, Traces};
use crate::source::FoundTrace;

const ANSWER: Duration = Duration::from_secs(10);

/// The workers that have the traces.
pub struct Workers {
    urls: Vec<Url>,
    channels: Channels,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Workers").field("urls", &self.urls).finish_non_exhaustive()
    }
}

impl Workers {
    /// Takes the names of workers, each as `host:port`, and their token. Fails if a name is invalid or
    /// repeated, or the token is not a valid HTTP header value.
    pub fn new(names: &[String], token: Option<&str>) -> Result<Self, QueryError> {
        let failed = |text: String| Err(QueryError::Failed(text));
        let mut urls: Vec<Url> = Vec::new();
        for name in names {
            let name = name.trim();
            let url = Url::parse(&format!("http://{name}")).ok();
            let is_name = |url: &Url| url.path() == "/" && url.query().is_none() && url.username().is_empty();
            let Some(url) = url.filter(|url| url.port().is_some() && is_name(url)) else {
                return failed(format!("{name} is no worker: name its host and port, as in node1:7070"));
            };
            if urls.contains(&url) {
                return failed(format!("the worker {name} is named twice: its traces would count twice"));
            }
            urls.push(url);
        }
        Ok(Self { urls, channels: Channels::new(token.map(header).transpose()?, false) })
    }

    /// Returns an error if a worker does not respond, or has another version.
    pub(crate) async fn check(&self) -> Result<(), DataFusionError> {
        // In parallel, because several workers may be silent, each until its timeout.
        try_join_all(self.urls.iter().map(|url| self.check_one(url))).await.map(|_| ())
    }

    async fn check_one(&self, url: &Url) -> Result<(), DataFusionError> {
        let failed =
            |what: String| DataFusionError::External(format!("the worker {} {what}", shown(url)).into());
        let asked = async {
            let mut worker = self.channels.get_worker_client_for_url(url).await?;
            worker.get_worker_info(GetWorkerInfoRequest {}).await
        };
        let answer = tokio::time::timeout(ANSWER, asked).await;
        let answer = answer.map_err(|_| failed("does not answer: ask again without it".to_owned()))?;
        let answer = answer
            .map_err(|error| failed(format!("cannot be asked: {}", crate::message::message_of(&error))))?;
        if answer.version != VERSION {
            let version = warptrace_format::shown(&answer.version);
            return Err(failed(format!("is warptrace {version}, and this is {VERSION}: use one version")));
        }
        Ok(())
    }

    /// Finds the traces of all workers that match the patterns, and assigns each to one worker.
    pub(crate) async fn find(
        &self,
        patterns: &[String],
        session: (&SessionConfig, &Arc<RuntimeEnv>),
    ) -> Result<(Vec<FoundTrace>, Shares), DataFusionError> {
        self.check().await?;
        let files: Vec<(String, String)> =
            patterns.iter().map(|pattern| (pattern.clone(), pattern.clone())).collect();
        let share = |worker: &Url| Share { worker: worker.clone(), files: files.clone() };
        let mut asked: Shares = self.urls.iter().map(share).collect();
        pad(&mut asked);
        let context = SessionContext::new_with_state(self.session(&asked, session)?);
        let table =
            SqlTable { name: TableName::Listing, traces: Traces::Apart(Arc::new(asked)), chosen: None };
        context.register_table("listing", Arc::new(table))?;
        let batches = context.sql("SELECT * FROM listing").await?.collect().await?;
        self.given_out(patterns, batches.iter().flat_map(rows).collect())
    }

    fn given_out(
        &self,
        patterns: &[String],
        rows: Vec<(u32, Listed)>,
    ) -> Result<(Vec<FoundTrace>, Shares), DataFusionError> {
        let failed = |text: String| DataFusionError::External(text.into());
        for (number, pattern) in (0..).zip(patterns) {
            if !rows.iter().any(|(_, file)| file.pattern == number) {
                return Err(failed(format!("no worker has a trace that fits {pattern} under its folders")));
            }
        }
        /// Path, length and digest. They identify a trace that several workers have.
        type Key = (String, u64, u64);
        let mut files = BTreeMap::<Key, (Listed, BTreeMap<u32, String>)>::new();
        for (worker, file) in rows {
            let key = (file.path.clone(), file.length, file.digest);
            let (first, workers) = files.entry(key).or_insert_with(|| (file.clone(), BTreeMap::new()));
            if first.pattern != file.pattern {
                return Err(failed(format!("{} is named twice: name each trace once", file.path)));
            }
            workers.entry(worker).or_insert(file.true_path);
        }
        let mut paths: BTreeMap<String, usize> = BTreeMap::new();
        for (path, ..) in files.keys() {
            *paths.entry(path.clone()).or_default() += 1;
        }
        let mut shares: Shares =
            self.urls.iter().map(|url| Share { worker: url.clone(), files: Vec::new() }).collect();
        let (mut loads, mut found) = (vec![0_u64; shares.len()], Vec::new());
        for ((path, length, _), (file, mut paths_there)) in files {
            let known =
                paths_there.keys().map(|worker| *worker as usize).filter(|worker| *worker < shares.len());
            let Some(worker) = known.min_by_key(|worker| loads[*worker]) else {
                return Err(failed(format!("{path}: a worker answered in the name of another")));
            };
            let true_path = paths_there.remove(&(worker as u32)).unwrap_or_default();
            let name = match paths.get(&path) {
                Some(1) => path,
                _ => format!("{}:{true_path}", shown(&shares[worker].worker)),
            };
            let name = warptrace_format::shown(&name).to_string();
            loads[worker] = loads[worker].saturating_add(length.max(1));
            shares[worker].files.push((name.clone(), true_path));
            let Listed { pattern, is_whole, state, events, .. } = file;
            found.push(FoundTrace {
                name,
                pattern,
                is_whole,
                state: warptrace_format::shown(&state).to_string(),
                events,
            });
        }
        shares.retain(|share| !share.files.is_empty());
        pad(&mut shares);
        Ok((found, shares))
    }

    pub(crate) fn session(
        &self,
        shares: &Shares,
        (config, environment): (&SessionConfig, &Arc<RuntimeEnv>),
    ) -> Result<SessionState, DataFusionError> {
        let urls = Urls(shares.iter().map(|share| share.worker.clone()).collect());
        let builder = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config.clone())
            .with_runtime_env(Arc::clone(environment))
            .with_distributed_planner()
            .with_distributed_worker_resolver(urls)
            .with_distributed_channel_resolver(self.channels.clone())
            .with_distributed_user_codec(Codec { room: None })
            .with_distributed_desired_task_count_handler(super::desired)
            .with_distributed_scale_up_leaf_node_handler(super::shared_out)
            .with_distributed_route_tasks_handler(super::routed)
            // Isolated children of a union would run on workers without their traces.
            .with_distributed_children_isolator_unions(false)?
            .with_distributed_metrics_collection(false)?;
        Ok(builder.build())
    }
}

/// Adds an empty share if there is only one, because plans with one task are not sent.
fn pad(shares: &mut Shares) {
    if let [only] = &shares[..] {
        shares.push(Share { worker: only.worker.clone(), files: Vec::new() });
    }
}

fn rows(batch: &RecordBatch) -> Vec<(u32, Listed)> {
    let number = |column: usize| batch.column(column).as_primitive::<UInt64Type>();
    let small = |column: usize| batch.column(column).as_primitive::<UInt32Type>();
    let text = |column: usize, row: usize| batch.column(column).as_string::<i32>().value(row).to_owned();
    let row = |row: usize| {
        let file = Listed {
            pattern: small(1).value(row),
            path: text(2, row),
            true_path: text(3, row),
            length: number(4).value(row),
            digest: number(5).value(row),
            events: number(6).value(row),
            is_whole: batch.column(7).as_boolean().value(row),
            state: text(8, row),
        };
        (small(0).value(row), file)
    };
    (0..batch.num_rows()).map(row).collect()
}

struct Urls(Vec<Url>);

impl WorkerResolver for Urls {
    fn get_urls(&self) -> Result<Vec<Url>, DataFusionError> {
        Ok(self.0.clone())
    }
}
