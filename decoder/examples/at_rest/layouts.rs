//! Ways to lay chunks out before zstd.

use std::collections::HashMap;
use std::io::Error;

use warptrace_format::file::{ChunkRef, Compression, LaunchInfo, encode_accounts, encode_frame};
use warptrace_format::pool::WarpAccount;

/// Bytes of table and payloads in a frame.
const FRAME_BYTES: usize = 1 << 20;
/// The level that all layouts are compared at.
const LEVEL: i32 = 3;

pub(crate) struct Chunk {
    pub(crate) warp: u32,
    pub(crate) sequence: u32,
    pub(crate) events: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Launch {
    pub(crate) info: LaunchInfo,
    /// Sorted by warp, then by sequence.
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) accounts: Vec<WarpAccount>,
}

/// How the chunks of a frame become bytes.
pub(crate) type Layout = fn(&[Chunk]) -> Vec<u8>;

/// A table of 16 bytes a chunk and the payloads; columns of numbers and the payloads; each distinct payload
/// once, in the order of the chunks (what the library writes); each distinct payload once, sorted by length
/// and bytes.
pub(crate) const LAYOUTS: [Layout; 4] = [table, columns, distinct, sorted];

/// Bytes of all frames, compressed.
pub(crate) fn size(launches: &[Launch], layout: Layout) -> Result<usize, Error> {
    let mut total = 0;
    for launch in launches {
        let mut rest = &launch.chunks[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |chunk: &&Chunk| {
                bytes += 16 + chunk.payload.len();
                bytes <= FRAME_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (frame, after) = rest.split_at(count);
            total += zstd::bulk::compress(&layout(frame), LEVEL)?.len();
            rest = after;
        }
    }
    Ok(total)
}

fn table(chunks: &[Chunk]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in chunks {
        for word in [chunk.warp, chunk.sequence, chunk.events, chunk.payload.len() as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
    chunks.iter().for_each(|chunk| bytes.extend_from_slice(&chunk.payload));
    bytes
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Steps of the warp, and sequence numbers.
fn names(chunks: &[Chunk]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before = 0;
    for chunk in chunks {
        varint(&mut bytes, u64::from(chunk.warp - before));
        before = chunk.warp;
    }
    chunks.iter().for_each(|chunk| varint(&mut bytes, u64::from(chunk.sequence)));
    bytes
}

fn columns(chunks: &[Chunk]) -> Vec<u8> {
    let mut bytes = names(chunks);
    chunks.iter().for_each(|chunk| varint(&mut bytes, u64::from(chunk.events)));
    chunks.iter().for_each(|chunk| varint(&mut bytes, chunk.payload.len() as u64));
    chunks.iter().for_each(|chunk| bytes.extend_from_slice(&chunk.payload));
    bytes
}

fn distinct(chunks: &[Chunk]) -> Vec<u8> {
    let refs: Vec<_> = chunks
        .iter()
        .map(|&Chunk { warp, sequence, events, ref payload }| ChunkRef {
            track: 0,
            warp,
            sequence,
            events,
            payload,
        })
        .collect();
    let frame = encode_frame(0, 0, &refs, Compression::None).expect("chunks in order, within the limits");
    frame.section[64..].to_vec()
}

fn sorted(chunks: &[Chunk]) -> Vec<u8> {
    let mut payloads: Vec<&[u8]> = chunks.iter().map(|chunk| &chunk.payload[..]).collect();
    payloads.sort_unstable_by_key(|payload| (payload.len(), *payload));
    payloads.dedup();
    let numbers: HashMap<&[u8], u64> =
        (0..).zip(&payloads).map(|(number, payload)| (*payload, number)).collect();
    let mut bytes = names(chunks);
    let mut events = HashMap::new();
    for chunk in chunks {
        let before = events.insert(&chunk.payload, chunk.events).unwrap_or(0);
        varint(&mut bytes, numbers[&chunk.payload[..]]);
        let difference = i64::from(chunk.events) - i64::from(before);
        varint(&mut bytes, ((difference << 1) ^ (difference >> 63)) as u64);
    }
    payloads.iter().for_each(|payload| varint(&mut bytes, payload.len() as u64));
    payloads.iter().for_each(|payload| bytes.extend_from_slice(payload));
    bytes
}

/// Accounts of five fixed fields, compressed.
pub(crate) fn accounts_of_32_bytes(launches: &[Launch]) -> Result<usize, Error> {
    let mut total = 0;
    for launch in launches {
        let mut bytes = Vec::new();
        for account in &launch.accounts {
            for long in [account.attempted, account.recorded, account.lost] {
                bytes.extend_from_slice(&long.to_le_bytes());
            }
            bytes.extend_from_slice(&account.chunks.to_le_bytes());
            bytes.extend_from_slice(&account.finished.to_le_bytes());
        }
        total += zstd::bulk::compress(&bytes, LEVEL)?.len();
    }
    Ok(total)
}

/// Accounts as the library writes them, compressed, without the fixed part.
pub(crate) fn accounts(launches: &[Launch]) -> Result<usize, Error> {
    let mut total = 0;
    for launch in launches {
        for part in launch.accounts.chunks(1 << 16) {
            let body = encode_accounts(0, 0, 0, part, Compression::Zstd(LEVEL)).map_err(Error::other)?;
            total += body.len() - 24;
        }
    }
    Ok(total)
}
