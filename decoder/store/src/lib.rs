//! Reads traces from S3, Google Cloud Storage and web servers.
//!
//! ```text
//! open(url) ── Box<dyn ByteSource> ── TraceFile::from_source
//!                     │
//!              blocks in memory, at most CACHE_BYTES
//!                     │
//!              ranges, by the crate object_store
//! ```
//!
//! Only the requested ranges are read, in whole blocks. All responses must come from one version of the
//! object: a change during reading is an error. A request waits at most [`PATIENCE`] for a server.
//!
//! Without the feature `client`, the package recognizes URLs but does not read them.

#[cfg(feature = "client")]
mod cache;
#[cfg(feature = "client")]
mod client;
mod error;
#[cfg(feature = "client")]
mod list;
#[cfg(feature = "client")]
mod object;
mod url;

use std::time::Duration;

use warptrace_decoder::ByteSource;

pub use crate::error::StoreError;
pub use crate::url::{Scheme, is_url, scheme, shown_url};

/// Maximum time to wait for a response, including retries.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum bytes of an object kept in memory, in addition to reads in progress.
pub const CACHE_BYTES: u64 = 32 << 20;

/// Opens the object at a URL `s3://bucket/key`, `gs://bucket/key`, `https://…` or `http://…`. Reads its first
/// bytes, its length and its version. Fails if the object does not exist, access is denied, the server does
/// not support ranges, sends no version or does not respond; [`StoreError::LeftOut`] without the feature
/// `client`.
pub fn open(url: &str) -> Result<Box<dyn ByteSource>, StoreError> {
    #[cfg(feature = "client")]
    return Ok(Box::new(object::Object::open(url)?));
    #[cfg(not(feature = "client"))]
    return Err(StoreError::LeftOut { url: shown_url(url) });
}

/// Lists the URLs of the objects directly in a folder `s3://bucket/folder/` or `gs://bucket/folder/`, with
/// the last `/`, in no order. Fails as [`open`], on a web server, and for too many objects.
pub fn list(folder: &str) -> Result<Vec<String>, StoreError> {
    #[cfg(feature = "client")]
    return list::list(folder);
    #[cfg(not(feature = "client"))]
    return Err(StoreError::LeftOut { url: shown_url(folder) });
}
