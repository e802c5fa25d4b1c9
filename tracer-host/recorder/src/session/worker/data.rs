//! Writes chunks of addresses and values.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use rayon::prelude::*;
use warptrace_format::file::LaunchInfo;

use super::{Drained, Work};
use crate::packed::{self, Piece, Unpacked};
use crate::session::SessionError;
use crate::writer::DataChunk;

type OfLaunches<'a> = Vec<(u32, DataChunk<'a>)>;

impl<W: Write + Send> Work<W> {
    pub(super) fn write_data(
        &mut self,
        drained: &Drained,
        launches: &BTreeSet<u32>,
    ) -> Result<(), SessionError> {
        let Some(track) = self.data_track else { return Ok(()) };
        let info = |launch: &u32| Some((*launch, self.writer.launch(*launch)?));
        let infos: BTreeMap<u32, LaunchInfo> = launches.iter().filter_map(info).collect();
        let chunk_bytes = self.chunk_bytes as usize;
        let pieces =
            packed::pieces(&drained.packed, chunk_bytes, packed::piece_bytes(&drained.packed)).enumerate();
        let find = |(number, piece)| (number, found(&infos, piece, chunk_bytes, track));
        let mut pieces: Vec<_> = pieces.par_bridge().map(find).collect();
        pieces.sort_unstable_by_key(|(number, _)| *number);
        let mut of_launches: BTreeMap<u32, Vec<DataChunk<'_>>> = BTreeMap::new();
        for (_, found) in pieces {
            let found = found?;
            self.report.chunks += found.len() as u64;
            for chunks in found.chunk_by(|a, b| a.0 == b.0) {
                let of_launch = of_launches.entry(chunks[0].0).or_default();
                of_launch.extend(chunks.iter().map(|(_, chunk)| *chunk));
            }
        }
        if of_launches.is_empty() {
            return Ok(());
        }
        Ok(self.writer.write_data_batch(of_launches)?)
    }
}

/// Returns the chunks of addresses and values in a piece.
fn found<'a>(
    infos: &BTreeMap<u32, LaunchInfo>,
    piece: Piece<'a>,
    chunk_bytes: usize,
    track: u32,
) -> Result<OfLaunches<'a>, SessionError> {
    let all = packed::chunks(piece, chunk_bytes).filter(|chunk| chunk.header.track == track);
    let chunk = |Unpacked { header, payload, .. }: Unpacked<'a>| {
        let (launch, warp) = (header.launch, header.warp);
        let damaged = |problem: &str| {
            let problem = problem.to_owned();
            SessionError::DamagedChunk { launch, warp, problem }
        };
        let info = infos.get(&launch).ok_or_else(|| damaged("no such launch is being recorded"))?;
        let warp = info.chosen_warp(warp).ok_or_else(|| damaged("no such warp of the launch records"))?;
        let entries = payload.ok_or_else(|| damaged("it claims more bytes than a chunk has"))?;
        Ok((launch, DataChunk { warp, sequence: header.sequence, entries }))
    };
    all.map(chunk).collect()
}
