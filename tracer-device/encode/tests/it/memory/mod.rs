//! Memory as on a device: log memory, a pool of chunks, accounts.

use warptrace_abi::log::{FirstSegments, Fixed, LoggedLaunch, RESERVED_ENTRIES};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_format::account::WarpAccount;

pub(crate) const WARPS: u32 = 3;
pub(crate) const FIRST: u32 = 8;
const CHUNK_BYTES: u32 = 512;

/// Memory for one launch whose lanes have logged nothing.
pub(crate) struct Memory {
    /// Aligned as log memory requires.
    pub(crate) logs: Vec<Line>,
    chunks: Vec<Line>,
    pub(crate) accounts: Vec<u64>,
    claims: Vec<u64>,
}

#[derive(Clone, Copy)]
#[repr(C, align(2048))]
pub(crate) struct Line(pub(crate) [u32; 512]);

fn fixed() -> Fixed {
    Fixed::place(RESERVED_ENTRIES.into(), WARPS.into(), FirstSegments::of_lanes(FIRST))
}

impl Memory {
    pub(crate) fn new() -> Self {
        let mut memory = Self {
            logs: vec![Line([0; 512]); 64 + 1],
            chunks: vec![Line([0; 512]); 2 + 1],
            accounts: vec![0; WARPS as usize * size_of::<WarpAccount>() / 8],
            claims: vec![0; size_of::<Claims>() / 8],
        };
        // Links: all entries between the header and the link are free.
        for lane in 1..=32 * WARPS as usize {
            let word = 4 * (fixed().first_segments as usize + lane * FIRST as usize - 1) + 1;
            memory.logs[word / 512].0[word % 512] = FIRST - 2;
        }
        memory
    }

    pub(crate) fn behind(&self) -> [&[u32; 512]; 2] {
        [&self.logs[64].0, &self.chunks[2].0]
    }

    pub(crate) fn pool(&mut self) -> PoolDescriptor {
        PoolDescriptor {
            chunks: self.chunks.as_mut_ptr().expose_provenance() as u64,
            claims: self.claims.as_mut_ptr().expose_provenance() as u64,
            logs: self.logs.as_mut_ptr().expose_provenance() as u64,
            chunk_count: 8,
            chunk_bytes: CHUNK_BYTES,
            merged_from: 4096,
            merged_end: 8192,
            times: 1,
            data_track: 0,
            ..PoolDescriptor::default()
        }
    }

    pub(crate) fn launch(&mut self) -> LoggedLaunch {
        LoggedLaunch {
            accounts: self.accounts.as_mut_ptr().expose_provenance() as u64,
            first_lanes: 32,
            first_entries: FIRST,
            segment_entries: 16,
            warps: WARPS,
            block_threads: 96,
            launch: 11,
            first_stream: 0,
            tracks: 1,
            first_segments: fixed().first_segments as u32,
            ring: 0,
        }
    }
}
