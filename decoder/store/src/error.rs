//! Errors of object stores.

use std::io;

/// An object that cannot be read. URLs are as from [`shown_url`](crate::shown_url); messages have no secrets.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The text is not a URL of an object.
    #[error("{url}: {what}")]
    Url {
        /// The text.
        url: String,
        /// The problem, with advice.
        what: &'static str,
    },
    /// The object does not exist.
    #[error("{url}: the server has no such object (404)")]
    NotFound {
        /// The object.
        url: String,
    },
    /// The server denies access, with the given credentials or without credentials.
    #[error("{url}: the server denies access ({status}); {help}")]
    Denied {
        /// The object.
        url: String,
        /// 401 or 403.
        status: u16,
        /// Advice about credentials.
        help: &'static str,
    },
    /// The server does not support range requests.
    #[error(
        "{url}: the server sends no ranges of it, only the whole (200 where 206 was asked for); download it and \
         name the file"
    )]
    NoRanges {
        /// The object.
        url: String,
    },
    /// The object changed after it was opened.
    #[error("{url}: the object changed while it was read; run the command again")]
    Changed {
        /// The object.
        url: String,
    },
    /// The server sends no ETag or modification time, so changes cannot be detected.
    #[error(
        "{url}: the server tells neither an ETag nor when the object was modified, so that a change could not be \
         noticed; download it and name the file"
    )]
    NoVersion {
        /// The object.
        url: String,
    },
    /// The server did not respond in time.
    #[error("{url}: the server did not answer within {seconds} s")]
    TimedOut {
        /// The object.
        url: String,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// The response does not have the announced length.
    #[error("{url}: the server sent {found} bytes where it announced {expected}")]
    Short {
        /// The object.
        url: String,
        /// Bytes received.
        found: u64,
        /// Bytes announced.
        expected: u64,
    },
    /// A folder has too many objects to list.
    #[error("{url}: the folder has more than {limit} objects; name the traces")]
    TooMany {
        /// The folder.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// This build does not read URLs.
    #[error(
        "{url}: this warptrace was built without object stores: install the Python wheel, or build it with \
         `cargo install --path cli/tool --features full`"
    )]
    LeftOut {
        /// The object.
        url: String,
    },
    /// Any other error of a server or the system.
    #[error("{url}: {message}")]
    Other {
        /// The object.
        url: String,
        /// The message, shortened.
        message: String,
    },
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::NotFound { .. } => io::ErrorKind::NotFound,
            StoreError::Denied { .. } => io::ErrorKind::PermissionDenied,
            StoreError::TimedOut { .. } => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
