//! Windows: their text form and their selection.

use std::num::NonZeroU32;

use super::*;

fn range(text: &str) -> NumberRange {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn ranges_are_written_as_in_rust() {
    for (text, first, last) in [
        ("3", 3, 3),
        ("3..7", 3, 6),
        ("3..=7", 3, 7),
        ("3..", 3, u32::MAX),
        ("..7", 0, 6),
        ("..=7", 0, 7),
        ("..", 0, u32::MAX),
        ("0..1", 0, 0),
        ("5..=4294967295", 5, u32::MAX),
    ] {
        assert_eq!(range(text), NumberRange { first, last }, "{text}");
        assert_eq!(range(&range(text).to_string()), range(text));
    }
}

#[test]
fn what_is_no_range_is_told() {
    for text in
        ["", "x", "-1", "+1", "3-7", "3..x", "3...7", "3..+7", "4294967296", "1/4", " 3", "3..=", "1,2"]
    {
        let error = text.parse::<NumberRange>().expect_err(text);
        assert_eq!(error, WindowError::Range { text: text.to_owned() });
        assert!(error.to_string().starts_with(&format!("`{text}` is no range")), "{error}");
    }
    for text in ["7..3", "3..3", "7..=6", "..0"] {
        assert_eq!(text.parse::<NumberRange>(), Err(WindowError::Empty { text: text.to_owned() }));
    }
}

#[test]
fn blocks_are_a_range_or_a_part() {
    assert_eq!("1/64".parse::<BlockChoice>().unwrap(), BlockChoice::every(NonZeroU32::new(64).unwrap()));
    assert_eq!("1/1".parse::<BlockChoice>().unwrap(), BlockChoice::ALL);
    assert_eq!("2..4".parse::<BlockChoice>().unwrap(), BlockChoice::range(range("2..4")));
    for text in ["1/0", "2/3", "1/", "/4", "1/x", "1/+4", "1/4/2"] {
        assert_eq!(text.parse::<BlockChoice>(), Err(WindowError::Part { text: text.to_owned() }));
    }
    for text in ["1/64", "2..=4", "..", "7"] {
        assert_eq!(text.parse::<BlockChoice>().unwrap().to_string(), text);
    }
}

fn launch(number: u32) -> LaunchInfo {
    LaunchInfo::new(number, 0, [10, 1, 1], [128, 1, 1], 0).unwrap()
}

#[test]
fn what_is_chosen_fits_the_launch() {
    let of = |blocks: &str, warps: &str| {
        let window = Window { blocks: blocks.parse().unwrap(), warps: range(warps), ..Window::default() };
        let chosen = window.choose("k", &launch(0), 0, 0);
        launch(0).with_chosen(chosen).expect("it fits");
        let ChosenWarps { first_block, blocks, block_step, first_warp, block_warps } = chosen;
        [first_block, blocks, block_step, first_warp, block_warps]
    };
    assert_eq!(of("..", ".."), [0, 10, 1, 0, 4]);
    assert_eq!(of("3..7", "1"), [3, 4, 1, 1, 1]);
    assert_eq!(of("8..100", "2..9"), [8, 2, 1, 2, 2]);
    assert_eq!(of("1/4", ".."), [0, 3, 4, 0, 4]);
    assert_eq!(of("1/9", ".."), [0, 2, 9, 0, 4]);
    assert_eq!(of("1/100", ".."), [0, 1, 1, 0, 4]);
    assert_eq!(of("10..", ".."), [0; 5]);
    assert_eq!(of("..", "4.."), [0; 5]);
}

#[test]
fn launches_kernels_and_events_choose_whole_launches() {
    let chosen = |window: &Window, kernel: &str, number: u32, recorded: u64| {
        let count = window.choose(kernel, &launch(number), recorded, 0).count();
        assert!([0, 40].contains(&count));
        count != 0
    };
    let window = Window { launches: range("2..=3"), ..Window::default() };
    assert_eq!([1, 2, 3, 4].map(|number| chosen(&window, "k", number, 9)), [false, true, true, false]);
    let window = Window { max_events: Some(100), ..Window::default() };
    assert_eq!(
        [0, 99, 100, u64::MAX].map(|events| chosen(&window, "k", 0, events)),
        [true, true, false, false]
    );
    let window = Window { first: Some(2), ..Window::default() };
    let counts = [0, 1, 2, 9].map(|before| window.choose("k", &launch(7), 0, before).count());
    assert_eq!(counts, [40, 40, 0, 0]);
    let window = Window { kernels: vec!["k".to_owned(), "mis_*".to_owned()], ..Window::default() };
    for (kernel, named) in [("k", true), ("mis_find", true), ("mis", false), ("kk", false)] {
        assert_eq!(chosen(&window, kernel, 0, 0), named, "{kernel}");
    }
    assert_eq!(window.unknown_kernel(&["k", "mis_find"]), None);
    assert_eq!(window.unknown_kernel(&["k", "mis"]), Some("mis_*"));
}

#[test]
fn stars_stand_for_any_characters() {
    for (pattern, matching, others) in [
        ("*", &["", "a", "abc"][..], &[][..]),
        ("a*", &["a", "abc"], &["", "ba"]),
        ("*c", &["c", "abc"], &["ca"]),
        ("a*b*c", &["abc", "aXbYc", "abbc"], &["ac", "acb", "ab"]),
        ("a**c", &["ac", "abc"], &["a"]),
        ("ab*bc", &["abbc"], &["abc"]),
    ] {
        assert!(matching.iter().all(|name| fits(pattern, name)), "{pattern}");
        assert!(others.iter().all(|name| !fits(pattern, name)), "{pattern}");
    }
}

#[test]
fn a_window_says_what_it_is() {
    assert_eq!(Window::default().to_string(), "everything");
    assert!(Window::default().is_all() && !Window::default().looks_inside());
    let window = Window {
        kernels: vec!["a".to_owned(), "b*".to_owned()],
        nvtx: vec!["step*".to_owned(), "b@nccl".to_owned()],
        launches: range("3"),
        first: Some(9),
        blocks: "1/4".parse().unwrap(),
        warps: range("..2"),
        after: Some("7:5".parse().unwrap()),
        max_events: Some(1_000),
    };
    assert_eq!(
        window.to_string(),
        "kernels a b*, within ranges step* b@nccl, launches 3, the first 9 launches of each kernel, blocks 1/4, warps 0..=1, lanes from visit 5 of location 7 on, \
         launches until 1000 events"
    );
    assert!(!window.is_all());
    assert!(window.is_within(["step 3", "a"]) && window.is_within(["a", "b@nccl"]));
    assert!(!window.is_within(["a", "b"]) && !window.is_within([]) && Window::default().is_within([]));
    assert!(window.looks_inside());
    assert!(!Window { blocks: BlockChoice::ALL, warps: NumberRange::ALL, ..window }.looks_inside());
}
