//! Reading and decompression of files, within a limit.

use super::error::LoadProblem;
use super::options::Limits;
use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Memory limit of the xz decoder in bytes; level 9 needs 65 MiB.
#[cfg(feature = "evaluation")]
const XZ_MEMORY_BYTES: u64 = 256 << 20;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// Compression of a file, detected by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip with one or more members.
    Gzip,
    /// xz with one or more streams.
    Xz,
}

impl Compression {
    fn new(start: &[u8]) -> Self {
        if start.starts_with(&XZ_MAGIC) {
            Self::Xz
        } else if start.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else {
            Self::None
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
        })
    }
}

pub(super) fn read_file(path: &Path, limits: &Limits) -> Result<(Vec<u8>, Compression), LoadProblem> {
    let file = File::open(path).map_err(LoadProblem::Io)?;
    read_from(BufReader::with_capacity(1 << 16, file), limits)
}

pub(super) fn read_from(
    mut reader: impl BufRead,
    limits: &Limits,
) -> Result<(Vec<u8>, Compression), LoadProblem> {
    let compression = Compression::new(reader.fill_buf().map_err(LoadProblem::Io)?);
    let bytes = match compression {
        Compression::None => read_bounded(reader, compression, limits),
        Compression::Gzip => read_bounded(MultiGzDecoder::new(reader), compression, limits),
        Compression::Xz => {
            let source = |source| LoadProblem::Decompress { compression, decompressed: 0, source };
            read_bounded(xz_decoder(reader).map_err(source)?, compression, limits)
        }
    }?;
    if bytes.is_empty() {
        return Err(LoadProblem::Empty);
    }
    Ok((bytes, compression))
}

#[cfg(feature = "evaluation")]
fn xz_decoder(reader: impl BufRead) -> io::Result<impl Read> {
    use liblzma::stream::{CONCATENATED, Stream};
    let stream = Stream::new_stream_decoder(XZ_MEMORY_BYTES, CONCATENATED)?;
    Ok(liblzma::bufread::XzDecoder::new_stream(reader, stream))
}

#[cfg(not(feature = "evaluation"))]
fn xz_decoder(_: impl BufRead) -> io::Result<io::Empty> {
    Err(io::Error::other("warptrace-workloads is built without its feature `evaluation`"))
}

fn read_bounded(
    reader: impl Read,
    compression: Compression,
    limits: &Limits,
) -> Result<Vec<u8>, LoadProblem> {
    let mut bytes = Vec::new();
    // The extra byte distinguishes a file at the limit from a larger one.
    let outcome = reader.take(limits.bytes.saturating_add(1)).read_to_end(&mut bytes);
    if bytes.len() as u64 > limits.bytes {
        return Err(LoadProblem::TooLarge { compression, limit: limits.bytes });
    }
    match outcome {
        Ok(_) => Ok(bytes),
        Err(source) if compression == Compression::None || source.kind() == io::ErrorKind::OutOfMemory => {
            Err(LoadProblem::Io(source))
        }
        Err(source) => Err(LoadProblem::Decompress { compression, decompressed: bytes.len() as u64, source }),
    }
}

/// Returns a path's extension in lower case, without a compressor's extension; empty if it has none.
pub(super) fn inner_extension(path: &Path) -> String {
    let lower =
        |path: &Path| path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    match lower(path).as_str() {
        "gz" | "xz" => lower(&path.with_extension("")),
        other => other.to_owned(),
    }
}
