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

/// How long a worker may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// A worker that has been silent for so long is asked for a sign of life,
const ALIVE: Duration = Duration::from_secs(5);
/// and has so long to give one.
const SIGN: Duration = Duration::from_secs(10);

/// Opens a connection to each worker once, and says the token with all that is asked.
#[derive(Clone, Default)]
pub(super) struct Channels {
    token: Option<HeaderValue>,
    /// Whether this is a worker that asks another one.
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

/// Returns the first cause of an error, which says most.
fn innermost(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Returns a worker's name as people write it.
pub(super) fn shown(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        _ => url.to_string(),
    }
}

/// Returns what is said with all that is asked of workers.
///
/// # Errors
/// The token has other characters than a header of HTTP takes, or spaces at an end, which would be lost on the way.
pub(super) fn header(token: &str) -> Result<HeaderValue, QueryError> {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).ok();
    let value = value.filter(|_| !token.is_empty() && token.trim() == token);
    let mut value =
        value.ok_or_else(|| QueryError::Failed("a token is a line of plain characters".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
