//! Compression of section contents.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, Strategy};

use crate::file::error::FormatError;
use crate::file::limits::MAX_ZSTD_WINDOW;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const SINGLE_SEGMENT: u8 = 1 << 5;

/// Compression of frames and accounting sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    None,
    /// zstd at this level; 0 is zstd's default.
    Zstd(i32),
    /// zstd with a fast search for short repetitions: encoded events have hardly any others. The result is
    /// smaller than with [`RAW_LEVEL`], in half the time. For raw events a writer uses [`RAW_LEVEL`].
    #[default]
    Suited,
}

/// zstd level for raw events, which have longer repetitions.
pub const RAW_LEVEL: i32 = 3;
/// Base-2 logarithm of the fast search's table size: the table and a part of a frame fit into a core's cache.
const SUITED_HASH_LOG: u32 = 15;
const SUITED_MATCH: u32 = 4;

/// Storage form of a section's bytes. Data that compression does not shrink is stored plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredAs {
    /// Uncompressed.
    Plain,
    /// One zstd frame (RFC 8878) and no other bytes.
    Zstd,
}

impl StoredAs {
    /// Returns the number in the file.
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Zstd => 1,
        }
    }

    /// Inverse of [`StoredAs::to_byte`].
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Plain),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

const MAX_COMPRESSORS: usize = 4;

thread_local! {
    /// To create a compressor costs more than to compress a small frame.
    static COMPRESSORS: RefCell<Vec<(Compression, Compressor<'static>)>> = const { RefCell::new(Vec::new()) };
}

fn compressor(compression: Compression) -> std::io::Result<Compressor<'static>> {
    match compression {
        Compression::Zstd(level) => Compressor::new(level),
        _ => {
            let mut compressor = Compressor::new(RAW_LEVEL)?;
            compressor.set_parameter(CParameter::Strategy(Strategy::ZSTD_fast))?;
            compressor.set_parameter(CParameter::HashLog(SUITED_HASH_LOG))?;
            compressor.set_parameter(CParameter::MinMatch(SUITED_MATCH))?;
            Ok(compressor)
        }
    }
}

/// Compresses `plain` into `packed`, which it clears. Returns `plain` if that saves nothing.
pub(in crate::file) fn compress<'b>(
    section: &'static str,
    plain: &'b [u8],
    compression: Compression,
    packed: &'b mut Vec<u8>,
) -> Result<(StoredAs, &'b [u8]), FormatError> {
    if compression == Compression::None {
        return Ok((StoredAs::Plain, plain));
    }
    packed.clear();
    packed.reserve(zstd::zstd_safe::compress_bound(plain.len()));
    COMPRESSORS
        .with_borrow_mut(|kept| {
            let at = match kept.iter().position(|(of, _)| *of == compression) {
                Some(at) => at,
                None => {
                    kept.truncate(MAX_COMPRESSORS - 1);
                    kept.push((compression, compressor(compression)?));
                    kept.len() - 1
                }
            };
            kept[at].1.compress_to_buffer(plain, packed)
        })
        .map_err(|error| FormatError::Compress { section, message: error.to_string() })?;
    Ok(if packed.len() < plain.len() { (StoredAs::Zstd, packed) } else { (StoredAs::Plain, plain) })
}

thread_local! {
    /// To create a decompressor costs more than to decompress a small frame.
    static DECOMPRESSOR: RefCell<Decompressor<'static>> =
        RefCell::new(Decompressor::new().expect("there is memory for a decompressor"));
}

/// Decompresses `stored`, at file offset `at`. Allocates at most `most` bytes, which the caller has checked.
pub(in crate::file) fn decompress(
    section: &'static str,
    stored_as: StoredAs,
    stored: &[u8],
    most: usize,
    at: u64,
) -> Result<Vec<u8>, FormatError> {
    let refused = |message| FormatError::Decompress { section, offset: at, message };
    match stored_as {
        StoredAs::Plain if stored.len() > most => {
            let (value, limit) = (stored.len() as u64, most as u64);
            Err(FormatError::TooLarge { section, field: "plain bytes", offset: at, value, limit })
        }
        StoredAs::Plain => Ok(stored.to_vec()),
        StoredAs::Zstd => {
            let window = window(stored).ok_or_else(|| refused("there is no zstd frame".to_owned()))?;
            if window > MAX_ZSTD_WINDOW {
                return Err(refused(format!(
                    "the zstd frame has a window of {window} bytes, over the format's limit of {MAX_ZSTD_WINDOW}"
                )));
            }
            let frame = zstd::zstd_safe::find_frame_compressed_size(stored)
                .map_err(|code| refused(zstd::zstd_safe::get_error_name(code).to_owned()))?;
            if frame != stored.len() {
                let more = stored.len().saturating_sub(frame);
                return Err(refused(format!(
                    "{more} bytes follow the zstd frame; there is one frame and nothing else"
                )));
            }
            let announced = zstd::zstd_safe::get_frame_content_size(stored).ok().flatten();
            let announced = announced.and_then(|bytes| usize::try_from(bytes).ok());
            let bytes = announced.map_or(most, |bytes| bytes.min(most));
            DECOMPRESSOR
                .with_borrow_mut(|decompressor| decompressor.decompress(stored, bytes))
                .map_err(|error| refused(error.to_string()))
        }
    }
}

/// Returns the window size of a zstd frame (RFC 8878, 3.1.1.1), if `stored` is one.
fn window(stored: &[u8]) -> Option<u64> {
    let (&descriptor, rest) = stored.strip_prefix(&ZSTD_MAGIC)?.split_first()?;
    if descriptor & SINGLE_SEGMENT != 0 {
        // The contents are the window, and have separate limits.
        return Some(0);
    }
    let &byte = rest.first()?;
    let base = 1_u64 << (10 + (byte >> 3));
    Some(base + base / 8 * u64::from(byte & 7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_zstd_frame_and_nothing_else() {
        let frame = zstd::bulk::compress(b"some bytes", 3).unwrap();
        let read = |stored: &[u8], most| decompress("FRAM", StoredAs::Zstd, stored, most, 40);
        assert_eq!(read(&frame, 10).unwrap(), b"some bytes");
        assert!(read(&frame, 9).is_err(), "more than announced");
        assert!(read(&frame[..frame.len() - 1], 10).is_err());
        assert!(read(&[], 10).is_err());
        for more in [&frame[..], &[0]] {
            let error = read(&[&frame, more].concat(), 100).unwrap_err().to_string();
            assert!(error.contains(&format!("{} bytes follow the zstd frame", more.len())), "{error}");
        }
    }

    #[test]
    fn a_window_has_a_limit() {
        // One block of three stored bytes, after the window byte.
        let frame = |window: u8| [&ZSTD_MAGIC[..], &[0, window], &[0x19, 0, 0], b"abc"].concat();
        let read = |frame: &[u8]| decompress("FRAM", StoredAs::Zstd, frame, 10, 40);
        assert_eq!(read(&frame((27 - 10) << 3)).unwrap(), b"abc");
        for window in [(27 - 10) << 3 | 1, (31 - 10) << 3, 0xff] {
            let error = read(&frame(window)).unwrap_err().to_string();
            assert!(error.contains("a window of"), "{error}");
        }
        assert!(read(&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]).is_err());
    }

    #[test]
    fn plain_bytes_have_the_same_bound() {
        let read = |most| decompress("ACCT", StoredAs::Plain, b"some bytes", most, 40);
        assert_eq!(read(10).unwrap(), b"some bytes");
        assert!(matches!(read(9), Err(FormatError::TooLarge { value: 10, limit: 9, .. })));
    }
}
