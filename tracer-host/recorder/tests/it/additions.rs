//! Files whose kernels and locations were added step by step.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::recordings::metadata;
use warptrace_decoder::{Completeness, KeptText, TraceFile};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{
    Additions, CopyPlace, LaunchInfo, LocationCode, LocationInfo, Origin, SourceText, WaitInfo,
};
use warptrace_host::HostMessage;
use warptrace_host::writer::{ChunkRef, TraceWriter, WriteError, WriterOptions};

const SOUND: WarpAccount = WarpAccount { attempted: 1, recorded: 1, lost: 0, chunks: 1, finished: 1 };

fn launch(number: u32, kernel: u32) -> LaunchInfo {
    LaunchInfo::new(number, kernel, [1, 1, 1], [32, 1, 1], 0).unwrap()
}

fn more(kernel: &str, id: u16, parent: u16) -> Additions {
    let location = LocationInfo { parent, ..LocationInfo::new(id, kernel, "") };
    Additions { kernels: vec![(kernel, "").into()], locations: vec![location] }
}

fn record(writer: &mut TraceWriter<Vec<u8>>, launch: LaunchInfo) -> Result<(), WriteError> {
    writer.begin_launch(&launch)?;
    let payload = &[1, 0, 255, 255, 255, 255];
    let chunk = ChunkRef { track: 0, warp: 0, sequence: 0, events: 1, payload };
    writer.write_chunks(launch.number(), &[chunk])?;
    writer.end_launch(launch.number(), 0, &[SOUND])
}

fn file() -> Vec<u8> {
    let metadata = metadata(vec![CodecSpec::Raw]);
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    record(&mut writer, launch(0, 1)).unwrap();
    let error = record(&mut writer, launch(1, 2)).unwrap_err();
    assert!(matches!(error, WriteError::UnknownKernel { kernel: 2, kernels: 2, .. }), "{error}");
    writer.write_message(&HostMessage::Additions(more("third", 21, 20))).unwrap();
    let error = writer.write_message(&HostMessage::Additions(more("third again", 21, 0))).unwrap_err();
    assert!(error.to_string().contains("both have the id 21"), "{error}");
    record(&mut writer, launch(1, 2)).unwrap();
    writer.write_message(&HostMessage::Additions(more("fourth", 22, 21))).unwrap();
    record(&mut writer, launch(2, 3)).unwrap();
    writer.finish().unwrap().0
}

fn names(trace: &TraceFile) -> Vec<&str> {
    trace.metadata().kernels.iter().map(|kernel| &*kernel.name).collect()
}

#[test]
fn what_was_added_is_part_of_the_metadata() {
    let trace = TraceFile::from_bytes(file()).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
    assert_eq!(names(&trace), ["first", "second", "third", "fourth"]);
    assert_eq!(trace.metadata().location(22).unwrap().parent, 21);
    let report = trace.verify();
    assert!(report.is_ok(), "{report:?}");
}

#[test]
fn without_an_index_each_addition_counts_from_where_it_stands() {
    let bytes = file();
    let mut at_least = 2;
    for length in 0..bytes.len() {
        let Ok(trace) = TraceFile::from_bytes(bytes[..length].to_vec()) else { continue };
        let kernels = names(&trace).len();
        assert!(kernels >= at_least, "a longer prefix knows no less");
        at_least = kernels;
        assert!(trace.launches().all(|launch| (launch.kernel() as usize) < kernels));
    }
    assert_eq!(at_least, 4);
}

pub(crate) fn sections(bytes: &[u8], tag: &[u8; 4]) -> Vec<usize> {
    let mut at = 24;
    let mut found = Vec::new();
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap()) as usize;
        if bytes[at..at + 4] == tag[..] {
            found.push(at);
        }
        at += 24 + length;
    }
    found
}

#[test]
fn additions_that_contradict_what_is_there_end_what_can_be_read() {
    let bytes = file();
    let [first, _] = sections(&bytes, b"MORE")[..] else { panic!("two sections") };
    let next = sections(&bytes, b"LNCH")[1];
    let twice = [&bytes[..next], &bytes[first..next]].concat();
    let trace = TraceFile::from_bytes(twice).unwrap();
    assert_eq!(names(&trace), ["first", "second", "third"]);
    let Completeness::Prefix { valid_bytes, reason } = trace.completeness() else { panic!("no prefix") };
    assert_eq!(*valid_bytes, next as u64);
    assert!(reason.to_string().contains("both have the id 21"), "{reason}");
}

#[test]
fn texts_are_kept_and_checked() {
    let text = |name: &str, text: &str| SourceText { name: name.into(), text: text.into() };
    let mut writer =
        TraceWriter::create(Vec::new(), &metadata(vec![CodecSpec::Raw]), WriterOptions::default()).unwrap();
    for kept in [text("a.ptx", "first\n"), text("b.ptx", &"ret;\n".repeat(1000)), text("a.ptx", "later\n")] {
        writer.write_message(&HostMessage::Text(kept)).unwrap();
    }
    assert!(writer.write_message(&HostMessage::Text(text("", ""))).is_err());
    record(&mut writer, launch(0, 0)).unwrap();
    let bytes = writer.finish().unwrap().0;
    for bytes in [bytes.clone(), bytes[..bytes.len() - 1].to_vec()] {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        let whole = |name: &str| match trace.text(name, usize::MAX).unwrap() {
            KeptText::Whole(kept) => kept.text,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(whole("a.ptx"), "later\n");
        assert_eq!(whole("b.ptx").len(), 5000);
        assert_eq!(trace.text("c.ptx", usize::MAX).unwrap(), KeptText::None);
        assert_eq!(trace.text("b.ptx", 4_999).unwrap(), KeptText::TooLong);
    }
    assert!(TraceFile::from_bytes(bytes.clone()).unwrap().verify().is_ok());
    let mut damaged = bytes;
    let at = sections(&damaged, b"TEXT")[1] + 24 + 16;
    damaged[at] ^= 1;
    let trace = TraceFile::from_bytes(damaged).unwrap();
    assert!(trace.text("b.ptx", usize::MAX).is_err() && !trace.verify().is_ok());
}

#[test]
fn what_the_code_has_is_known_with_an_index_and_without_it() {
    let code = |instructions, counted| Some(LocationCode { instructions, counted });
    let mut metadata = metadata(vec![CodecSpec::Raw]);
    metadata.locations[0].code = code(7, false);
    let first = metadata.locations[0].id;
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    let mut third = more("third", 21, 20);
    third.locations[0].code = code(300, true);
    writer.write_message(&HostMessage::Additions(third)).unwrap();
    record(&mut writer, launch(0, 2)).unwrap();
    let bytes = writer.finish().unwrap().0;
    let of = |trace: &TraceFile, id| trace.metadata().location(id).unwrap().code;
    for (bytes, is_complete) in [(bytes.clone(), true), (bytes[..bytes.len() - 1].to_vec(), false)] {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        assert_eq!(*trace.completeness() == Completeness::Complete, is_complete);
        assert_eq!([of(&trace, first), of(&trace, 21)], [code(7, false), code(300, true)]);
        assert_eq!(trace.metadata().locations.iter().filter(|location| location.code.is_none()).count(), 19);
        assert_eq!(trace.verify().is_ok(), is_complete);
    }
    let mut damaged = bytes.clone();
    let [at, _] = sections(&bytes, b"CODE")[..] else { panic!("two sections") };
    damaged[at + 24] ^= 1;
    let trace = TraceFile::from_bytes(damaged).unwrap();
    assert_eq!([of(&trace, first), of(&trace, 21)], [None, code(300, true)]);
    assert_eq!(*trace.completeness(), Completeness::Complete);
    let said = trace.verify().problems.iter().map(ToString::to_string).collect::<String>();
    assert!(said.contains("CODE") && !trace.verify().is_ok(), "{said}");
    let state = trace.state();
    assert!(!state.is_whole && state.sentence.contains("instructions of locations that cannot be read"));
    // The section is marked so that old readers skip it.
    assert_eq!(bytes[at + 6..at + 8], [1, 0]);
}

#[test]
fn what_lanes_wait_at_is_known_with_an_index_and_without_it() {
    let copies = vec![CopyPlace { file: "a\u{1b}.cu".to_owned(), line: 3, column: 1 }];
    let wait = |barrier: &str| {
        let barrier = barrier.to_owned();
        Some(Box::new(WaitInfo { barrier, copies: copies.clone(), is_certain: true, ..WaitInfo::default() }))
    };
    let mut metadata = metadata(vec![CodecSpec::Raw]);
    metadata.locations[0].wait = wait("bar 0");
    let first = metadata.locations[0].id;
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    let mut third = more("third", 21, 20);
    third.locations[0].wait = wait("mbarrier full+8");
    writer.write_message(&HostMessage::Additions(third)).unwrap();
    record(&mut writer, launch(0, 2)).unwrap();
    let bytes = writer.finish().unwrap().0;
    let of = |trace: &TraceFile, id| {
        let wait = trace.metadata().location(id).unwrap().wait.clone();
        wait.map(|wait| (wait.barrier, wait.copies[0].file.clone()))
    };
    let known = |barrier: &str| Some((barrier.to_owned(), r"a\u{1b}.cu".to_owned()));
    for bytes in [bytes.clone(), bytes[..bytes.len() - 1].to_vec()] {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        assert_eq!([of(&trace, first), of(&trace, 21)], [known("bar 0"), known("mbarrier full+8")]);
    }
    let mut damaged = bytes.clone();
    let [at, _] = sections(&bytes, b"WAIT")[..] else { panic!("two sections") };
    damaged[at + 24] ^= 1;
    let trace = TraceFile::from_bytes(damaged).unwrap();
    assert_eq!([of(&trace, first), of(&trace, 21)], [None, known("mbarrier full+8")]);
    assert!(!trace.verify().is_ok() && trace.state().sentence.contains("barriers of waits"));
    assert_eq!(bytes[at + 6..at + 8], [1, 0], "it is optional");
}

#[test]
fn what_launches_are_called_is_known_with_an_index_and_without_it() {
    let mut writer =
        TraceWriter::create(Vec::new(), &metadata(vec![CodecSpec::Raw]), WriterOptions::default()).unwrap();
    writer.write_message(&HostMessage::Labels(vec![(0, "a\u{1b}[31m".into()), (1, "b".into())])).unwrap();
    record(&mut writer, launch(0, 0)).unwrap();
    record(&mut writer, launch(1, 0)).unwrap();
    record(&mut writer, launch(2, 0)).unwrap();
    writer.write_message(&HostMessage::Labels(vec![(3, "b".into()), (4, "c".into())])).unwrap();
    record(&mut writer, launch(3, 0)).unwrap();
    record(&mut writer, launch(4, 0)).unwrap();
    let bytes = writer.finish().unwrap().0;
    let of = |trace: &TraceFile| [0, 1, 2, 3, 4, 5].map(|launch| trace.label(launch).map(str::to_owned));
    let some = |label: &str| Some(label.to_owned());
    let all = [some("a\\u{1b}[31m"), some("b"), None, some("b"), some("c"), None];
    for (bytes, is_complete) in [(bytes.clone(), true), (bytes[..bytes.len() - 1].to_vec(), false)] {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        assert_eq!((of(&trace), trace.verify().is_ok()), (all.clone(), is_complete));
    }
    let [first, second] = sections(&bytes, b"LABL")[..] else { panic!("two sections") };
    let next = sections(&bytes, b"LNCH")[3];
    assert_eq!(of(&TraceFile::from_bytes(bytes[..next].to_vec()).unwrap()), all);
    // A damaged section loses the labels whose texts it contains, but no launch, and the state reports this.
    for (at, left) in [
        (first, [None, None, None, None, some("c"), None]),
        (second, [some("a\\u{1b}[31m"), some("b"), None, None, None, None]),
    ] {
        let mut damaged = bytes.clone();
        damaged[at + 24] ^= 1;
        let trace = TraceFile::from_bytes(damaged).unwrap();
        assert_eq!((of(&trace), trace.launches().len()), (left, 5));
        assert_eq!(*trace.completeness(), Completeness::Complete);
        assert!(
            !trace.verify().is_ok()
                && trace.state().sentence.contains("labels of launches that cannot be read")
        );
    }
    // The section is marked so that old readers skip it.
    assert_eq!(bytes[first + 6..first + 8], [1, 0]);
}

#[test]
fn where_a_file_was_recorded_is_known_with_an_index_and_without_it() {
    let origin = Origin {
        job: Some("a\u{1b}[31m".into()),
        rank: Some(3),
        ranks: Some(8),
        notes: vec!["b\n".into()],
        ..Origin::default()
    };
    let mut metadata = metadata(vec![CodecSpec::Raw]);
    metadata.origin = Some(Box::new(origin.clone()));
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    record(&mut writer, launch(0, 0)).unwrap();
    let bytes = writer.finish().unwrap().0;
    let of = |trace: &TraceFile| trace.metadata().origin.as_deref().cloned();
    let shown = Origin { job: Some("a\\u{1b}[31m".into()), notes: vec!["b\\n".into()], ..origin };
    for (bytes, is_complete) in [(bytes.clone(), true), (bytes[..bytes.len() - 1].to_vec(), false)] {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        assert_eq!((of(&trace), trace.verify().is_ok()), (Some(shown.clone()), is_complete));
    }
    let [at] = sections(&bytes, b"ORIG")[..] else { panic!("one section") };
    assert_eq!(bytes[at + 6..at + 8], [1, 0], "it is optional");
    let mut damaged = bytes.clone();
    damaged[at + 24] ^= 1;
    let trace = TraceFile::from_bytes(damaged).unwrap();
    assert_eq!((of(&trace), trace.launches().len()), (None, 1));
    assert_eq!(*trace.completeness(), Completeness::Complete);
    assert!(!trace.verify().is_ok());
    assert!(trace.state().sentence.contains("where it was recorded, which cannot be read"));
}
