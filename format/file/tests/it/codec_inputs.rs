//! Inputs from real programs: a BFS trace, and the stream of an N-body kernel.

use crate::common::{bfs_streams, cut};
use warptrace_format::codec::ecl::reference;
use warptrace_format::codec::{CodecSpec, Decoder, EclParams, encode_stream};
use warptrace_format::{Event, RAW_EVENT_BYTES};

/// Returns the size of the payloads.
fn encoded_bytes(spec: CodecSpec, stream: &[Event], capacity: u32) -> usize {
    let mut decoder = Decoder::new(spec);
    let mut decoded = Vec::with_capacity(stream.len());
    let mut bytes = 0;
    for (events, payload) in encode_stream(spec, stream, capacity) {
        // The trace holds predicated-off instructions: events with mask 0, and a location 0.
        decoder
            .decode_any(&payload, events, &mut |event| decoded.push(event))
            .expect("what the encoder wrote decodes");
        bytes += payload.len();
    }
    assert_eq!(decoded, stream);
    bytes
}

#[test]
fn the_bfs_trace_comes_back() {
    let Some(streams) = bfs_streams() else { return };
    let raw: usize = streams.iter().map(|stream| stream.len() * RAW_EVENT_BYTES as usize).sum();
    assert_eq!((streams.len(), raw), (128, 797_545));
    // The last column is 100 times the ratio, rounded down, from a model of the algorithm in another
    // language. The model predates this code. Chunks are unlimited, and the window holds each whole stream.
    for (hash_bits, shift, ratio) in [(14, 7, 206), (14, 2, 201), (10, 2, 183), (10, 6, 207), (9, 2, 183)] {
        let params = EclParams::new(hash_bits, shift, 20).unwrap();
        let spec = CodecSpec::Ecl(params);
        let bytes: usize = streams.iter().map(|stream| encoded_bytes(spec, stream, u32::MAX)).sum();
        assert_eq!(raw * 100 / bytes, ratio, "L = {hash_bits}, s = {shift}: {bytes} bytes");
    }
    let params = EclParams::DEFAULT;
    for spec in [CodecSpec::Raw, CodecSpec::Ecl(params)] {
        for stream in &streams {
            encoded_bytes(spec, stream, 4096 - 32);
        }
    }
    for stream in &streams {
        let expected = reference::rle_compress(&reference::lza2_compress(params, &cut(stream)));
        assert_eq!(
            encode_stream(CodecSpec::Ecl(params), stream, u32::MAX),
            [(stream.len() as u32, expected)]
        );
    }
}

#[test]
fn a_stream_like_n_bodys_reaches_the_predicted_ratio() {
    // 50,000 inner iterations with all lanes active: 250,000 bytes. The bytes are the model's for one warp.
    let stream = vec![Event { location: 1, mask: u32::MAX }; 50_000];
    for (hash_bits, shift, bytes) in
        [(14, 7, 2920), (14, 2, 597), (9, 2, 595), (8, 2, 594), (10, 2, 595), (10, 6, 2920)]
    {
        let params = EclParams::new(hash_bits, shift, 8).unwrap();
        assert_eq!(
            encoded_bytes(CodecSpec::Ecl(params), &stream, u32::MAX),
            bytes,
            "L = {hash_bits}, s = {shift}"
        );
    }
    // The thesis reports 385 for the whole program.
    let default = encoded_bytes(CodecSpec::Ecl(EclParams::DEFAULT), &stream, 4096 - 32);
    assert_eq!(250_000 / default, 420, "{default} bytes");
}
