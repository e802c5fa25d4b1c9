//! The PTX of the packing kernel, interpreted in several orders of its threads, makes the host's tiles.

use warptrace_device::KernelCall;
use warptrace_encode::{PackJob, pack_call, place_call};
use warptrace_format::chunk::ChunkHeader;
use warptrace_format::data::native::WarpRecorder;
use warptrace_format::file::data::{DataChunk, Tile};
use warptrace_ptx::interpret::{Launch, Memory, Program, Schedule, run};

const CHUNKS: u64 = 0x10_0000;
const CURSOR: u64 = 0x20_0000;
const TARGET: u64 = 0x30_0000;
const TABLE: u64 = 0x40_0000;
const STREAMS: u32 = 20;
const CHUNK_BYTES: usize = 2048;
const CAPACITY: usize = 1 << 16;

/// Returns the entries of a warp that reads some elements of a row, and others at random.
fn stream(warp: u32) -> Vec<u8> {
    let mut recorder = WarpRecorder::new(usize::MAX);
    for turn in 0..20 {
        let access = |lane: u32| (lane, 0x7f00_0000_0000 + u64::from(4096 * warp + 128 * turn + 4 * lane));
        recorder.access(1, 7 * turn, &(0..32).map(access).collect::<Vec<_>>());
        let mixed = |lane: u32| u64::from(turn << 5 | lane | warp << 10).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        recorder.access(9, 7 * turn + 3, &(0..5).map(|lane| (lane, mixed(lane))).collect::<Vec<_>>());
    }
    recorder.leave(1000, 0xffff);
    recorder.leave(1001, 0xffff_0000);
    recorder.finish().concat().into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Returns the encoder's kernels; `None`, with a message, if this build has none.
pub(crate) fn kernels() -> Option<Program> {
    let ptx = warptrace_host::encoder_ptx();
    if ptx.is_empty() {
        eprintln!("skipped: this build has no device code");
        return None;
    }
    Some(Program::parse(&ptx).expect("the compiler writes PTX"))
}

/// Interprets a kernel in a random order of its threads.
pub(crate) fn interpret(
    program: &Program,
    call: &KernelCall,
    shape: [u32; 2],
    seed: u64,
    memory: &mut Memory,
) {
    let launch = Launch {
        kernel: call.name(),
        grid: [shape[0], 1, 1],
        block: [shape[1], 1, 1],
        dynamic_shared: 0,
        parameters: call.arguments().to_vec(),
        clock: 0,
        multiprocessors: 1,
        max_steps: 1 << 30,
    };
    run(program, &launch, memory, &mut Schedule::random(seed)).expect("the kernel ends");
}

#[test]
fn the_interpreted_kernel_makes_the_tiles_of_the_host() {
    let Some(program) = kernels() else { return };
    let streams: Vec<Vec<u8>> = (0..3).map(stream).collect();
    let chunks: Vec<DataChunk<'_>> = (0..)
        .zip(&streams)
        .flat_map(|(warp, stream)| {
            let parts = (0..).zip(stream.chunks(CHUNK_BYTES - 32));
            parts.map(move |(sequence, entries)| DataChunk { warp, sequence, entries })
        })
        .collect();
    let mut pool = Vec::new();
    for chunk in &chunks {
        let words = [chunk.warp, chunk.sequence, 1, chunk.entries.len() as u32, 3, 1, 0, 5 + chunk.warp];
        pool.extend(words.into_iter().flat_map(u32::to_le_bytes));
        pool.extend_from_slice(chunk.entries);
        pool.resize(pool.len().next_multiple_of(CHUNK_BYTES), 0);
    }
    let tile = Tile::encode(&chunks);
    let mut expected = Vec::new();
    tile.write(&mut expected);
    let job = PackJob {
        chunks: CHUNKS,
        cursor: CURSOR,
        target: TARGET,
        table: TABLE,
        chunk_bytes: CHUNK_BYTES as u32,
        count: chunks.len() as u32,
        each: 256,
        data_track: 1,
        capacity: CAPACITY as u32,
        streams: STREAMS,
    };
    for (seed, threads) in [(1, 256), (2, 64), (3, 96), (4, 32), (5, 256), (6, 224)] {
        let mut memory = Memory::new();
        memory.declare(CHUNKS, pool.clone());
        memory.declare(CURSOR, vec![0; 4]);
        memory.declare(TARGET, vec![0; CAPACITY]);
        memory.declare(TABLE, vec![0xff; 4 * STREAMS as usize]);
        for call in [place_call(&job), pack_call(&job)] {
            interpret(&program, &call, [1, threads], seed, &mut memory);
        }
        let packed = memory.region(TARGET).unwrap();
        let header = ChunkHeader::read(packed).unwrap();
        assert_eq!((header.warp, header.launch, header.track), (chunks.len() as u32, 3, 1));
        assert_eq!(u64::from(header.events), tile.accesses);
        assert!(packed[32..][..header.length as usize] == expected, "{threads} threads");
    }
}
