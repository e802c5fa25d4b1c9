//! Chunks of addresses and values on their way into the file.

use std::collections::BTreeMap;
use std::io::Write;

use super::{Drained, LEAST_PIECE_BYTES, Work};
use crate::packed::{self, Unpacked};
use crate::session::SessionError;
use crate::writer::DataChunk;

impl<W: Write + Send> Work<W> {
    /// Writes the chunks of addresses and values.
    pub(super) fn write_data(&mut self, drained: &Drained) -> Result<(), SessionError> {
        let Some(track) = self.data_track else { return Ok(()) };
        let chunk_bytes = self.chunk_bytes as usize;
        let mut chunks: BTreeMap<u32, Vec<DataChunk<'_>>> = BTreeMap::new();
        let pieces = packed::pieces(&drained.packed, chunk_bytes, LEAST_PIECE_BYTES);
        let all = pieces.flat_map(|piece| packed::chunks(piece, chunk_bytes));
        for Unpacked { header, payload, .. } in all.filter(|chunk| chunk.header.track == track) {
            let (launch, warp) = (header.launch, header.warp);
            let damaged = |problem: &str| {
                let problem = problem.to_owned();
                SessionError::DamagedChunk { launch, warp, problem }
            };
            let info =
                self.writer.launch(launch).ok_or_else(|| damaged("no such launch is being recorded"))?;
            let warp = info.chosen_warp(warp).ok_or_else(|| damaged("no such warp of the launch records"))?;
            let entries = payload.ok_or_else(|| damaged("it claims more bytes than a chunk has"))?;
            chunks.entry(launch).or_default().push(DataChunk { warp, sequence: header.sequence, entries });
            self.report.chunks += 1;
        }
        chunks.iter().try_for_each(|(launch, chunks)| Ok(self.writer.write_data(*launch, chunks)?))
    }
}
