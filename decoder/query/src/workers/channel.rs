//! Connections to workers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::error::DataFusionError;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, WorkerChannel};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt;
use url::Url;

use crate::error::QueryError;

const CONNECT: Duration = Duration::from_secs(5);
/// Time without traffic after which a keep-alive is sent.
const ALIVE: Duration = Duration::from_secs(5);
/// Timeout for the reply to a keep-alive.
const SIGN: Duration = Duration::from_secs(10);

/// Opens one connection to each worker, and sends the token with each request.
#[derive(Clone, Default)]
pub(super) struct Channels {
    token: Option<HeaderValue>,
    /// Whether this is a worker that connects to another worker.
    is_worker: bool,
    open: Arc<Mutex<HashMap<Url, BoxCloneSyncChannel>>>,
}

impl Channels {
    pub(super) fn new(token: Option<HeaderValue>, is_worker: bool) -> Self {
        Self { token, is_worker, open: Arc::default() }
    }

    async fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel, DataFusionError> {
        if let Some(open) = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(url) {
            return Ok(open.clone());
        }
        let failed = |error: tonic::transport::Error| {
            let (name, cause) = (shown(url), innermost(&error));
            let text = match self.is_worker {
                false => format!("no connection to {name}: {cause}"),
                true => format!(
                    "a worker cannot reach another one by the name {name} ({cause}): workers of one query send each \
                     other rows, by the names that `--workers` gives them; ask one at a time, or name them as they \
                     see each other"
                ),
            };
            DataFusionError::External(text.into())
        };
        let endpoint = Channel::from_shared(url.to_string()).map_err(|error| {
            DataFusionError::External(format!("{} is no worker: {error}", shown(url)).into())
        })?;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(ALIVE)
            .keep_alive_timeout(SIGN)
            .keep_alive_while_idle(true);
        let channel = endpoint.connect().await.map_err(failed)?;
        let token = self.token.clone();
        let channel = channel.map_request(move |mut request: http::Request<Body>| {
            if let Some(token) = &token {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
            }
            request
        });
        let channel = BoxCloneSyncChannel::new(channel);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(url.clone(), channel.clone());
        Ok(channel)
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>, DataFusionError> {
        self.channel(url).await.map(create_worker_client)
    }
}

/// Returns the first cause of an error, which is the most specific.
fn innermost(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

pub(super) fn shown(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        _ => url.to_string(),
    }
}

/// Returns the authorization header for requests to workers. Fails if the token is empty, has characters that
/// are not allowed in an HTTP header, or has leading or trailing spaces, which HTTP would drop.
pub(super) fn header(token: &str) -> Result<HeaderValue, QueryError> {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).ok();
    let value = value.filter(|_| !token.is_empty() && token.trim() == token);
    let mut value =
        value.ok_or_else(|| QueryError::Failed("a token is a line of plain characters".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
