use super::*;

fn example() -> Metadata {
    let mut metadata = Metadata::new("warptrace 0.1.0", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw])
        .with_kernel("k", "k.rs")
        .with_location(1, "entry", "")
        .with_property("n", "3")
        .with_pool(4096, 300);
    metadata.locations[0].line = 12;
    metadata.locations[0].function = "solve".into();
    metadata.locations[0].kind = LocationKind::Entry;
    (metadata.locations[0].rejoin_line, metadata.locations[0].rejoin_column) = (32, 7);
    metadata
}

#[test]
fn body_bytes_are_frozen() {
    let body = example().encode().unwrap();
    let expected = [
        b"\x0fwarptrace 0.1.0".as_slice(),
        b"\x01\x03sim\x00\x00",      // simulator, name, no capability, no driver
        b"\x01\x01k\x04k.rs",        // one kernel
        b"\x01\x00",                 // one track: raw
        b"\x80\x20\xac\x02\x04stop", // 4096 and 300 as varints, policy
        b"\x01\x01\x05entry\x00\x00\x0c\x00", // one location: id, name, description, file, line, column
        b"\x05solve\x01\x00\x20\x07", // its function, kind, parent, rejoin line and column
        b"\x01\x01n\x013",
        b"\x00", // no creation time
    ]
    .concat();
    assert_eq!(body, expected);
    assert_eq!(Metadata::decode(&body, 0).unwrap(), example());
}

#[test]
fn every_cut_and_every_byte_more_is_refused() {
    let body = example().encode().unwrap();
    for length in 0..body.len() {
        assert!(Metadata::decode(&body[..length], 48).is_err(), "length {length}");
    }
    let error = Metadata::decode(&[&body[..], &[0]].concat(), 48).unwrap_err();
    assert_eq!(error.to_string(), "META at offset 48: 1 bytes follow the last field");
}

#[test]
fn numbers_longer_than_need_be_are_read_up_to_their_width() {
    let body = example().encode().unwrap();
    // `pool_chunks`, 300 in 32 bits.
    let at = body.windows(2).position(|bytes| bytes == [0xac, 2]).unwrap();
    let with = |bytes: &[u8]| Metadata::decode(&[&body[..at], bytes, &body[at + 2..]].concat(), 0);
    assert_eq!(with(&[0xac, 0x82, 0x80, 0x80, 0]).unwrap(), example());
    assert!(with(&[0xac, 0x82, 0x80, 0x80, 0x80, 0]).is_err(), "six bytes");
    assert!(with(&[0xff, 0xff, 0xff, 0xff, 0x1f]).is_err(), "33 bits");
}

#[test]
fn a_huge_announced_length_reserves_nothing() {
    let mut body = b"\x00\x01\x00\x00\x00".to_vec(); // empty tool, simulator
    body.extend_from_slice(b"\xff\xff\xff\xff\x7f"); // 2^35 kernels
    body.extend_from_slice(&[0; 64]);
    assert!(Metadata::decode(&body, 0).is_err());
}

#[test]
fn more_kernels_than_the_limit_are_refused_when_read() {
    let mut body = b"\x00\x01\x00\x00\x00".to_vec();
    body.extend_from_slice(b"\x81\x20"); // 4097 kernels
    body.extend_from_slice(&vec![0; 4097 * 2]);
    let error = Metadata::decode(&body, 0).unwrap_err();
    assert!(matches!(error, FormatError::Contents { .. }), "{error}");
}

#[test]
fn contradictions_are_named() {
    let mut bad = example();
    bad.tracks.clear();
    assert_eq!(bad.check(), Err(MetadataError::Tracks { found: 0 }));
    let mut bad = example();
    bad.chunk_bytes = 4095;
    assert_eq!(bad.check(), Err(MetadataError::ChunkBytes { found: 4095 }));
}

#[test]
fn trace_points_that_cannot_be_are_named_with_what_to_do() {
    let mut ecl = example();
    ecl.tracks = vec![CodecSpec::Ecl(crate::codec::EclParams::DEFAULT), CodecSpec::Raw];
    ecl.locations[0].file = "k.rs".into();
    let message = |bad: Metadata| {
        let error = bad.check().unwrap_err();
        assert_eq!(bad.encode().unwrap_err(), error, "a writer refuses it");
        error.to_string()
    };
    assert_eq!(
        message(ecl.clone().with_location(0, "zero", "")),
        "trace point `zero` has the id 0; ids begin at 1: give it one that no other trace point has"
    );
    assert_eq!(
        message(ecl.clone().with_location(256, "high", "")),
        "trace point `high` has the id 256, but the codec `ecl` carries ids up to 255: give it a smaller id, \
         or record with a codec that carries larger ones (`raw` and `predict` do, up to 65535)"
    );
    assert_eq!(
        message(ecl.with_location(1, "again", "")),
        "trace points `entry` (k.rs:12) and `again` both have the id 1; \
         an id is unique in a program, over all of its kernels: give each its own"
    );
    assert_eq!(example().with_location(65_535, "high", "").check(), Ok(()), "raw carries every id");
}

#[test]
fn a_parent_is_an_earlier_location_of_the_table() {
    let with = |parents: &[(u16, u16)]| {
        let mut metadata = example();
        for &(id, parent) in parents {
            metadata.locations.push(LocationInfo { parent, ..LocationInfo::new(id, "p", "") });
        }
        metadata.check()
    };
    assert_eq!(with(&[(3, 1), (2, 1), (9, 3)]), Ok(()));
    for wrong in [[(3, 1), (2, 3)], [(3, 1), (2, 2)], [(4, 3), (2, 1)]] {
        assert!(matches!(with(&wrong), Err(MetadataError::Parent { .. })), "{wrong:?}");
    }
    let error = with(&[(7, 5)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "trace point `p` (id 7) lies in location 5: a location lies in one of the table with a smaller id, or in 0"
    );
}

#[test]
fn kinds_of_locations_keep_their_numbers() {
    use LocationKind::{Arm, Barrier, Else, Entry, LoopBody, LoopExit, Marked, Return, Then, Wait, Waited};
    let mut good = example();
    let at = good.encode().unwrap().windows(6).position(|bytes| bytes == b"solve\x01").unwrap() + 5;
    let kinds = [Marked, Entry, Then, Else, Arm, LoopBody, LoopExit, Return, Barrier, Wait, Waited];
    for (number, kind) in kinds.into_iter().enumerate() {
        good.locations[0].kind = kind;
        let body = good.encode().unwrap();
        assert_eq!(usize::from(body[at]), number);
        assert_eq!(Metadata::decode(&body, 0).unwrap(), good);
    }
    let mut unknown = good.encode().unwrap();
    unknown[at] = 11;
    assert!(Metadata::decode(&unknown, 0).is_err());
}

#[test]
fn codec_parameters_out_of_range_are_refused_when_read() {
    let mut good = example();
    good.tracks = vec![CodecSpec::Ecl(crate::codec::EclParams::new(9, 2, 8).unwrap())];
    let body = good.encode().unwrap();
    let at = body.windows(5).position(|bytes| bytes == [1, 1, 9, 2, 8]).unwrap();
    assert_eq!(Metadata::decode(&body, 0).unwrap(), good);
    for (field, value) in [(2, 17), (3, 9), (4, 21)] {
        let mut bad = body.clone();
        bad[at + field] = value;
        assert!(Metadata::decode(&bad, 0).is_err(), "field {field}");
    }
}

#[test]
fn predict_is_a_track_of_two_bytes() {
    let mut good = example();
    good.tracks = vec![CodecSpec::Predict(crate::codec::PredictParams::DEFAULT)];
    let good = good.with_location(65_535, "highest", "");
    let body = good.encode().unwrap();
    let at = body.windows(3).position(|bytes| bytes == [1, 2, 5]).unwrap();
    assert_eq!(Metadata::decode(&body, 0).unwrap(), good);
    let mut bad = body.clone();
    bad[at + 2] = 11;
    assert!(Metadata::decode(&bad, 0).is_err());
}
