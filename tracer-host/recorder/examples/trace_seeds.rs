//! Writes small valid inputs for the fuzz targets into `fuzz/corpus/`, as seeds for the fuzzer.

use std::error::Error;
use std::fs;
use std::path::Path;

use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::raw::encode_event;
use warptrace_format::codec::{CodecSpec, EclParams, encode_stream};
use warptrace_format::file::{ChunkRef, Compression, DeviceInfo, EarlyEnd, LaunchInfo, Metadata};
use warptrace_host::writer::{TraceWriter, WriterOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let ecl = CodecSpec::Ecl(EclParams::new(6, 2, 6)?);
    let streams = streams();
    let mut written = 0;
    let mut write = |target: &str, name: &str, bytes: &[u8]| -> Result<(), Box<dyn Error>> {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)?;
        written += 1;
        Ok(())
    };
    for (name, tracks, compression, frame_bytes) in [
        ("raw.wtrc", vec![CodecSpec::Raw], Compression::None, 1 << 20),
        ("ecl.wtrc", vec![ecl], Compression::None, 1 << 20),
        ("dual.wtrc", vec![ecl, CodecSpec::Raw], Compression::None, 60),
        ("zstd.wtrc", vec![CodecSpec::Raw], Compression::Zstd(3), 1 << 20),
    ] {
        let bytes = record(tracks, compression, frame_bytes, &streams)?;
        write("open_file", name, &bytes)?;
        // The same file without its end.
        write("open_file", &format!("unfinished-{name}"), &bytes[..bytes.len() - 48])?;
    }
    for (number, events) in streams.iter().enumerate() {
        // Three bytes of parameters (see `codec::fuzzing`), one of capacity, then events in one of two forms.
        let cut: Vec<u8> = events.iter().flat_map(|event| event.cut()).collect();
        let wide: Vec<u8> = events.iter().flat_map(|&event| encode_event(event)).collect();
        for (form, bytes) in [("cut", cut), ("wide", wide)] {
            let input = [&[2, 1, 0, 30][..], &bytes].concat();
            write("codec_round_trip", &format!("{form}-{number}"), &input)?;
        }
        for spec in [CodecSpec::Raw, ecl] {
            for (events, payload) in encode_stream(spec, events, 4096) {
                let announced = u16::try_from(events)?.to_le_bytes();
                let input = [&[2, 1, 0][..], &announced, &payload].concat();
                write("codec_decode", &format!("{}-{number}", spec.name()), &input)?;
            }
        }
    }
    println!("{written} inputs in {}", corpus.display());
    Ok(())
}

/// A loop, a loop with branches, and single events.
fn streams() -> [Vec<Event>; 3] {
    let event = |location: u16, mask: u32| Event { location, mask };
    [
        (0..60).map(|_| event(1, u32::MAX)).collect(),
        (0..60u16).map(|number| event(1 + number % 3, u32::MAX >> (number % 4))).collect(),
        vec![event(1, 1), event(255, 0x8000_0000)],
    ]
}

fn record(
    tracks: Vec<CodecSpec>,
    compression: Compression,
    frame_bytes: u32,
    streams: &[Vec<Event>],
) -> Result<Vec<u8>, Box<dyn Error>> {
    let metadata = Metadata::new("seed", DeviceInfo::simulator("s"), tracks.clone())
        .with_kernel("k", "")
        .with_pool(512, 1);
    let metadata =
        [1, 2, 3, 255].into_iter().fold(metadata, |metadata, id| metadata.with_location(id, "l", ""));
    let options = WriterOptions::default().with_compression(compression).with_frame_bytes(frame_bytes);
    let mut writer = TraceWriter::create(Vec::new(), &metadata, options)?;
    writer.begin_launch(&LaunchInfo::new(0, 0, [3, 1, 1], [32, 1, 1], 0)?)?;
    for (track, &codec) in (0..).zip(&tracks) {
        let mut accounts = Vec::new();
        for (warp, events) in (0..).zip(streams) {
            let chunks = encode_stream(codec, events, metadata.payload_capacity());
            for (sequence, (events, payload)) in (0..).zip(&chunks) {
                writer.write_chunks(0, &[ChunkRef { track, warp, sequence, events: *events, payload }])?;
            }
            let recorded = events.len() as u64;
            let chunks = u32::try_from(chunks.len())?;
            accounts.push(WarpAccount { attempted: recorded, recorded, lost: 0, chunks, finished: 1 });
        }
        writer.end_launch(0, track, &accounts)?;
    }
    // Launches with two recorded warps, and with none.
    let chosen = ChosenWarps { first_block: 0, blocks: 2, block_step: 2, first_warp: 1, block_warps: 1 };
    for (number, chosen) in [(1, chosen), (2, ChosenWarps::NONE)] {
        writer.begin_launch(&LaunchInfo::new(number, 0, [3, 1, 1], [64, 1, 1], 0)?.with_chosen(chosen)?)?;
        let accounts = vec![WarpAccount { finished: 1, ..WarpAccount::default() }; chosen.count() as usize];
        for track in 0..tracks.len() as u32 {
            writer.end_launch(number, track, &accounts)?;
        }
    }
    writer.end_early(1, &EarlyEnd::failed("an illegal address"))?;
    Ok(writer.finish()?.0)
}
