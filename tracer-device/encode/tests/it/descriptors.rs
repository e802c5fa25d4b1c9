//! Invalid or contradictory descriptors are refused before any memory is read or written.

use crate::memory::{FIRST, Memory, WARPS};
use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_encode::native::{EncodeError, Schedule, encode};
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};

fn encode_changed(
    codec: CodecSpec,
    change: impl Fn(&mut PoolDescriptor, &mut [LoggedLaunch; 2]) -> usize,
) -> Result<Claims, EncodeError> {
    let mut memory = Memory::new();
    let (mut pool, launch) = (memory.pool(), memory.launch());
    let mut launches = [launch, LoggedLaunch { first_stream: WARPS, ..launch }];
    let count = change(&mut pool, &mut launches);
    // SAFETY: accepted descriptors describe `memory`; all others are refused.
    unsafe { encode(&pool, &launches[..count], codec, Schedule::Sequential) }
}

#[test]
fn a_launch_without_runs_leaves_finished_accounts() {
    let mut memory = Memory::new();
    let (pool, launch) = (memory.pool(), memory.launch());
    // SAFETY: the memory has the given sizes, and nothing else uses it.
    let claims = unsafe { encode(&pool, &[launch], CodecSpec::Raw, Schedule::Parallel) };
    assert_eq!(claims.expect("correct descriptors"), Claims::default());
    for account in memory.accounts.chunks(4) {
        assert_eq!(account, [0, 0, 0, 1 << 32], "finished, and nothing else");
    }
    assert!(memory.behind().into_iter().flatten().all(|word| *word == 0));
}

#[test]
fn no_launch_is_no_work() {
    assert_eq!(encode_changed(CodecSpec::Raw, |_, _| 0).expect("nothing is wrong"), Claims::default());
}

#[test]
fn pools_that_cannot_be_are_refused_by_field() {
    let refused = |change: fn(&mut PoolDescriptor)| {
        let error = encode_changed(CodecSpec::Raw, |pool, _| {
            change(pool);
            1
        })
        .expect_err("a wrong pool");
        let EncodeError::Pool { field, .. } = error else { panic!("{error}") };
        assert!(error.to_string().contains(field), "{error}");
        field
    };
    assert_eq!(refused(|pool| pool.chunk_bytes = 96), "chunk_bytes");
    assert_eq!(refused(|pool| pool.chunk_bytes = 0), "chunk_bytes");
    assert_eq!(refused(|pool| pool.chunk_bytes = 768), "chunk_bytes");
    assert_eq!(refused(|pool| pool.chunk_bytes = 2 << 20), "chunk_bytes");
    assert_eq!(refused(|pool| pool.chunks = 0), "chunks");
    assert_eq!(refused(|pool| pool.chunks += 4), "chunks");
    assert_eq!(refused(|pool| pool.chunks = u64::MAX - 15), "chunks");
    assert_eq!(refused(|pool| pool.claims += 4), "claims");
    assert_eq!(refused(|pool| pool.logs += 8), "logs");
    assert_eq!(refused(|pool| pool.logs = 0), "logs");
    assert_eq!(refused(|pool| pool.merged_from = 0), "merged_from");
    assert_eq!(refused(|pool| pool.merged_from = pool.merged_end + 1), "merged_from");
}

#[test]
fn launches_that_cannot_be_are_refused_by_field() {
    let refused = |count: usize, change: fn(&mut [LoggedLaunch; 2])| {
        let error = encode_changed(CodecSpec::Raw, |_, launches| {
            change(launches);
            count
        })
        .expect_err("a wrong launch");
        let EncodeError::Launch { field, index, launch, .. } = error else { panic!("{error}") };
        assert_eq!((index, launch), (count - 1, 11));
        assert!(error.to_string().contains(field), "{error}");
        field
    };
    assert_eq!(refused(1, |launches| launches[0].tracks = 0), "tracks");
    assert_eq!(refused(1, |launches| launches[0].tracks = 3), "tracks");
    assert_eq!(refused(1, |launches| launches[0].warps = 0), "warps");
    assert_eq!(refused(1, |launches| launches[0].block_threads = 0), "block_threads");
    assert_eq!(refused(1, |launches| launches[0].first_stream = 1), "first_stream");
    assert_eq!(refused(2, |launches| launches[1].first_stream = 0), "first_stream");
    assert_eq!(refused(1, |launches| launches[0].first_entries = 0), "first_entries");
    assert_eq!(refused(1, |launches| launches[0].first_entries = u32::MAX), "first_entries");
    assert_eq!(refused(1, |launches| launches[0].segment_entries = 1), "segment_entries");
    assert_eq!(refused(1, |launches| launches[0].segment_entries = 4097), "segment_entries");
    assert_eq!(refused(1, |launches| launches[0].accounts += 4), "accounts");
    assert_eq!(refused(1, |launches| launches[0].ring = 3), "ring");
    assert_eq!(refused(1, |launches| launches[0].first_lanes = 2), "first_lanes");
    // Halves of another length, and rings that are not aligned to their length.
    assert_eq!(refused(1, |launches| launches[0].ring = 1), "first_entries");
    let unaligned = |launches: &mut [LoggedLaunch; 2]| {
        launches[0] = LoggedLaunch { ring: 1, segment_entries: FIRST / 2, ..launches[0] };
        launches[0].first_segments += FIRST / 2;
    };
    assert_eq!(refused(1, unaligned), "first_segments");
    // First segments that overlap the memory for merged runs, or overflow.
    assert_eq!(refused(1, |launches| launches[0].warps = u32::MAX), "first_segments");
    assert_eq!(refused(1, |launches| launches[0].first_segments = 4096 - 96 * 8 + 1), "first_segments");
    assert_eq!(refused(1, |launches| launches[0].first_entries = 64), "first_segments");
    assert_eq!(refused(2, |launches| launches[1].first_segments = u32::MAX), "first_segments");
}

#[test]
fn parameters_out_of_range_are_refused() {
    for codec in [
        CodecSpec::Ecl(EclParams { hash_bits: 30, ..EclParams::DEFAULT }),
        CodecSpec::Predict(PredictParams { slot_bits: 31 }),
    ] {
        let error = encode_changed(codec, |_, _| 1).expect_err("out of range");
        assert!(matches!(error, EncodeError::Codec(_)), "{error}");
    }
}
