//! Compression of what a section stores.

use std::cell::RefCell;

use zstd::bulk::Compressor;

use crate::file::error::FormatError;

/// How a writer compresses frames and accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Bytes are stored as they are.
    None,
    /// zstd at this level; 0 is zstd's default.
    Zstd(i32),
}

impl Default for Compression {
    /// zstd at level 3.
    fn default() -> Self {
        Self::Zstd(3)
    }
}

/// How a section's bytes are stored. What does not shrink is stored plain, whatever the writer was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredAs {
    /// As they are.
    Plain,
    /// As zstd frames.
    Zstd,
}

impl StoredAs {
    /// The number in the file.
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Zstd => 1,
        }
    }

    /// The inverse of [`StoredAs::to_byte`].
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Plain),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

thread_local! {
    /// This thread's compressor and its level: a new one costs more than a small frame.
    static COMPRESSOR: RefCell<Option<(i32, Compressor<'static>)>> = const { RefCell::new(None) };
}

/// Compresses `plain`, or gives it back where that saves nothing.
pub(in crate::file) fn compress(
    section: &'static str,
    plain: Vec<u8>,
    compression: Compression,
) -> Result<(StoredAs, Vec<u8>), FormatError> {
    let Compression::Zstd(level) = compression else { return Ok((StoredAs::Plain, plain)) };
    let packed = COMPRESSOR
        .with_borrow_mut(|kept| {
            let (_, compressor) = match kept.take() {
                Some(same) if same.0 == level => kept.insert(same),
                _ => kept.insert((level, Compressor::new(level)?)),
            };
            compressor.compress(&plain)
        })
        .map_err(|error| FormatError::Compress { section, message: error.to_string() })?;
    Ok(if packed.len() < plain.len() { (StoredAs::Zstd, packed) } else { (StoredAs::Plain, plain) })
}

/// The bytes that `stored` holds, at most `most`, which the caller has checked against the format's limits; `at` is
/// the file offset of `stored`. Allocates no more than `most`.
pub(in crate::file) fn decompress(
    section: &'static str,
    stored_as: StoredAs,
    stored: &[u8],
    most: usize,
    at: u64,
) -> Result<Vec<u8>, FormatError> {
    match stored_as {
        StoredAs::Plain => Ok(stored.to_vec()),
        StoredAs::Zstd => zstd::bulk::decompress(stored, most).map_err(|error| FormatError::Decompress {
            section,
            offset: at,
            message: error.to_string(),
        }),
    }
}
