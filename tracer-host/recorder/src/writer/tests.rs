use crate::session::Representatives;
use std::io;

use warptrace_abi::log::LoggedLaunch;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{
    AccountRun, Accounts, Chunk, DeviceInfo, Frame, FrameHeader, SECTION_HEADER_BYTES, SectionHeader,
    StoredAs, check_body, check_preamble, decode_accounts, decode_index,
};

use super::*;

fn metadata() -> Metadata {
    Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw, CodecSpec::Raw])
        .with_kernel("k", "")
        .with_pool(512, 8)
}

fn launch(number: u32) -> LaunchInfo {
    LaunchInfo::new(number, 0, [2, 1, 1], [64, 1, 1], 0).unwrap()
}

const EVENT: [u8; 6] = [1, 0, 1, 0, 0, 0];

fn chunk(track: u32, warp: u32, sequence: u32) -> ChunkRef<'static> {
    ChunkRef { track, warp, sequence, events: 1, payload: &EVENT }
}

fn writer(options: WriterOptions) -> TraceWriter<Vec<u8>> {
    let mut writer = TraceWriter::create(Vec::new(), &metadata(), options).unwrap();
    writer.begin_launch(&launch(7)).unwrap();
    writer
}

const DONE: WarpAccount = WarpAccount { attempted: 1, recorded: 1, lost: 0, chunks: 1, finished: 1 };

fn sections(file: &[u8]) -> Vec<(u64, SectionHeader, &[u8])> {
    check_preamble(file).unwrap();
    let mut at = 24;
    let mut found = Vec::new();
    while at < file.len() {
        let header = SectionHeader::parse(&file[at..], at as u64).unwrap();
        let body = &file[at + SECTION_HEADER_BYTES..][..header.length as usize];
        let kind = header.kind(at as u64).unwrap().unwrap();
        check_body(kind, &header, body, at as u64).unwrap();
        found.push((at as u64, header, body));
        at += header.total_bytes() as usize;
    }
    found
}

#[test]
fn chunks_in_any_order_are_sorted_and_cut_into_frames() {
    // A frame holds two chunks of 16 + 6 bytes.
    let options = WriterOptions::default().with_frame_bytes(44).with_compression(Compression::None);
    let mut writer = writer(options);
    let mut given: Vec<_> = [(0, 3, 0), (1, 2, 0), (0, 0, 1), (0, 1, 0), (0, 0, 0), (0, 3, 1)]
        .map(|(t, w, s)| chunk(t, w, s))
        .into();
    writer.write_chunks(7, &given).unwrap();
    writer.end_launch(7, 0, &[DONE; 4]).unwrap();
    writer.end_launch(7, 1, &[DONE; 4]).unwrap();
    let (file, summary) = writer.finish().unwrap();
    assert_eq!(summary.bytes, file.len() as u64);
    assert_eq!((summary.frames, summary.chunks, summary.events, summary.payload_bytes), (4, 6, 6, 36));

    let sections = sections(&file);
    let tags: Vec<_> = sections.iter().map(|(_, header, _)| header.tag.0).collect();
    let expected =
        [*b"META", *b"LNCH", *b"FRAM", *b"FRAM", *b"FRAM", *b"FRAM", *b"ACCT", *b"ACCT", *b"INDX", *b"TAIL"];
    assert_eq!(tags, expected);
    let mut found = Vec::new();
    for (_, _, body) in &sections[2..6] {
        let frame = Frame::decode(1, body, 0).unwrap();
        let track = frame.header().track;
        found.extend(frame.chunks().map(|chunk| (track, chunk.entry.warp, chunk.entry.sequence)));
    }
    given.sort_by_key(|chunk| (chunk.track, chunk.warp, chunk.sequence));
    let expected: Vec<_> = given.iter().map(|chunk| (chunk.track, chunk.warp, chunk.sequence)).collect();
    assert_eq!(found, expected);

    let (first, entries) = decode_index(sections[8].2, 0).unwrap();
    assert_eq!((first, entries.len()), (0, 7));
    for (entry, (offset, header, _)) in entries.iter().zip(&sections[1..8]) {
        assert_eq!(
            (entry.offset, entry.length, entry.kind.tag()),
            (*offset, header.total_bytes(), header.tag)
        );
    }
    let ranges: Vec<_> = entries[1..5]
        .iter()
        .map(|entry| (entry.track, entry.first_warp, entry.last_warp, entry.chunks))
        .collect();
    assert_eq!(ranges, [(0, 0, 0, 2), (0, 1, 3, 2), (0, 3, 3, 1), (1, 2, 2, 1)]);
    let trailer_at = sections[9].0;
    let trailer = Trailer::parse(&file[trailer_at as usize..], trailer_at).unwrap();
    assert_eq!((trailer.index_offset, trailer.entries, trailer.index_sections), (sections[8].0, 7, 1));
    assert_eq!(decode_accounts(sections[6].2, 0).unwrap().runs, [AccountRun { warps: 4, account: DONE }]);
}

fn found(file: &[u8]) -> Vec<(u32, u32, u32, u32)> {
    let mut found = Vec::new();
    for (_, header, body) in sections(file) {
        if header.tag.0 == *b"FRAM" {
            let frame = Frame::decode(1, body, 0).unwrap();
            let FrameHeader { launch, track, .. } = *frame.header();
            found.extend(frame.entries().map(|entry| (launch, track, entry.warp, entry.sequence)));
        }
    }
    found
}

#[test]
fn few_chunks_of_many_warps_and_many_of_few_are_sorted_alike() {
    // Launch numbers with a gap; few of the warps have a chunk, or each has several.
    for (blocks, warps) in [([50_000, 1, 1], [99_999, 7, 40_000, 6]), ([2, 1, 1], [3, 1, 2, 0])] {
        let mut writer = TraceWriter::create(Vec::new(), &metadata(), WriterOptions::default()).unwrap();
        let mut batch = Vec::new();
        for number in [9, 5, 7] {
            writer.begin_launch(&LaunchInfo::new(number, 0, blocks, [64, 1, 1], 0).unwrap()).unwrap();
            for sequence in [2, 0, 1] {
                for track in [1, 0] {
                    batch.extend(warps.map(|warp| (number, chunk(track, warp, sequence))));
                }
            }
        }
        writer.write_batch(&batch).unwrap();
        let (file, summary) = writer.finish().unwrap();
        let mut expected: Vec<_> =
            batch.iter().map(|(launch, chunk)| (*launch, chunk.track, chunk.warp, chunk.sequence)).collect();
        expected.sort_unstable();
        assert_eq!(found(&file), expected);
        assert_eq!((summary.frames, summary.chunks), (6, 72));
    }
}

#[test]
fn many_accounts_come_in_several_sections() {
    let mut writer = TraceWriter::create(Vec::new(), &metadata(), WriterOptions::default()).unwrap();
    writer.begin_launch(&LaunchInfo::new(0, 0, [20_000, 1, 1], [64, 1, 1], 0).unwrap()).unwrap();
    let accounts: Vec<_> =
        (0..40_000).map(|warp| WarpAccount { recorded: warp, attempted: warp + 1, ..DONE }).collect();
    writer.end_launch(0, 1, &accounts).unwrap();
    let (file, _) = writer.finish().unwrap();
    let mut read = Vec::new();
    for (_, _, body) in sections(&file).iter().filter(|(_, header, _)| header.tag.0 == *b"ACCT") {
        let Accounts { header, runs, .. } = decode_accounts(body, 0).unwrap();
        assert_eq!((header.track, header.first_warp as usize), (1, read.len()));
        read.extend(runs.iter().map(|run| run.account));
    }
    assert_eq!(read, accounts);
}

#[test]
fn frames_are_compressed_when_that_helps() {
    let mut writer = writer(WriterOptions::default());
    let chunks: Vec<_> =
        (0..4).flat_map(|warp| (0..50).map(move |sequence| chunk(0, warp, sequence))).collect();
    writer.write_chunks(7, &chunks).unwrap();
    let (file, summary) = writer.finish().unwrap();
    assert_eq!((summary.frames, summary.chunks), (1, 200));
    let frame = Frame::decode(1, sections(&file)[2].2, 0).unwrap();
    assert_eq!(frame.header().stored_as, StoredAs::Zstd);
    assert_eq!(frame.chunks().count(), 200);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let record = || {
        let mut writer = writer(WriterOptions::default().with_frame_bytes(100));
        let chunks: Vec<_> =
            (0..4).flat_map(|warp| (0..50).map(move |sequence| chunk(0, warp, sequence))).collect();
        writer.write_chunks(7, &chunks).unwrap();
        writer.finish().unwrap().0
    };
    assert_eq!(record(), record());
}

#[test]
fn misuse_is_an_error_and_writes_nothing() {
    let mut writer = writer(WriterOptions::default());
    writer.write_chunks(7, &[chunk(0, 0, 3)]).unwrap();
    let before = writer.summary();
    let long = vec![0; 481];
    let refused = |result: Result<(), WriteError>, expected: &str| {
        let error = format!("{:?}", result.expect_err(expected));
        assert!(error.starts_with(expected), "{error}");
    };
    refused(writer.begin_launch(&launch(7)), "LaunchTwice");
    refused(writer.begin_launch(&LaunchInfo::new(8, 1, [1; 3], [1; 3], 0).unwrap()), "UnknownKernel");
    refused(writer.write_chunks(8, &[]), "UnknownLaunch");
    refused(writer.write_chunks(7, &[chunk(2, 0, 0)]), "UnknownTrack");
    refused(writer.write_chunks(7, &[chunk(0, 4, 0)]), "UnknownWarp");
    refused(writer.write_chunks(7, &[ChunkRef { events: 0, ..chunk(0, 1, 0) }]), "EmptyChunk");
    refused(writer.write_chunks(7, &[ChunkRef { payload: &[], ..chunk(0, 1, 0) }]), "EmptyChunk");
    refused(writer.write_chunks(7, &[ChunkRef { payload: &long, ..chunk(0, 1, 0) }]), "PayloadTooLarge");
    refused(writer.write_chunks(7, &[chunk(0, 0, 3)]), "SequenceNotAscending");
    refused(writer.write_chunks(7, &[chunk(0, 1, 0), chunk(0, 1, 0)]), "SequenceNotAscending");
    // One invalid chunk also rejects the valid ones of the same call.
    refused(writer.write_chunks(7, &[chunk(0, 1, 0), chunk(0, 0, 0)]), "SequenceNotAscending");
    refused(writer.end_launch(8, 0, &[]), "UnknownLaunch");
    refused(writer.end_launch(7, 2, &[DONE; 4]), "UnknownTrack");
    refused(writer.end_launch(7, 0, &[DONE; 3]), "AccountCount");
    refused(writer.end_launch(7, 0, &[WarpAccount { finished: 2, ..DONE }; 4]), "AccountFinished");
    assert_eq!(writer.summary(), before);

    writer.write_chunks(7, &[chunk(0, 1, 0)]).unwrap();
    writer.end_launch(7, 0, &[DONE; 4]).unwrap();
    refused(writer.end_launch(7, 0, &[DONE; 4]), "TrackEnded");
    refused(writer.write_chunks(7, &[chunk(0, 1, 9)]), "TrackEnded");
    writer.write_chunks(7, &[chunk(1, 1, 9)]).unwrap();

    for frame_bytes in [0, MAX_FRAME_BYTES + 1] {
        let options = WriterOptions::default().with_frame_bytes(frame_bytes);
        let created = TraceWriter::create(Vec::new(), &metadata(), options);
        assert!(matches!(created, Err(WriteError::FrameBytes { .. })));
    }
    let mut none = metadata();
    none.tracks.clear();
    let created = TraceWriter::create(Vec::new(), &none, WriterOptions::default());
    assert!(matches!(created, Err(WriteError::Metadata(_))));
}

struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_and_nothing_follows_the_torn_section() {
    let mut writer = TraceWriter::create(Disk(300), &metadata(), WriterOptions::default()).unwrap();
    writer.begin_launch(&launch(7)).unwrap();
    let mut sequences = 0..;
    let offset = loop {
        match writer.write_chunks(7, &[chunk(0, 0, sequences.next().unwrap())]) {
            Ok(()) => {}
            Err(WriteError::Io { offset, .. }) => break offset,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(offset, writer.summary().bytes);
    assert!(matches!(writer.begin_launch(&launch(8)), Err(WriteError::Broken)));
    assert!(matches!(writer.write_chunks(7, &[chunk(0, 0, 99)]), Err(WriteError::Broken)));
    assert!(matches!(writer.finish(), Err(WriteError::Broken)));
}

#[test]
fn sections_of_accesses_are_the_same_on_any_number_of_threads() {
    use warptrace_format::data::native::WarpRecorder;

    const LAUNCHES: u32 = 40;
    const WARPS: u32 = 300;
    let stream = |launch: u32, warp: u32| -> Vec<u8> {
        let mut recorder = WarpRecorder::new(usize::MAX);
        // One launch has several sections, the others have one each.
        for turn in 0..if launch == 3 { 135 } else { 1 } {
            let access = |lane: u32| {
                let mixed = u64::from(turn << 5 | lane).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (lane, mixed.rotate_left(launch) ^ u64::from(warp))
            };
            recorder.access(1 + (turn % 2) as u16, 7 * turn, &(0..32).map(access).collect::<Vec<_>>());
        }
        recorder.leave(1000, u32::MAX);
        recorder.finish().concat().into_iter().flat_map(u32::to_le_bytes).collect()
    };
    let streams: Vec<Vec<Vec<u8>>> =
        (0..LAUNCHES).map(|launch| (0..WARPS).map(|warp| stream(launch, warp)).collect()).collect();
    let chunks = |of_launch: usize| -> Vec<DataChunk<'_>> {
        let of_warp = |warp: u32| {
            let stream = &streams[of_launch][warp as usize];
            let parts = (0..).zip(stream.chunks((stream.len() / 48 + 1) * 16));
            parts.map(move |(sequence, entries)| DataChunk { warp, sequence, entries })
        };
        (0..WARPS).rev().flat_map(of_warp).collect()
    };
    let write = |threads: usize, is_together: bool| {
        let mut writer = TraceWriter::create(Vec::new(), &metadata(), WriterOptions::default()).unwrap();
        for launch in 0..LAUNCHES {
            let info = LaunchInfo::new(launch, 0, [WARPS, 1, 1], [32, 1, 1], 0).unwrap();
            writer.begin_launch(&info).unwrap();
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            if is_together {
                let all = (0..LAUNCHES).map(|launch| (launch, chunks(launch as usize)));
                writer.write_data_batch(all.collect()).unwrap();
            } else {
                for launch in 0..LAUNCHES {
                    writer.write_data(launch, &chunks(launch as usize)).unwrap();
                }
            }
        });
        writer.finish().unwrap().0
    };
    let alone = write(1, false);
    let of_data = sections(&alone).iter().filter(|(_, header, _)| header.tag.0 == *b"DATA").count();
    assert!(of_data as u32 > LAUNCHES + 2, "{of_data}");
    for threads in [1, 3, 20] {
        assert!(write(threads, true) == alone, "{threads} threads");
    }
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % limit
    }
}

type Found = ([u32; 4], u32, Vec<u8>);

/// Writes the chunks of classes in two parts; returns the file, and the expected chunks of each stream.
fn write_classes(
    numbers: &mut Numbers,
    most_per_run: u32,
    frame_bytes: Option<u32>,
) -> (Vec<u8>, Vec<Found>) {
    let options = WriterOptions { frame_bytes, ..WriterOptions::default() };
    let mut writer = TraceWriter::create(Vec::new(), &metadata(), options).unwrap();
    let (mut logged, mut streams) = (Vec::new(), 0);
    for number in [3, 4, 9] {
        let info = LaunchInfo::new(number, 0, [1 + numbers.below(200), 1, 1], [64, 1, 1], 0).unwrap();
        writer.begin_launch(&info).unwrap();
        let (warps, tracks) = (info.warps(), 2);
        logged.push(LoggedLaunch {
            launch: number,
            warps,
            tracks,
            first_stream: streams,
            ..LoggedLaunch::default()
        });
        streams += warps * tracks;
    }
    // Runs of streams, each a new class or an earlier one. Tracks share no classes.
    let mut firsts: Vec<u32> = Vec::new();
    while firsts.len() < streams as usize {
        let at = firsts.len() as u32;
        let known = if at != 0 && numbers.below(2) == 0 { firsts[numbers.below(at) as usize] } else { at };
        let count = 1 + numbers.below(most_per_run);
        firsts.extend(std::iter::repeat_n(known, count.min(streams - at) as usize));
    }
    let found = Representatives::new(&logged, 2, firsts.clone().into());
    let classes = found.classes().unwrap();
    let of_class = |class: u32| {
        let mut numbers = Numbers(class.into());
        let chunk = |sequence| {
            let length = 1 + numbers.below(60) as usize;
            let payload: Vec<u8> = (0..length).map(|_| numbers.below(256) as u8).collect();
            (sequence, 1 + numbers.below(5), payload)
        };
        (0..1 + class % 3).map(chunk).collect::<Vec<_>>()
    };
    let name = |stream: u32| {
        let of = logged.iter().rfind(|launch| launch.first_stream <= stream).unwrap();
        let inside = stream - of.first_stream;
        [of.launch, inside / of.warps, inside % of.warps]
    };
    for is_first in [true, false] {
        let mut encoded = Vec::new();
        for stream in (0..streams).filter(|&stream| firsts[stream as usize] == stream) {
            // The first part has all chunks of some streams, and one chunk of others.
            let is_now = |sequence: u32| (sequence == 0 || stream % 4 != 0) == is_first;
            let chunks = of_class(stream).into_iter().filter(|(sequence, ..)| is_now(*sequence));
            encoded.extend(chunks.map(|chunk| (name(stream), chunk)));
        }
        let find = |batch: &mut Batch| {
            let chunk = |at: u32| {
                let ([launch, track, warp], (sequence, events, ref payload)) = encoded[at as usize];
                batch.check(launch, &ChunkRef { track, warp, sequence, events, payload }, at)
            };
            let found = (0..encoded.len() as u32).map(chunk).collect::<Result<Vec<_>, _>>()?;
            batch.add(found);
            Ok::<_, WriteError>(())
        };
        let payload = |found: &BatchChunk| [&encoded[found.at as usize].1.2[..], &[]];
        let infos = [3, 4, 9].map(|launch| writer.launches.info(launch).unwrap());
        let mut ordered = Vec::new();
        let batch = writer.encoder.encode(&infos, find, payload, classes, &[], &mut ordered);
        writer.put_batch(batch.unwrap(), &[]).unwrap();
    }
    let (file, _) = writer.finish().unwrap();
    let of_stream = |stream: u32| {
        let [launch, track, warp] = name(stream);
        let chunks = of_class(firsts[stream as usize]).into_iter();
        chunks.map(move |(sequence, events, payload)| ([launch, track, warp, sequence], events, payload))
    };
    (file, (0..streams).flat_map(of_stream).collect())
}

#[test]
fn all_streams_have_the_chunks_of_their_classes() {
    let mut versions = BTreeSet::new();
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        let most_per_run = [1, 3, 40, 2000][seed as usize % 4];
        let frame_bytes = [None, Some(1), Some(300)][seed as usize % 3];
        let (file, mut expected) = write_classes(&mut numbers, most_per_run, frame_bytes);
        let mut found: Vec<Found> = Vec::new();
        for (_, header, body) in sections(&file).into_iter().filter(|(_, header, _)| header.tag.0 == *b"FRAM")
        {
            versions.insert(header.version);
            let frame = Frame::decode(header.version, body, 0).unwrap();
            let FrameHeader { launch, track, .. } = *frame.header();
            found.extend(frame.chunks().map(|Chunk { entry, payload, .. }| {
                ([launch, track, entry.warp, entry.sequence], entry.events, payload.to_vec())
            }));
        }
        let sequences = found.chunk_by(|a, b| a.0[..3] == b.0[..3]);
        assert!(sequences.into_iter().all(<[Found]>::is_sorted), "a warp's chunks stand in their order");
        found.sort_unstable();
        expected.sort_unstable();
        assert!(found == expected, "seed {seed}");
    }
    assert_eq!(versions, BTreeSet::from([1, 2]));
}
