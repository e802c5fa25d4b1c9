//! Traces in S3, in Google Cloud Storage and on web servers.
//!
//! ```text
//! open(url) ── Box<dyn ByteSource> ── TraceFile::from_source
//!                     │
//!              blocks in memory, at most CACHE_BYTES
//!                     │
//!              ranges, by the crate object_store
//! ```
//!
//! Only what is asked for is read, in whole blocks. All answers must be of one version of the object: an
//! object that changes while it is read is an error. A server that does not answer is waited for at most
//! [`PATIENCE`].
//!
//! Without the feature `client` the package knows what a URL is, and reads none.

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

/// Longest time that an answer is waited for, with all that is tried again.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of an object that are kept in memory at most, beside those of the reads under way.
pub const CACHE_BYTES: u64 = 32 << 20;

/// Opens the object at a URL `s3://bucket/key`, `gs://bucket/key`, `https://…` or `http://…`: reads its first
/// bytes, its length and its version.
///
/// # Errors
/// If there is no such object, access is denied, its server reads no ranges or does not answer, and
/// [`StoreError::LeftOut`] without the feature `client`.
pub fn open(url: &str) -> Result<Box<dyn ByteSource>, StoreError> {
    #[cfg(feature = "client")]
    return Ok(Box::new(object::Object::open(url)?));
    #[cfg(not(feature = "client"))]
    return Err(StoreError::LeftOut { url: shown_url(url) });
}

/// Returns the URLs of the objects in a folder `s3://bucket/folder/` or `gs://bucket/folder/`, not of those
/// in folders in it, in no order. A URL of the folder has a `/` at its end.
///
/// # Errors
/// As [`open`]; also if the folder is on a web server, which lists nothing, or has too many objects.
pub fn list(folder: &str) -> Result<Vec<String>, StoreError> {
    #[cfg(feature = "client")]
    return list::list(folder);
    #[cfg(not(feature = "client"))]
    return Err(StoreError::LeftOut { url: shown_url(folder) });
}
