//! The events of one warp.

use warptrace_format::Event;

use crate::error::DecodeError;
use crate::feed::{EventReader, FrameFeed, Stream};
use crate::file::TraceFile;

/// The events of one warp on one track, in the [crate's order](crate#order).
///
/// Reads only the frames whose range of warps covers the warp, one at a time. Ends after the first error.
/// Holds at most one frame (16 MiB) and 8 MiB of events; a chunk of more than 2^20 events that is not `raw`
/// is decoded once for each 2^20 of them, so prefer [`TraceFile::decode_all`] for chunks that are so long.
#[derive(Debug)]
pub struct WarpEvents<'a> {
    reader: EventReader<FrameFeed<'a>>,
}

impl Iterator for WarpEvents<'_> {
    type Item = Result<Event, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reader.next_event()
    }
}

impl std::iter::FusedIterator for WarpEvents<'_> {}

impl TraceFile {
    /// The events of the warp with linear index `warp` in launch `launch` on `track`.
    ///
    /// # Errors
    /// The file has no such launch or track, or the launch no such warp. A warp without events is no error.
    /// What is wrong with frames and chunks comes out of the iterator.
    pub fn decode_warp(&self, launch: u32, warp: u32, track: u32) -> Result<WarpEvents<'_>, DecodeError> {
        let (info, codec) = self.resolve(launch, track)?;
        if warp >= info.warps() {
            return Err(DecodeError::UnknownWarp { launch, warp, warps: info.warps() });
        }
        let stream = Stream { launch, track, warp };
        Ok(WarpEvents { reader: EventReader::new(FrameFeed::new(self, stream), stream, codec) })
    }
}
