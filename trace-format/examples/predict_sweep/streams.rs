//! Event streams from files.

use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use warptrace_format::Event;

/// The streams of one program.
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) streams: Vec<Vec<Event>>,
}

impl Input {
    pub(crate) fn events(&self) -> usize {
        self.streams.iter().map(Vec::len).sum()
    }
}

/// What `record_streams` left in `folder`, one long N-body warp, and the BFS trace if it is there.
pub(crate) fn all(folder: &Path) -> Result<Vec<Input>, Error> {
    let mut inputs = vec![Input { name: "nbody-16k".into(), streams: vec![nbody(16_384)] }];
    for name in ["nbody", "fractal", "mis-road", "mis-rmat", "mst-road", "mst-rmat", "dmr-633", "dmr-10000"] {
        let bytes = std::fs::read(folder.join(format!("{name}.streams")))?;
        inputs.push(Input { name: name.into(), streams: split(&bytes)? });
    }
    let real = std::env::var_os("WARPTRACE_INPUTS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/inputs")),
        PathBuf::from,
    );
    if let Ok(packed) = std::fs::read(real.join("traces/bfs_warp_streams.bin.gz")) {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes)?;
        inputs.push(Input { name: "bfs".into(), streams: split(&bytes)? });
    }
    Ok(inputs)
}

/// A warp of the force kernel.
fn nbody(bodies: usize) -> Vec<Event> {
    let mut events = vec![Event { location: 3, mask: u32::MAX }; bodies + 2];
    events[0].location = 1;
    events[bodies + 1].location = 4;
    events
}

/// The number of streams, then for each its bytes and its events.
fn split(bytes: &[u8]) -> Result<Vec<Vec<Event>>, Error> {
    let mut rest = bytes;
    let word = |from: &mut &[u8]| {
        let (word, after) = from
            .split_first_chunk()
            .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "a number is missing"))?;
        *from = after;
        Ok::<_, Error>(u32::from_le_bytes(*word) as usize)
    };
    let count = word(&mut rest)?;
    let mut streams = Vec::new();
    for _ in 0..count {
        let length = word(&mut rest)?;
        let (stream, after) = rest
            .split_at_checked(length)
            .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "a stream is shorter than it says"))?;
        streams.push(stream.as_chunks().0.iter().map(|event| Event::from_cut(*event)).collect());
        rest = after;
    }
    Ok(streams)
}
