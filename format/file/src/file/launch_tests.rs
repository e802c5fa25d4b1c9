use super::*;
use crate::file::SECTION_HEADER_BYTES;

#[test]
fn body_bytes_are_frozen() {
    let launch = LaunchInfo::new(7, 1, [2, 3, 4], [33, 1, 1], 9).unwrap();
    let section = launch.encode_section();
    let (header, bytes) = section.split_at(SECTION_HEADER_BYTES);
    assert_eq!((header[..4].as_ref(), header[4], bytes.len()), (b"LNCH".as_ref(), 1, LAUNCH_BYTES));
    assert_eq!(
        bytes,
        [
            7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
            9, 0, 0, 0, 0, 0, 0, 0
        ]
    );
    assert_eq!(LaunchInfo::decode(1, bytes, 0), Ok(launch));
    assert!(LaunchInfo::decode(1, &bytes[..39], 0).is_err());
    assert!(LaunchInfo::decode(1, &[bytes, &[0]].concat(), 0).is_err());
    assert!(LaunchInfo::decode(2, bytes, 0).is_err());
}

#[test]
fn the_bytes_of_chosen_warps_are_frozen() {
    let whole = LaunchInfo::new(7, 1, [2, 3, 4], [33, 1, 1], 9).unwrap();
    let chosen = ChosenWarps { first_block: 1, blocks: 5, block_step: 4, first_warp: 1, block_warps: 1 };
    let launch = whole.with_chosen(chosen).unwrap();
    let section = launch.encode_section();
    let (header, bytes) = section.split_at(SECTION_HEADER_BYTES);
    assert_eq!((header[..4].as_ref(), header[4], launch.version()), (b"LNCH".as_ref(), 2, 2));
    assert_eq!(bytes[..40], whole.encode_section()[SECTION_HEADER_BYTES..]);
    assert_eq!(bytes[40..], [1, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(LaunchInfo::decode(2, bytes, 0), Ok(launch));
    assert!(LaunchInfo::decode(1, bytes, 0).is_err());
    assert!(LaunchInfo::decode(2, &bytes[..59], 0).is_err());
    // Seven blocks from block 1 with step 4: the last would be block 25 of 24.
    let more = [&bytes[..44], &[7], &bytes[45..]].concat();
    let error = LaunchInfo::decode(2, &more, 0).unwrap_err().to_string();
    assert!(error.contains("is no choice among 24 blocks of 2 warps"), "{error}");
    let untraced = whole.with_chosen(ChosenWarps::NONE).unwrap();
    let section = untraced.encode_section();
    assert_eq!(section[SECTION_HEADER_BYTES + 40..], [0; 20]);
    let read = LaunchInfo::decode(2, &section[SECTION_HEADER_BYTES..], 0);
    assert_eq!(read, Ok(untraced));
    assert!(!untraced.is_recorded() && launch.is_recorded() && !launch.is_whole() && whole.is_whole());
}

#[test]
fn chosen_warps_are_found_by_their_index() {
    let chosen = ChosenWarps { first_block: 1, blocks: 2, block_step: 2, first_warp: 1, block_warps: 2 };
    let launch = LaunchInfo::new(0, 0, [4, 1, 1], [96, 1, 1], 0).unwrap().with_chosen(chosen).unwrap();
    let warps: Vec<u32> = (0..12).filter(|&warp| launch.is_chosen(warp)).collect();
    assert_eq!(warps, [4, 5, 10, 11]);
    assert_eq!([0, 3, 4].map(|index| launch.chosen_warp(index)), [Some(4), Some(11), None]);
    assert_eq!([0, 4, 5, 6, 10, 12].map(|warp| launch.chosen_before(warp)), [0, 0, 1, 2, 2, 4]);
    assert!(!launch.is_chosen(12) && !launch.is_chosen(u32::MAX));
}

#[test]
fn warps_and_streams_name_each_other() {
    let launch = LaunchInfo::new(3, 2, [3, 5, 2], [10, 7, 1], 0).unwrap();
    assert_eq!((launch.warps_per_block(), launch.blocks(), launch.warps()), (3, 30, 90));
    let mut expected = 0;
    for z in 0..2 {
        for y in 0..5 {
            for x in 0..3 {
                for warp_in_block in 0..3 {
                    let id = launch.stream_id(expected).unwrap();
                    assert_eq!(id, StreamId { launch: 3, kernel: 2, block: [x, y, z], warp_in_block });
                    assert_eq!(launch.warp_index([x, y, z], warp_in_block), Some(expected));
                    expected += 1;
                }
            }
        }
    }
    assert_eq!((launch.stream_id(90), launch.lane_mask(90)), (None, None));
    assert_eq!((launch.warp_index([3, 0, 0], 0), launch.warp_index([0, 0, 0], 3)), (None, None));
    // 70 threads: two whole warps and one of six lanes.
    assert_eq!([0, 1, 2].map(|warp| launch.lane_mask(warp).unwrap()), [u32::MAX, u32::MAX, 0x3f]);
}

#[test]
fn impossible_launches_are_refused() {
    let new = |grid, block| LaunchInfo::new(1, 0, grid, block, 0);
    assert!(matches!(new([0, 1, 1], [1, 1, 1]), Err(LaunchError::ZeroDimension { what: "grid", .. })));
    assert!(matches!(new([1, 1, 1], [1, 0, 1]), Err(LaunchError::ZeroDimension { what: "block", .. })));
    assert!(matches!(new([1, 1, 1], [1025, 1, 1]), Err(LaunchError::BlockTooLarge { threads: 1025, .. })));
    assert!(matches!(new([1, 1, 1], [u32::MAX; 3]), Err(LaunchError::BlockTooLarge { .. })));
    assert!(matches!(new([u32::MAX; 3], [1024, 1, 1]), Err(LaunchError::TooManyWarps { .. })));
    assert!(matches!(new([u32::MAX, 1, 1], [33, 1, 1]), Err(LaunchError::TooManyWarps { .. })));
    assert_eq!(new([u32::MAX, 1, 1], [32, 1, 1]).unwrap().warps(), u32::MAX);
}
