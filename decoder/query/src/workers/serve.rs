//! The worker: receives parts of queries.

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

/// Maximum size of a message: a part of a plan with the names of its files.
const MAX_MESSAGE: usize = 64 << 20;
/// Time without traffic after which a keep-alive is sent to the client.
const ALIVE: Duration = Duration::from_secs(20);

/// Configuration of a worker.
pub struct Listen {
    /// Address to listen on. Port 0 selects a free port.
    pub address: SocketAddr,
    /// Folders with traces. The worker reads no others.
    pub roots: Vec<PathBuf>,
    /// The token that clients must send. Required unless the address is a loopback address.
    pub token: Option<String>,
    /// Memory limit for sorting and grouping, in bytes, for all queries together.
    pub memory: usize,
    /// Time limit for one query.
    pub limit: Option<Duration>,
    /// Lists the traces that a pattern names.
    pub list: ListFiles,
}

impl std::fmt::Debug for Listen {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Listen").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Serves parts of queries until `stop` is used. Calls `ready` with the address. Fails if the address is in
/// use, or not a loopback address without a token; a root is not a folder; the system cannot create threads.
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
    // A plan may name any file that DataFusion can read. Without an object store, it reads no files.
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

/// Returns true if a request has the right token. Takes constant time for equal lengths.
fn allowed(expected: Option<&[u8]>, said: &MetadataMap) -> bool {
    let Some(expected) = expected else { return true };
    let said = said.get("authorization").map(|value| value.as_bytes()).unwrap_or_default();
    said.len() == expected.len() && said.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
