//! Encoding of batches, apart from the file: several batches can be encoded while one is written.

use rayon::prelude::*;
use warptrace_abi::log::TIME_SHIFT;
use warptrace_format::chunk::DeviceTimes;
use warptrace_format::file::limits::MAX_FRAME_CHUNKS;
use warptrace_format::file::{
    Compression, DeviceKind, EncodedFrame, FormatError, FrameTimes, LaunchInfo, Metadata, Tie,
    encode_frame_of,
};

use super::batch::{Batch, BatchChunk, Part, Payload, TrackChunks};
use super::cut::cut;
use super::ends::{EndPart, TrackEnd, cut_ends, encode_ends};
use super::layout::{Layout, WriterOptions};
use super::runs::Repeated;
use crate::session::Classes;

/// The properties of a file that encoding depends on.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    layouts: Vec<Layout>,
    pub(super) compression: Compression,
    /// Clock cycles per unit of time.
    step: u32,
    /// Maximum payload of a chunk in bytes.
    capacity: u32,
}

/// A batch before it is checked against the file and written.
#[derive(Debug)]
pub(crate) struct EncodedBatch<'b> {
    pub(super) tracks: Vec<TrackChunks<'b>>,
    /// Each frame with its length in bytes without the sections that follow in it.
    pub(super) frames: Result<Vec<(EncodedFrame, usize)>, FormatError>,
    /// Each section of accounts with its length in bytes without the spans that follow in it.
    pub(super) ends: Result<Vec<(EndPart<'b>, Vec<u8>, usize)>, FormatError>,
}

impl Encoder {
    pub(super) fn new(metadata: &Metadata, options: &WriterOptions) -> Self {
        let step = match metadata.device.kind {
            DeviceKind::Simulator => 1,
            _ => 1 << TIME_SHIFT,
        };
        let layouts = metadata.tracks.iter().map(|codec| Layout::new(*codec, options)).collect();
        Self { layouts, compression: options.compression, step, capacity: metadata.payload_capacity() }
    }

    /// Returns the number of event tracks of each launch.
    pub(super) fn tracks(&self) -> u32 {
        // One or two.
        self.layouts.len() as u32
    }

    /// Encodes the chunks and accounts of launches, whose numbers ascend. `find` finds the chunks, and
    /// `payload` returns the payload of a chunk. With `classes`, each stream gets the chunks of its class.
    /// `ordered` is memory that the result borrows; its old content is overwritten.
    pub(crate) fn encode<'b, 'p, E: Send>(
        &self,
        launches: &[LaunchInfo],
        find: impl FnOnce(&mut Batch) -> Result<(), E> + Send,
        payload: impl Fn(&BatchChunk) -> Payload<'p> + Sync,
        classes: Option<&Classes>,
        ends: &[TrackEnd<'b>],
        ordered: &'b mut Vec<BatchChunk>,
    ) -> Result<EncodedBatch<'b>, E> {
        let mut batch = Batch::new(launches, self.tracks(), self.capacity);
        let cut = cut_ends(ends, &batch, self.tracks());
        let payload = &payload;
        let chunks = move || {
            find(&mut batch)?;
            batch.order(ordered);
            let ordered: &'b [BatchChunk] = ordered;
            let tracks = batch.tracks(ordered, classes);
            let frames = self.frames(&tracks, payload);
            Ok((tracks, frames))
        };
        let (chunks, sections) = rayon::join(chunks, || encode_ends(&cut, self.compression));
        let (tracks, frames) = chunks?;
        let ends = sections.map(|sections| {
            cut.into_iter().zip(sections).map(|(part, (section, length))| (part, section, length)).collect()
        });
        Ok(EncodedBatch { tracks, frames, ends })
    }

    fn frames<'a, 'p>(
        &self,
        tracks: &'a [TrackChunks<'_>],
        payload: &(impl Fn(&BatchChunk) -> Payload<'p> + Sync),
    ) -> Result<Vec<(EncodedFrame, usize)>, FormatError> {
        let layout = |track: u32| &self.layouts[track as usize];
        let repeated = tracks.par_iter().filter_map(|track| track.runs.as_ref());
        let repeated = repeated
            .flat_map_iter(|part: &Repeated<'_>| part.cut(|bytes| layout(part.track).frame_bytes(bytes)))
            .map(|part| {
                let frame = part.encode(payload, layout(part.track).compression)?;
                let length = frame.section.len();
                Ok((frame, length))
            });
        let parts: Vec<_> = tracks.iter().filter_map(TrackChunks::part).collect();
        let cut = |part: &Part<'a>| {
            let most = |bytes| layout(part.track).frame_bytes(bytes);
            let frames = cut(part.chunks, most, MAX_FRAME_CHUNKS as usize);
            frames.into_iter().map(|chunks| part.with_chunks(chunks)).collect::<Vec<_>>()
        };
        let frames: Vec<Part<'a>> = parts.iter().flat_map(cut).collect();
        // Frames take long, so each is a separate task.
        let frames = frames.par_iter().with_max_len(1).map(|part| self.frame(part, payload));
        repeated.chain(frames).collect()
    }

    fn frame<'p>(
        &self,
        part: &Part<'_>,
        payload: &(impl Fn(&BatchChunk) -> Payload<'p> + Sync),
    ) -> Result<(EncodedFrame, usize), FormatError> {
        let compression = self.layouts[part.track as usize].compression;
        let chunks = part.chunks.iter().map(|found| part.chunk(found, payload(found)[0]));
        let mut frame = encode_frame_of(part.launch, part.track, chunks, compression)?;
        let length = frame.section.len();
        if part.chunks.iter().any(|found| found.times[0] != 0) {
            let times = part.chunks.iter().map(|found| DeviceTimes::new(found.times[0], payload(found)[1]));
            let tie = Tie::to_encoded(&frame.section);
            frame.section.extend(FrameTimes::encode_section(tie, times, self.step, compression)?);
        }
        Ok((frame, length))
    }
}
