//! Section bodies in the metadata's encoding, postcard.

use serde::de::DeserializeOwned;

use super::error::FormatError;
use super::limits::MAX_METADATA_BYTES;

/// Decodes the body of a section at file offset `at`. `what` names its contents in errors. Rejects a body
/// over [`MAX_METADATA_BYTES`], bytes that do not decode, and bytes after them.
pub(super) fn decode_body<T: DeserializeOwned>(
    (section, what): (&'static str, &str),
    body: &[u8],
    at: u64,
) -> Result<T, FormatError> {
    let contents = |message: String| FormatError::Contents { section, offset: at, message };
    if body.len() as u64 > MAX_METADATA_BYTES {
        let found = body.len();
        return Err(contents(format!("{found} bytes of {what}, over the limit of {MAX_METADATA_BYTES}")));
    }
    let (value, rest) = postcard::take_from_bytes(body)
        .map_err(|error| contents(format!("the {what} cannot be decoded: {error}")))?;
    if !rest.is_empty() {
        return Err(contents(format!("{} bytes follow the last field", rest.len())));
    }
    Ok(value)
}
