//! What launches leave behind: made up, or taken out of a trace.

use std::io;
use std::path::Path;

use warptrace_format::file::{
    Frame, LaunchInfo, SECTION_HEADER_BYTES, SectionHeader, SectionKind, decode_accounts,
};
use warptrace_format::pool::WarpAccount;

/// A chunk as a warp left it.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) warp: u32,
    pub(crate) sequence: u32,
    pub(crate) events: u32,
    pub(crate) payload: Vec<u8>,
}

/// A launch, and what its warps left on track 0.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) info: LaunchInfo,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) accounts: Vec<WarpAccount>,
}

/// Numbers that look random: splitmix64.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A byte of which small ones are likelier: 3.3 bits of information.
    fn byte(&mut self) -> u8 {
        let number = self.next();
        (number & 7) as u8 * ((number >> 8) % 5).min(3) as u8
    }
}

/// 131,072 warps that leave one small chunk each; every third is like another's.
pub(crate) fn many_warps() -> Vec<Launch> {
    let mut numbers = Numbers(1);
    let common: Vec<Vec<u8>> = (0..500).map(|_| payload(&mut numbers, 20)).collect();
    let chunks = (0..131_072).map(|warp| {
        let payload = match numbers.below(3) {
            0 => common[numbers.below(500) as usize].clone(),
            _ => {
                let length = 20 + numbers.below(70) as usize;
                payload(&mut numbers, length)
            }
        };
        Chunk { warp, sequence: 0, events: 100 + payload.len() as u32, payload }
    });
    vec![launch(0, [4096, 1, 1], 1024, chunks.collect())]
}

/// Two launches of 4,224 warps, with 4 MB in full chunks of 512 bytes.
pub(crate) fn full_chunks() -> Vec<Launch> {
    let mut numbers = Numbers(2);
    (0..2)
        .map(|number| {
            let chunks = (0..4224).map(|warp| {
                let payload = payload(&mut numbers, 480);
                Chunk { warp, sequence: 0, events: 900, payload }
            });
            launch(number, [528, 1, 1], 256, chunks.collect())
        })
        .collect()
}

/// 716 launches of 838 warps that leave two small chunks each.
pub(crate) fn many_launches() -> Vec<Launch> {
    let mut numbers = Numbers(3);
    (0..716)
        .map(|number| {
            let mut chunks = Vec::new();
            for warp in 0..838 {
                for sequence in 0..2 {
                    let length = 10 + numbers.below(60) as usize;
                    chunks.push(Chunk { warp, sequence, events: 50, payload: payload(&mut numbers, length) });
                }
            }
            launch(number, [419, 1, 1], 64, chunks)
        })
        .collect()
}

fn payload(numbers: &mut Numbers, length: usize) -> Vec<u8> {
    (0..length).map(|_| numbers.byte()).collect()
}

fn launch(number: u32, grid: [u32; 3], block: u32, chunks: Vec<Chunk>) -> Launch {
    let info = LaunchInfo::new(number, 0, grid, [block, 1, 1], 0).expect("a shape that can be");
    let mut accounts = vec![WarpAccount { finished: 1, ..WarpAccount::default() }; info.warps() as usize];
    for chunk in &chunks {
        let account = &mut accounts[chunk.warp as usize];
        account.recorded += u64::from(chunk.events);
        account.attempted = account.recorded;
        account.chunks += 1;
    }
    Launch { info, chunks, accounts }
}

/// The launches of a trace, as if they were all of one kernel.
pub(crate) fn read(path: &Path) -> io::Result<Vec<Launch>> {
    let file = std::fs::read(path)?;
    let mut launches: Vec<Launch> = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let section = SectionHeader::parse(&file[at..], at as u64).map_err(io::Error::other)?;
        let body = &file[at + SECTION_HEADER_BYTES..][..section.length as usize];
        match SectionKind::from_tag(section.tag) {
            Some(SectionKind::Launch) => {
                let found = LaunchInfo::decode(section.version, body, at as u64).map_err(io::Error::other)?;
                let (grid, block) = (found.grid(), found.block());
                let info = LaunchInfo::new(found.number(), 0, grid, block, 0).map_err(io::Error::other)?;
                let accounts = vec![WarpAccount::default(); info.warps() as usize];
                launches.push(Launch { info, chunks: Vec::new(), accounts });
            }
            Some(SectionKind::Frame) => {
                let frame = Frame::decode(body, at as u64).map_err(io::Error::other)?;
                if frame.header().track == 0 {
                    let chunks = frame.chunks().map(|chunk| Chunk {
                        warp: chunk.entry.warp,
                        sequence: chunk.entry.sequence,
                        events: chunk.entry.events,
                        payload: chunk.payload.to_vec(),
                    });
                    // Launches are numbered from 0.
                    launches[frame.header().launch as usize].chunks.extend(chunks);
                }
            }
            Some(SectionKind::Accounts) => {
                let (header, found) = decode_accounts(body, at as u64).map_err(io::Error::other)?;
                if header.track == 0 {
                    let accounts = &mut launches[header.launch as usize].accounts;
                    accounts[header.first_warp as usize..][..found.len()].copy_from_slice(&found);
                }
            }
            _ => {}
        }
        at += section.total_bytes() as usize;
    }
    Ok(launches)
}
