//! The events of one warp.

use std::ops::ControlFlow;

use warptrace_format::Event;

use crate::all::Stop;
use crate::error::DecodeError;
use crate::feed::{EventReader, FrameFeed, Stream};
use crate::file::TraceFile;
use crate::items::{WarpItem, items_of};

/// The events of one warp on one track, in the [crate's order](crate#order), up to the first error. Reads the
/// frames whose range covers the warp, one at a time. Memory: one frame (16 MiB) and 8 MiB of events. A chunk
/// of more than 2^20 events that is not `raw` is decoded once for each 2^20: use [`TraceFile::decode_all`].
#[derive(Debug)]
pub struct WarpEvents<'a> {
    reader: EventReader<FrameFeed<'a>>,
}

impl WarpEvents<'_> {
    /// Passes all items of the warp to `sink`, not expanded, from the first on even if the iterator has
    /// advanced. Not charged to the work limit. Fails at the first frame or chunk that cannot be decoded.
    pub fn each_item(self, mut sink: impl FnMut(WarpItem<'_>)) -> Result<(), DecodeError> {
        let EventReader { feed, stream, mut decoder, .. } = self.reader;
        let mut sink = |item: WarpItem<'_>| {
            sink(item);
            ControlFlow::Continue(())
        };
        Stop::flow(items_of(feed.restarted().timed(), stream, &mut decoder, &mut sink).map(|_| ()))
            .map(|_| ())
    }
}

impl Iterator for WarpEvents<'_> {
    type Item = Result<Event, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reader.next_event()
    }
}

impl std::iter::FusedIterator for WarpEvents<'_> {}

impl TraceFile {
    /// Returns the events of a warp, by its linear index; [`WarpEvents::each_item`] returns its items. Fails
    /// if the file has no such launch, track or warp. The iterator returns the errors of frames and chunks.
    pub fn decode_warp(&self, launch: u32, warp: u32, track: u32) -> Result<WarpEvents<'_>, DecodeError> {
        let (info, codec) = self.resolve(launch, track)?;
        if warp >= info.warps() {
            return Err(DecodeError::UnknownWarp { launch, warp, warps: info.warps() });
        }
        let stream = Stream { launch, track, warp };
        Ok(WarpEvents { reader: EventReader::new(FrameFeed::new(self, stream), stream, codec) })
    }
}
