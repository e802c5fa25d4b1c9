//! Encoding of logs that another program has overwritten. It terminates, and accesses only its own memory.
//! `cargo xtask miri` runs this test under Miri, which detects each access outside of an allocation.

use crate::memory::{FIRST, Memory};
use warptrace_abi::log::LoggedLaunch;
use warptrace_encode::native::{Schedule, encode};
use warptrace_encode::{DEVICE_ECL, DEVICE_PREDICT};
use warptrace_format::codec::CodecSpec;

/// Number of seeds, each tested with all codecs. Miri is about 1,000 times slower.
const SEEDS: u32 = if cfg!(miri) { 2 } else { 500 };

/// Overwrites all of log memory with arbitrary numbers, or with small ones, which look like indices.
fn damage(memory: &mut Memory, seed: u32) {
    let mut random = seed.wrapping_mul(0x9e37_79b9) | 1;
    for word in memory.logs[..64].iter_mut().flat_map(|line| &mut line.0) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        *word = match (seed % 3, random % 4) {
            (0, _) => random,
            (1, _) | (2, 0) => random % 4096,
            _ => (1 << 16) | (random % 3),
        };
    }
}

#[test]
fn damaged_logs_lead_nowhere_else() {
    let mut encoded = 0;
    for seed in 0..SEEDS {
        for codec in [CodecSpec::Raw, CodecSpec::Ecl(DEVICE_ECL), CodecSpec::Predict(DEVICE_PREDICT)] {
            let mut memory = Memory::new();
            damage(&mut memory, seed);
            let before = memory.logs[..32].iter().map(|line| line.0).collect::<Vec<_>>();
            let (pool, mut launch) = (memory.pool(), memory.launch());
            if seed % 2 == 1 {
                launch = LoggedLaunch { ring: 1, segment_entries: FIRST / 2, ..launch };
            }
            // SAFETY: the memory has the given sizes and is initialized, and nothing else uses it.
            let claims = unsafe { encode(&pool, &[launch], codec, Schedule::Sequential) };
            let claims = claims.expect("the descriptors are correct");
            encoded += claims.chunks;
            let mut behind = memory.behind().into_iter().flatten();
            assert!(behind.all(|word| *word == 0), "seed {seed}, {codec:?}: written behind the memory");
            // The lanes' logs are only read: merged runs follow them, from entry 4,096 onward.
            let after = memory.logs[..32].iter().map(|line| line.0).collect::<Vec<_>>();
            assert!(before == after, "seed {seed}, {codec:?}: logs were written");
        }
    }
    assert!(encoded > 0, "none of these logs had a run");
}
