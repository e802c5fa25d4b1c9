//! From the pool to the file, after a launch.

use std::io::Write;
use std::time::Instant;

use warptrace_format::chunk::{CHUNK_HEADER_BYTES, ChunkHeader};
use warptrace_format::file::LaunchInfo;
use warptrace_format::pool::WarpAccount;

use super::pool::Pool;
use super::{LaunchReport, SessionError};
use crate::Device;
use crate::writer::{ChunkRef, TraceWriter};

/// Host memory for chunks at a time: the drain needs this much however large the pool is.
const BATCH_BYTES: usize = 128 << 20;
/// Accounts at a time.
const BATCH_ACCOUNTS: usize = 1 << 16;

/// Copies the claimed chunks and writes them.
pub(super) fn chunks<W: Write>(
    device: &mut dyn Device,
    pool: &Pool,
    info: &LaunchInfo,
    writer: &mut TraceWriter<W>,
    report: &mut LaunchReport,
) -> Result<(), SessionError> {
    let mut claimed = [0; 4];
    device.read(pool.next_chunk.address, &mut claimed)?;
    let claimed = u32::from_le_bytes(claimed).min(pool.chunk_count);
    let chunk_bytes = pool.chunk_bytes as usize;
    let batch = BATCH_BYTES / chunk_bytes;
    let mut staging = vec![0; batch.min(claimed as usize) * chunk_bytes];
    let mut first = 0;
    while first < claimed {
        let count = (batch as u32).min(claimed - first);
        let bytes = &mut staging[..count as usize * chunk_bytes];
        let started = Instant::now();
        device.read(pool.chunks.address + u64::from(first) * u64::from(pool.chunk_bytes), bytes)?;
        report.copy += started.elapsed();

        let started = Instant::now();
        let chunks = bytes
            .chunks_exact(chunk_bytes)
            .zip(first..)
            .map(|(chunk, index)| chunk_at(chunk, index, info))
            // A chunk that a warp claimed and did not use.
            .filter(|chunk| !chunk.as_ref().is_ok_and(|chunk| chunk.events == 0 && chunk.payload.is_empty()))
            .collect::<Result<Vec<_>, _>>()?;
        report.chunks += chunks.len() as u64;
        report.payload_bytes += chunks
            .iter()
            .filter(|chunk| chunk.track == 0)
            .map(|chunk| chunk.payload.len() as u64)
            .sum::<u64>();
        writer.write_chunks(info.number(), &chunks)?;
        report.write += started.elapsed();
        first += count;
    }
    Ok(())
}

/// Reads a chunk's header and checks what it says: a kernel that writes out of bounds may have hit the pool.
fn chunk_at<'a>(bytes: &'a [u8], index: u32, info: &LaunchInfo) -> Result<ChunkRef<'a>, SessionError> {
    let launch = info.number();
    let damaged = |problem: String| SessionError::DamagedChunk { index, launch, problem };
    let header = ChunkHeader::read(bytes).ok_or_else(|| damaged("shorter than its header".to_owned()))?;
    if header.launch != launch {
        return Err(damaged(format!("it names launch {}", header.launch)));
    }
    if header.warp >= info.warps() {
        return Err(damaged(format!("it names warp {} of {}", header.warp, info.warps())));
    }
    let payload = bytes
        .get(CHUNK_HEADER_BYTES as usize..)
        .and_then(|payload| payload.get(..header.length as usize))
        .ok_or_else(|| damaged(format!("it claims {} bytes of payload", header.length)))?;
    Ok(ChunkRef {
        warp: header.warp,
        sequence: header.sequence,
        events: header.events,
        track: header.track,
        payload,
    })
}

/// Copies the warps' accounts and writes them.
pub(super) fn accounts<W: Write>(
    device: &mut dyn Device,
    pool: &Pool,
    info: &LaunchInfo,
    dual: bool,
    writer: &mut TraceWriter<W>,
    report: &mut LaunchReport,
) -> Result<(), SessionError> {
    let warps = info.warps() as usize;
    let base = pool.accounts.expect("prepared for this launch").address;
    for track in 0..=u32::from(dual) {
        let mut accounts = Vec::with_capacity(warps);
        let started = Instant::now();
        let mut bytes = vec![0; BATCH_ACCOUNTS.min(warps) * size_of::<WarpAccount>()];
        while accounts.len() < warps {
            let count = BATCH_ACCOUNTS.min(warps - accounts.len());
            let bytes = &mut bytes[..count * size_of::<WarpAccount>()];
            let index = u64::from(track) * warps as u64 + accounts.len() as u64;
            device.read(base + index * size_of::<WarpAccount>() as u64, bytes)?;
            accounts.extend(bytes.chunks_exact(size_of::<WarpAccount>()).map(account));
        }
        report.copy += started.elapsed();
        if track == 0 {
            for account in &accounts {
                report.attempted += account.attempted;
                report.recorded += account.recorded;
                report.lost += account.lost;
            }
        }
        let started = Instant::now();
        writer.end_launch(info.number(), track, &accounts)?;
        report.write += started.elapsed();
    }
    Ok(())
}

fn account(bytes: &[u8]) -> WarpAccount {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    WarpAccount {
        attempted: long(0),
        recorded: long(8),
        lost: long(16),
        chunks: word(24),
        finished: word(28),
    }
}
