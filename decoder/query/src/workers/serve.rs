//! The worker: listens for parts of queries.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion_distributed::{DistributedExt, Worker, WorkerQueryContext};
use tonic::metadata::MetadataMap;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Status};
use url::Url;

use super::VERSION;
use super::channel::{Channels, header};
use super::task::{Codec, ListFiles, Room};
use crate::error::QueryError;
use crate::{Stop, message};

/// Longest message that a worker takes: a part of a plan with the names of its files.
const MAX_MESSAGE: usize = 64 << 20;
/// A client that has been silent for so long is asked for a sign of life.
const ALIVE: Duration = Duration::from_secs(20);

/// What a worker does.
pub struct Listen {
    /// Where it listens; port 0: a free one.
    pub address: SocketAddr,
    /// Folders whose traces it reads, and no others.
    pub roots: Vec<PathBuf>,
    /// What clients have to know. Beyond this machine there has to be one.
    pub token: Option<String>,
    /// Bytes for sorting and grouping of all queries together.
    pub memory: usize,
    /// How long it works for a query at most.
    pub limit: Option<Duration>,
    /// Finds the traces that a pattern names.
    pub list: ListFiles,
}

impl std::fmt::Debug for Listen {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Listen").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Serves parts of queries until `stop` is asked for; tells `ready` where it listens.
///
/// # Errors
/// The address is taken, or not of this machine alone and there is no token; a root is not there; the system gives no
/// threads.
pub fn serve(listen: Listen, stop: &Stop, ready: impl FnOnce(SocketAddr)) -> Result<(), QueryError> {
    let Listen { address, roots, token, memory, limit, list } = listen;
    if token.is_none() && !address.ip().is_loopback() {
        return Err(QueryError::Failed(format!(
            "every program that reaches {address} could read the traces: give the worker a token (`--token-file`), or \
             have it listen on 127.0.0.1"
        )));
    }
    let true_path = |root: PathBuf| {
        let found = root.canonicalize();
        let found =
            found.map_err(|error| QueryError::Failed(format!("cannot read {}: {error}", root.display())))?;
        match found.is_dir() {
            true => Ok(found),
            false => {
                Err(QueryError::Failed(format!("{} is no folder: name folders with traces", root.display())))
            }
        }
    };
    let roots = roots.into_iter().map(true_path).collect::<Result<Vec<_>, _>>()?;
    let expected = token.as_deref().map(header).transpose()?;
    let environment = RuntimeEnvBuilder::new().with_memory_limit(memory, 1.0).build_arc();
    let environment = environment.map_err(|error| QueryError::running(&error))?;
    // A plan may name any file of any format that DataFusion knows: without a store, none of them is read.
    if let Ok(files) = Url::parse("file:///") {
        environment.deregister_object_store(&files).map_err(|error| QueryError::running(&error))?;
    }
    let (room, channels) = (Room { roots, limit, list }, Channels::new(expected.clone(), true));
    let session = move |context: WorkerQueryContext| {
        let codec = Codec { room: Some(room.clone()) };
        let builder = context.builder.with_distributed_user_codec(codec);
        let state = builder.with_distributed_channel_resolver(channels.clone()).build();
        async move { Ok(state) }
    };
    let worker = Worker::from_session_builder(session).with_runtime_env(environment).with_version(VERSION);
    let service = worker.into_worker_server().max_decoding_message_size(MAX_MESSAGE);
    let expected = expected.map(|value| value.as_bytes().to_vec());
    let check = move |request: Request<()>| match allowed(expected.as_deref(), request.metadata()) {
        true => Ok(request),
        false => Err(Status::unauthenticated(
            "it wants a token, and got another one or none: give it with `--token-file`",
        )),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut stopped = stop.subscribe();
    runtime.block_on(async move {
        let listening = tokio::net::TcpListener::bind(address).await;
        let listening =
            listening.map_err(|error| QueryError::Failed(format!("cannot listen on {address}: {error}")))?;
        ready(listening.local_addr()?);
        let server = Server::builder()
            .http2_keepalive_interval(Some(ALIVE))
            .add_service(InterceptedService::new(service, check))
            .serve_with_incoming(TcpIncoming::from(listening));
        tokio::select! {
            ended = server => ended.map_err(|error| QueryError::Failed(message::text(&error.to_string()))),
            _ = stopped.wait_for(|is_stopped| *is_stopped) => Ok(()),
        }
    })?;
    runtime.shutdown_background();
    Ok(())
}

/// Whether a request says the token. Takes as long for each wrong one of a length.
fn allowed(expected: Option<&[u8]>, said: &MetadataMap) -> bool {
    let Some(expected) = expected else { return true };
    let said = said.get("authorization").map(|value| value.as_bytes()).unwrap_or_default();
    said.len() == expected.len() && said.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
