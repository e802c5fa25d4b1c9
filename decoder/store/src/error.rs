//! Why an object cannot be read.

use std::io;

/// An object that cannot be read. URLs are as [`shown_url`](crate::shown_url) returns them, and messages
/// have no secrets.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The text is no URL of an object.
    #[error("{url}: {what}")]
    Url {
        /// The text.
        url: String,
        /// What is wrong, and what to do.
        what: &'static str,
    },
    /// There is no object under that name.
    #[error("{url}: the server has no such object (404)")]
    NotFound {
        /// The object.
        url: String,
    },
    /// The server denies access, with the credentials that there are or without.
    #[error("{url}: the server denies access ({status}); {help}")]
    Denied {
        /// The object.
        url: String,
        /// 401 or 403.
        status: u16,
        /// Where credentials come from.
        help: &'static str,
    },
    /// The server sends whole objects only.
    #[error(
        "{url}: the server sends no ranges of it, only the whole (200 where 206 was asked for); download it and \
         name the file"
    )]
    NoRanges {
        /// The object.
        url: String,
    },
    /// The object is another one than when it was opened.
    #[error("{url}: the object changed while it was read; run the command again")]
    Changed {
        /// The object.
        url: String,
    },
    /// The server tells nothing by which two versions could be told apart.
    #[error(
        "{url}: the server tells neither an ETag nor when the object was modified, so that a change could not be \
         noticed; download it and name the file"
    )]
    NoVersion {
        /// The object.
        url: String,
    },
    /// No answer came in time.
    #[error("{url}: the server did not answer within {seconds} s")]
    TimedOut {
        /// The object.
        url: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The answer has another length than it must have.
    #[error("{url}: the server sent {found} bytes where it announced {expected}")]
    Short {
        /// The object.
        url: String,
        /// Bytes that came.
        found: u64,
        /// Bytes that were announced.
        expected: u64,
    },
    /// A folder has more objects than are listed.
    #[error("{url}: the folder has more than {limit} objects; name the traces")]
    TooMany {
        /// The folder.
        url: String,
        /// How many are listed.
        limit: usize,
    },
    /// This build reads no URLs.
    #[error(
        "{url}: this warptrace was built without object stores: install the Python wheel, or build it with \
         `cargo install --path cli/tool --features full`"
    )]
    LeftOut {
        /// The object.
        url: String,
    },
    /// Anything else that a server or the system says.
    #[error("{url}: {message}")]
    Other {
        /// The object.
        url: String,
        /// What was said, shortened.
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
