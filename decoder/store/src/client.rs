//! Stores of URLs, and their errors.

use std::error::Error;
use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use tokio::runtime::{Builder, Runtime};
use warptrace_format::shown;

use crate::PATIENCE;
use crate::error::StoreError;
use crate::url::{Scheme, shown_url, split};

/// Timeout of one request, including connection and full response.
const REQUEST: Duration = Duration::from_secs(14);
const CONNECT: Duration = Duration::from_secs(5);
/// A request is retried only within this time after the first attempt.
const RETRY: Duration = Duration::from_secs(14);
const RETRIES: usize = 3;

const MESSAGE: usize = 400;

const S3_HELP: &str = "credentials come from AWS_ACCESS_KEY_ID and its like; for what anyone may read set \
                       AWS_SKIP_SIGNATURE=true";
const GS_HELP: &str = "credentials come from GOOGLE_SERVICE_ACCOUNT and its like; for what anyone may read set \
                       GOOGLE_SKIP_SIGNATURE=true";
const WEB_HELP: &str = "a signed URL may have expired";

/// A bucket, or a web server from which one object is read.
pub(crate) struct StorePlace {
    pub(crate) scheme: Scheme,
    pub(crate) shown: String,
    pub(crate) bucket: String,
    /// The key; empty for web servers, whose store URL includes it.
    pub(crate) key: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) listed: Option<Arc<dyn PaginatedListStore>>,
}

impl StorePlace {
    /// Makes the store of a URL. Sends no request.
    pub(crate) fn new(url: &str) -> Result<Self, StoreError> {
        let shown = shown_url(url);
        let wrong = |what| StoreError::Url { url: shown.clone(), what };
        let (scheme, rest) =
            split(url).ok_or_else(|| wrong("a URL begins with s3://, gs://, https:// or http://"))?;
        let failed = |error: object_store::Error| told(&shown, scheme, &error);
        if !scheme.has_buckets() {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            if host.is_empty() {
                return Err(wrong("the URL names no server"));
            }
            if host.contains('@') {
                return Err(wrong("a name and a password in a URL are not taken; use a signed URL"));
            }
            let client = options().with_allow_http(scheme == Scheme::Http);
            let builder = HttpBuilder::new().with_url(url).with_client_options(client).with_retry(retry());
            let store = Arc::new(builder.build().map_err(failed)?);
            let (bucket, key) = (String::new(), String::new());
            return Ok(Self { scheme, shown, bucket, key, store, listed: None });
        }
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(wrong("the URL names no bucket: s3://bucket/key, gs://bucket/key"));
        }
        let (store, listed): (Arc<dyn ObjectStore>, Arc<dyn PaginatedListStore>) = match scheme {
            Scheme::S3 => {
                // `with_client_options` discards the builder's setting from the environment.
                let allowed = std::env::var("AWS_ALLOW_HTTP").is_ok_and(|text| is_true(&text));
                let client = options().with_allow_http(allowed);
                let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                let builder = builder.with_client_options(client).with_retry(retry());
                let store = Arc::new(builder.build().map_err(failed)?);
                (store.clone(), store)
            }
            _ => {
                // The metadata server of Google Cloud machines uses plain HTTP.
                let client = options().with_allow_http(true);
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                let builder = builder.with_client_options(client).with_retry(retry());
                let store = Arc::new(builder.build().map_err(failed)?);
                (store.clone(), store)
            }
        };
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        Ok(Self { scheme, shown, bucket, key, store, listed: Some(listed) })
    }

    pub(crate) fn path(&self) -> Result<Path, StoreError> {
        let wrong = |what| StoreError::Url { url: self.shown.clone(), what };
        if self.scheme.has_buckets() && self.key.is_empty() {
            return Err(wrong("the URL names a bucket and no object in it"));
        }
        Path::parse(&self.key)
            .map_err(|_| wrong("the key has an empty part, `.`, `..` or a control character"))
    }

    pub(crate) async fn in_time<T>(
        &self,
        future: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(PATIENCE, future).await {
            Ok(done) => done.map_err(|error| told(&self.shown, self.scheme, &error)),
            Err(_) => Err(StoreError::TimedOut { url: self.shown.clone(), seconds: PATIENCE.as_secs() }),
        }
    }
}

fn is_true(text: &str) -> bool {
    ["1", "true", "on", "yes", "y"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn options() -> ClientOptions {
    ClientOptions::new().with_timeout(REQUEST).with_connect_timeout(CONNECT)
}

fn retry() -> RetryConfig {
    let (init_backoff, max_backoff) = (Duration::from_millis(100), Duration::from_secs(2));
    let backoff = BackoffConfig { init_backoff, max_backoff, base: 2.0 };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY }
}

fn told(url: &str, scheme: Scheme, error: &object_store::Error) -> StoreError {
    let url = url.to_owned();
    let help = match scheme {
        Scheme::S3 => S3_HELP,
        Scheme::Gs => GS_HELP,
        Scheme::Https | Scheme::Http => WEB_HELP,
    };
    match error {
        object_store::Error::NotFound { .. } => return StoreError::NotFound { url },
        object_store::Error::PermissionDenied { .. } => return StoreError::Denied { url, status: 403, help },
        object_store::Error::Unauthenticated { .. } => return StoreError::Denied { url, status: 401, help },
        object_store::Error::Precondition { .. } => return StoreError::Changed { url },
        object_store::Error::NotSupported { .. } => return StoreError::NoRanges { url },
        _ => {}
    }
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<HttpError>().is_some_and(|error| error.kind() == HttpErrorKind::Timeout) {
            return StoreError::TimedOut { url, seconds: REQUEST.as_secs() };
        }
        causes.push(error.to_string());
        cause = error.source();
    }
    // The error type of the store is not public.
    if causes.iter().any(|text| text == "Received non-partial response when range requested") {
        return StoreError::NoRanges { url };
    }
    // The innermost error alone may be too vague; the outermost repeats the URL.
    let message = match &causes[..] {
        [.., outer, last] if !outer.contains(last) => format!("{outer}: {last}"),
        [.., last] => last.clone(),
        [] => error.to_string(),
    };
    StoreError::Other { url, message: plain(&message) }
}

/// Returns a message on one line, shortened, without the queries of URLs.
fn plain(message: &str) -> String {
    let words = message.split_whitespace().map(|word| match word.find("://").and(word.find('?')) {
        Some(at) => format!("{}?...", &word[..at]),
        None => word.to_owned(),
    });
    let message = words.collect::<Vec<_>>().join(" ");
    let short: String = message.chars().take(MESSAGE).collect();
    let dots = if short.len() < message.len() { "..." } else { "" };
    format!("{}{dots}", shown(&short))
}

/// Returns the runtime for requests: one thread for all objects of the process.
pub(crate) fn runtime(url: &str) -> Result<&'static Runtime, StoreError> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(1).thread_name("store").enable_all().build()
    });
    made.as_ref().map_err(|error| StoreError::Other {
        url: url.to_owned(),
        message: format!("cannot start the thread that reads: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_short_and_have_no_secret() {
        let told =
            plain(&format!("no\nroute to (https://h/a?X-Signature=1) for\u{7} {}", "long ".repeat(200)));
        assert!(told.starts_with("no route to (https://h/a?... for"), "{told}");
        assert!(told.ends_with("...") && told.len() < 450 && !told.contains('\u{7}'), "{told}");
    }

    #[test]
    fn urls_that_name_no_object_are_refused() {
        let what = |url: &str| match StorePlace::new(url).and_then(|place| place.path()) {
            Err(StoreError::Url { what, .. }) => what,
            other => panic!("{url}: {:?}", other.err()),
        };
        assert!(what("s3:///k").contains("no bucket"));
        assert!(what("s3://b").contains("no object"));
        assert!(what("s3://b/a//b").contains("empty part"));
        assert!(what("https://").contains("no server"));
        assert!(what("https://me:word@h/k").contains("password"));
        assert!(what("ftp://h/k").contains("begins with"));
    }
}
