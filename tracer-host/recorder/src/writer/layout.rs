//! How a file is laid out in frames.

use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::limits::MAX_FRAME_CHUNKS;
use warptrace_format::file::{
    AccountRun, CHUNK_ENTRY_BYTES, ChunkRef, Compression, RAW_LEVEL, encode_accounts, encode_frame_of,
};

use crate::threads;

/// Size of a frame of encoded events before compression when nothing else is asked for: 256 KiB. A short
/// program's trace has some megabytes; in smaller frames, all cores have work.
pub const DEFAULT_FRAME_BYTES: u32 = 256 << 10;
/// Least size of the frames that what is too little for [`FRAMES`] of that size is cut into: smaller ones
/// make a larger file.
const LEAST_FRAME_BYTES: u32 = 128 << 10;
/// Frames that give all cores work.
const FRAMES: u64 = 16;
/// Size of a frame of raw events when nothing else is asked for: 1 MiB, for their repetitions reach further.
pub const RAW_FRAME_BYTES: u32 = 1 << 20;
/// How a [`TraceWriter`](super::TraceWriter) lays out its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterOptions {
    /// Compression of frames and accounting.
    pub compression: Compression,
    /// Bytes of table and payloads after which a frame is closed,
    /// 1..=[`MAX_FRAME_BYTES`](warptrace_format::file::limits::MAX_FRAME_BYTES); `None` for
    /// [`DEFAULT_FRAME_BYTES`], or less so that all cores have work, or [`RAW_FRAME_BYTES`], by the track's
    /// codec. A frame holds at least one chunk, so it may be larger than this by less than a chunk.
    pub frame_bytes: Option<u32>,
}

impl WriterOptions {
    /// The same with another compression.
    #[must_use]
    pub const fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The same with another size of frames, in bytes.
    #[must_use]
    pub const fn with_frame_bytes(mut self, frame_bytes: u32) -> Self {
        self.frame_bytes = Some(frame_bytes);
        self
    }
}

/// How the frames of a track are made.
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

    /// Most bytes of a frame if there are this many to be cut into frames.
    pub(super) fn frame_bytes(&self, bytes: u64) -> u64 {
        (bytes / FRAMES).clamp(self.least_frame_bytes.into(), self.most_frame_bytes.into())
    }

    /// Makes a full frame for nothing but the memory that it takes.
    fn try_out(&self) {
        let count = self.most_frame_bytes / (CHUNK_ENTRY_BYTES + TRIED_PAYLOAD_BYTES) as u32;
        // No two payloads alike, as the table of payloads is largest then.
        let payloads: Vec<_> = (0..u128::from(count.clamp(1, MAX_FRAME_CHUNKS)))
            .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_le_bytes())
            .collect();
        let chunks = (0..).zip(&payloads).map(|(warp, payload): (u32, &[u8; TRIED_PAYLOAD_BYTES])| {
            ChunkRef { track: 0, warp, sequence: 0, events: 1, payload }
        });
        let chunks: Vec<_> = chunks.collect();
        // Errors come again when they matter.
        let _ = encode_frame_of(0, 0, chunks.iter().copied(), self.compression);
    }
}

/// Bytes of the payloads in frames that are made to try out.
const TRIED_PAYLOAD_BYTES: usize = 16;

/// Has the threads that compress start, and each make what it compresses frames of these tracks with, and
/// does not wait for them: the first frames of a short program would take longer to get that than to be
/// compressed.
pub(crate) fn get_ready(tracks: &[CodecSpec], options: &WriterOptions) {
    let layouts: Vec<_> = tracks.iter().map(|codec| Layout::new(*codec, options)).collect();
    let accounts = options.compression;
    threads::on_each(move || {
        layouts.iter().for_each(Layout::try_out);
        // Errors come again when they matter.
        let _ =
            encode_accounts(0, 0, 0, &[AccountRun { warps: 64, account: WarpAccount::default() }], accounts);
    });
}
