//! The events of one warp.

use std::ops::ControlFlow;

use warptrace_format::Event;

use crate::all::Stop;
use crate::error::DecodeError;
use crate::feed::{EventReader, FrameFeed, Stream};
use crate::file::TraceFile;
use crate::items::{WarpItem, items_of};

/// The events of one warp on one track, in the [crate's order](crate#order).
///
/// Reads only the frames whose range of warps covers the warp, one at a time. Ends after the first error.
/// Holds at most one frame (16 MiB) and 8 MiB of events; a chunk of more than 2^20 events that is not `raw`
/// is decoded once for each 2^20 of them, so prefer [`TraceFile::decode_all`] for chunks that are so long.
#[derive(Debug)]
pub struct WarpEvents<'a> {
    reader: EventReader<FrameFeed<'a>>,
}

impl WarpEvents<'_> {
    /// Gives the warp's items to `sink`, in the order of its events, which are not expanded: all of them,
    /// whatever was iterated over before. They are not counted as work.
    ///
    /// # Errors
    /// A frame or a chunk cannot be decoded; items before the fault may have been given to `sink`.
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
    /// The events of the warp with linear index `warp` in launch `launch` on `track`: for whoever looks at one
    /// warp. [`WarpEvents::each_item`] gives its items instead.
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
