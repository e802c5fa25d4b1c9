//! Encodes tiles of addresses and values.

use std::collections::BTreeMap;

use rayon::prelude::*;
use warptrace_format::file::LaunchInfo;

use super::Drained;
use super::encoding::Encoding;
use crate::packed::{self, Piece, Unpacked};
use crate::session::{LaunchReport, SessionError};
use crate::writer::{EncodedData, Tile};

type OfLaunches<'a> = Vec<(u32, Tile<'a>)>;

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
        let mut of_launches: BTreeMap<u32, Vec<Tile<'_>>> = BTreeMap::new();
        for found in pieces {
            for (launch, tile) in found? {
                counts.chunks += tile.chunks.len() as u64;
                of_launches.entry(launch).or_default().push(tile);
            }
        }
        Ok(self.encoder.encode_data(of_launches, |launch| infos.get(&launch).copied())?)
    }
}

/// Returns the tiles of addresses and values in a piece.
fn found<'a>(
    infos: &BTreeMap<u32, LaunchInfo>,
    piece: Piece<'a>,
    chunk_bytes: usize,
    track: u32,
) -> Result<OfLaunches<'a>, SessionError> {
    let all = packed::chunks(piece, chunk_bytes).filter(|chunk| chunk.header.track == track);
    let tile = |Unpacked { header, payload, .. }: Unpacked<'a>| {
        let launch = header.launch;
        let damaged = |warp, problem: &str| {
            let problem = problem.to_owned();
            SessionError::DamagedChunk { launch, warp, problem }
        };
        let info = infos.get(&launch).ok_or_else(|| damaged(0, "no such launch is being recorded"))?;
        let tile = payload.and_then(|payload| Tile::read(header.warp, header.events, payload));
        let mut tile = tile.ok_or_else(|| damaged(0, "it claims more bytes than a tile has"))?;
        for chunk in &mut tile.chunks {
            let warp = info.chosen_warp(chunk.warp);
            chunk.warp = warp.ok_or_else(|| damaged(chunk.warp, "no such warp of the launch records"))?;
        }
        Ok((launch, tile))
    };
    all.map(tile).collect()
}
