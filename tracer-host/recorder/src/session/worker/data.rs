//! Encodes chunks of addresses and values.

use std::collections::BTreeMap;

use rayon::prelude::*;
use warptrace_format::file::LaunchInfo;

use super::Drained;
use super::encoding::Encoding;
use crate::packed::{self, Piece, Unpacked};
use crate::session::{LaunchReport, SessionError};
use crate::writer::{DataChunk, EncodedData};

type OfLaunches<'a> = Vec<(u32, DataChunk<'a>)>;

impl Encoding {
    pub(super) fn encode_data(
        &self,
        drained: &Drained,
        launches: &[LaunchInfo],
        counts: &mut LaunchReport,
    ) -> Result<EncodedData, SessionError> {
        let Some(track) = self.data_track else { return Ok(EncodedData::default()) };
        let infos: BTreeMap<u32, LaunchInfo> = launches.iter().map(|info| (info.number(), *info)).collect();
        let piece_bytes = packed::piece_bytes(&drained.packed);
        let pieces: Vec<_> = packed::pieces(&drained.packed, self.chunk_bytes, piece_bytes).collect();
        let find = |piece| found(&infos, piece, self.chunk_bytes, track);
        let pieces: Vec<_> = pieces.into_par_iter().map(find).collect();
        let mut of_launches: BTreeMap<u32, Vec<DataChunk<'_>>> = BTreeMap::new();
        for found in pieces {
            let found = found?;
            counts.chunks += found.len() as u64;
            for chunks in found.chunk_by(|a, b| a.0 == b.0) {
                let of_launch = of_launches.entry(chunks[0].0).or_default();
                of_launch.extend(chunks.iter().map(|(_, chunk)| *chunk));
            }
        }
        Ok(self.encoder.encode_data(of_launches, |launch| infos.get(&launch).copied())?)
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
