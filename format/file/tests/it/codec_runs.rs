//! Compares runs of equal events, encoded in one step, with the same events one by one.

use crate::common::params;
use proptest::prelude::*;
use warptrace_format::codec::{
    CodecSpec, Decoder, EclParams, EclState, PredictParams, PredictState, RawState, encode_stream,
};
use warptrace_format::{Event, SliceMemory};

fn encode_runs(spec: CodecSpec, runs: &[(Event, u32)], capacity: u32) -> Vec<(u32, Vec<u8>)> {
    let mut work = vec![0; spec.work_bytes() as usize];
    let mut work = SliceMemory(&mut work);
    let mut out = vec![0xaa; capacity as usize];
    let mut out = SliceMemory(&mut out);
    let mut chunks = Vec::new();
    macro_rules! encode {
        ($fresh:expr, $begin:expr, $run:expr, $finish:expr) => {{
            let mut state = $fresh;
            let mut events = 0;
            $begin(&mut state, &mut work);
            for (event, count) in runs {
                let mut remaining = *count;
                while remaining != 0 {
                    if !state.has_room(capacity) {
                        let length: u32 = $finish(&mut state, &mut work, &mut out);
                        chunks.push((events, out.0[..length as usize].to_vec()));
                        events = 0;
                        $begin(&mut state, &mut work);
                    }
                    let taken: u32 = $run(&mut state, &mut work, &mut out, *event, remaining);
                    assert!((1..=remaining).contains(&taken));
                    events += taken;
                    remaining -= taken;
                }
            }
            if events != 0 {
                let length: u32 = $finish(&mut state, &mut work, &mut out);
                chunks.push((events, out.0[..length as usize].to_vec()));
            }
        }};
    }
    type Slice<'a, 'b> = &'a mut SliceMemory<'b>;
    match spec {
        CodecSpec::Raw => encode!(
            RawState::new(),
            |state: &mut RawState, _: Slice<'_, '_>| state.begin_chunk(),
            |state: &mut RawState, _: Slice<'_, '_>, out: Slice<'_, '_>, event, remaining| {
                state.push_run(out, event, remaining, capacity)
            },
            |state: &mut RawState, _: Slice<'_, '_>, _: Slice<'_, '_>| state.finish_chunk()
        ),
        CodecSpec::Ecl(params) => encode!(
            EclState::new(),
            |state: &mut EclState, work: Slice<'_, '_>| state.begin_chunk(&params, work),
            |state: &mut EclState, work: Slice<'_, '_>, out: Slice<'_, '_>, event, remaining| {
                state.push_run(&params, work, out, event, remaining, capacity)
            },
            |state: &mut EclState, work: Slice<'_, '_>, out: Slice<'_, '_>| state
                .finish_chunk(&params, work, out)
        ),
        CodecSpec::Predict(params) => encode!(
            PredictState::new(),
            |state: &mut PredictState, work: Slice<'_, '_>| state.begin_chunk(&params, work),
            |state: &mut PredictState, work: Slice<'_, '_>, out: Slice<'_, '_>, event, remaining| {
                state.push_run(&params, work, out, event, remaining)
            },
            |state: &mut PredictState, work: Slice<'_, '_>, out: Slice<'_, '_>| state
                .finish_chunk(&params, work, out)
        ),
        _ => unreachable!("all codecs are named"),
    }
    chunks
}

fn expand(runs: &[(Event, u32)]) -> Vec<Event> {
    runs.iter().flat_map(|(event, count)| std::iter::repeat_n(*event, *count as usize)).collect()
}

fn decode(spec: CodecSpec, chunks: &[(u32, Vec<u8>)]) -> Vec<Event> {
    let mut decoder = Decoder::new(spec);
    let mut events = Vec::new();
    for (count, payload) in chunks {
        decoder.decode_into(payload, *count, &mut events).expect("what was encoded");
    }
    events
}

/// Runs like in kernels: few events, masks from full to single lanes, lengths from 1 to some thousands.
fn runs() -> impl Strategy<Value = Vec<(Event, u32)>> {
    let mask = prop_oneof![Just(u32::MAX), Just(0xffff), Just(0x0101_0101), 1..=u32::MAX];
    let event = (1..8_u16, mask).prop_map(|(location, mask)| Event { location, mask });
    let count = prop_oneof![4 => 1..6_u32, 4 => 1..120_u32, 1 => 1..3000_u32];
    (prop::collection::vec(event, 1..6), prop::collection::vec((any::<prop::sample::Index>(), count), 1..60))
        .prop_map(|(events, picks)| picks.iter().map(|(pick, count)| (*pick.get(&events), *count)).collect())
}

proptest! {
    #[test]
    fn ecl_runs_make_the_same_chunks(params in params(), runs in runs(), capacity in 16..600_u32) {
        let spec = CodecSpec::Ecl(params);
        prop_assert_eq!(encode_runs(spec, &runs, capacity), encode_stream(spec, &expand(&runs), capacity));
    }

    #[test]
    fn raw_runs_make_the_same_chunks(mut runs in runs(), capacity in 6..600_u32) {
        // Locations with two different bytes.
        runs.iter_mut().for_each(|(event, _)| event.location *= 0x1203);
        prop_assert_eq!(
            encode_runs(CodecSpec::Raw, &runs, capacity),
            encode_stream(CodecSpec::Raw, &expand(&runs), capacity)
        );
    }

    #[test]
    fn predict_runs_make_the_same_payload(slot_bits in 2..7_u8, runs in runs()) {
        let spec = CodecSpec::Predict(PredictParams::new(slot_bits).expect("in range"));
        prop_assert_eq!(encode_runs(spec, &runs, 1 << 20), encode_stream(spec, &expand(&runs), 1 << 20));
    }

    #[test]
    fn predict_runs_cut_into_chunks_come_back(runs in runs(), capacity in 16..120_u32) {
        let spec = CodecSpec::Predict(PredictParams::DEFAULT);
        prop_assert_eq!(decode(spec, &encode_runs(spec, &runs, capacity)), expand(&runs));
    }
}

#[test]
fn a_run_longer_than_a_chunk_may_announce_goes_on_in_the_next() {
    let event = Event { location: 3, mask: 0xff };
    let spec = CodecSpec::Predict(PredictParams::DEFAULT);
    let chunks = encode_runs(spec, &[(event, (1 << 24) + 5)], 480);
    let counts: Vec<u32> = chunks.iter().map(|(count, _)| *count).collect();
    assert_eq!(counts, [1 << 24, 5]);
}

#[test]
fn a_long_ecl_run_is_the_reference_stream() {
    // Like N-body's inner loop: one event fifty thousand times, then another.
    let runs = [
        (Event { location: 1, mask: u32::MAX }, 1),
        (Event { location: 3, mask: u32::MAX }, 50_000),
        (Event { location: 4, mask: u32::MAX }, 1),
        (Event { location: 3, mask: u32::MAX >> 1 }, 20_000),
    ];
    let spec = CodecSpec::Ecl(EclParams::DEFAULT);
    assert_eq!(encode_runs(spec, &runs, 4064), encode_stream(spec, &expand(&runs), 4064));
}
