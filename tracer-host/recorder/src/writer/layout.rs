//! Layout of a file in frames.

use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::limits::MAX_FRAME_CHUNKS;
use warptrace_format::file::{
    AccountRun, CHUNK_ENTRY_BYTES, ChunkRef, Compression, RAW_LEVEL, encode_accounts, encode_frame_of,
};

use crate::threads;

/// Default size of a frame of encoded events, uncompressed: small, so that short traces give all cores work.
pub const DEFAULT_FRAME_BYTES: u32 = 256 << 10;
/// Minimum default frame size, for data of fewer than [`FRAMES`] frames. Smaller frames make a larger file.
const LEAST_FRAME_BYTES: u32 = 128 << 10;
/// Number of frames that gives all cores work.
const FRAMES: u64 = 16;
/// Default size of a frame of raw events: 1 MiB, because raw events repeat over longer distances.
pub const RAW_FRAME_BYTES: u32 = 1 << 20;
/// Layout options of a [`TraceWriter`](super::TraceWriter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterOptions {
    /// Compression of frames and accounts.
    pub compression: Compression,
    /// Size of table and payloads in bytes at which a frame is closed,
    /// 1..=[`MAX_FRAME_BYTES`](warptrace_format::file::limits::MAX_FRAME_BYTES). `None` selects
    /// [`RAW_FRAME_BYTES`] for a raw track, otherwise [`DEFAULT_FRAME_BYTES`], or less so that all cores have
    /// work. A frame holds at least one chunk, so it may exceed this by less than a chunk.
    pub frame_bytes: Option<u32>,
}

impl WriterOptions {
    /// Returns the options with this compression.
    #[must_use]
    pub const fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Returns the options with this frame size in bytes.
    #[must_use]
    pub const fn with_frame_bytes(mut self, frame_bytes: u32) -> Self {
        self.frame_bytes = Some(frame_bytes);
        self
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) compression: Compression,
    least_frame_bytes: u32,
    most_frame_bytes: u32,
}

impl Layout {
    pub(super) fn new(codec: CodecSpec, options: &WriterOptions) -> Self {
        let raw = codec == CodecSpec::Raw;
        let compression = match options.compression {
            Compression::Suited if raw => Compression::Zstd(RAW_LEVEL),
            compression => compression,
        };
        let (least, most) = match options.frame_bytes {
            Some(bytes) => (bytes, bytes),
            None if raw => (RAW_FRAME_BYTES, RAW_FRAME_BYTES),
            None => (LEAST_FRAME_BYTES, DEFAULT_FRAME_BYTES),
        };
        Self { compression, least_frame_bytes: least, most_frame_bytes: most }
    }

    /// Returns the maximum frame size for this many bytes in total.
    pub(super) fn frame_bytes(&self, bytes: u64) -> u64 {
        (bytes / FRAMES).clamp(self.least_frame_bytes.into(), self.most_frame_bytes.into())
    }

    /// Encodes a full frame and drops it, to allocate the memory for it.
    fn try_out(&self) {
        let count = self.most_frame_bytes / (CHUNK_ENTRY_BYTES + TRIED_PAYLOAD_BYTES) as u32;
        // All payloads differ, so that the table of payloads has its maximum size.
        let payloads: Vec<_> = (0..u128::from(count.clamp(1, MAX_FRAME_CHUNKS)))
            .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_le_bytes())
            .collect();
        let chunks = (0..).zip(&payloads).map(|(warp, payload): (u32, &[u8; TRIED_PAYLOAD_BYTES])| {
            ChunkRef { track: 0, warp, sequence: 0, events: 1, payload }
        });
        let chunks: Vec<_> = chunks.collect();
        // Errors recur when a real frame is encoded.
        let _ = encode_frame_of(0, 0, chunks.iter().copied(), self.compression);
    }
}

const TRIED_PAYLOAD_BYTES: usize = 16;

/// Starts the compression threads and makes each encode trial frames of these tracks, without waiting.
/// Otherwise the first frames of a short program would spend more time on this setup than on compression.
pub(crate) fn get_ready(tracks: &[CodecSpec], options: &WriterOptions) {
    let layouts: Vec<_> = tracks.iter().map(|codec| Layout::new(*codec, options)).collect();
    let accounts = options.compression;
    threads::on_each(move || {
        layouts.iter().for_each(Layout::try_out);
        let _ =
            encode_accounts(0, 0, 0, &[AccountRun { warps: 64, account: WarpAccount::default() }], accounts);
    });
}
