//! Launches and the Python code that makes them.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use warptrace_format::file::StackFrame;
use warptrace_host::HostMessage;

use crate::support::{
    Folder, compare_with_reference, json, metadata, printed, refused, text, write_launch, writer,
};

/// A stack below `main`, innermost frame first.
fn stack(frames: &[(&str, u32, &str)]) -> Arc<[StackFrame]> {
    let main = ("/home/user/train.py", 90, "<module>");
    let frame = |&(file, line, function): &(&str, u32, &str)| StackFrame {
        function: function.to_owned(),
        file: file.to_owned(),
        line,
    };
    frames.iter().chain([&main]).map(frame).collect()
}

/// Four launches: two from one line by two ways, one from another line, one without a stack.
pub(crate) fn with_stacks(folder: &Folder) -> PathBuf {
    const CALL: (&str, u32, &str) =
        ("/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1751, "Module.call");
    const FORWARD: (&str, u32, &str) = ("/home/user/model.py", 31, "Model.forward");
    let path = folder.at("stacks.wtrc");
    let mut writer = writer(&path, &metadata("matmul").with_location(1, "entry", ""));
    let stacks =
        [stack(&[FORWARD]), stack(&[CALL, FORWARD]), stack(&[("/home/user/a b\u{1b}.py", 0, "loss")])];
    writer.write_message(&HostMessage::Stacks((0..).zip(stacks).collect())).unwrap();
    for number in 0..4 {
        write_launch(&mut writer, number, [1, 32], &[&[1, 0, 255, 0, 255, 255]]);
    }
    writer.finish().unwrap();
    path
}

#[test]
fn launches_are_summed_up_by_the_line_that_makes_them() {
    let folder = Folder::new();
    let path = with_stacks(&folder);
    let path = text(&path);
    let stats = printed(&["stats", path]);
    let row = |start: &str| {
        let row = stats.lines().find(|line| line.trim().starts_with(start));
        row.unwrap_or_else(|| panic!("{start}: {stats}")).trim()[start.len()..]
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    assert_eq!(row("user/model.py:31 in Model.forward")[..2], ["2", "2"], "{stats}");
    assert_eq!(row("user/a b\\u{1b}.py in loss")[0], "1");
    assert_eq!(row("(no call stack)")[0], "1");
    let stacks = printed(&["stats", path, "--by", "stack"]);
    let expected = "\n1 launch of matmul\n    /usr/lib/python3/dist-packages/torch/nn/modules/module.py:1751 in \
        Module.call\n  > /home/user/model.py:31 in Model.forward\n    /home/user/train.py:90 in <module>\n";
    assert!(stacks.contains(expected), "{stacks}");
    let sites = json(&["stats", path])["launch_sites"].take();
    assert_eq!(sites.as_array().map(Vec::len), Some(3));
    assert_eq!(
        (&sites[0]["site"], &sites[0]["launches"]),
        (&"/home/user/model.py:31 in Model.forward".into(), &2.into())
    );
    let stacks = json(&["stats", path, "--by", "stack"])["launch_sites"].take();
    assert_eq!(stacks.as_array().map(Vec::len), Some(4));
    assert_eq!(stacks.as_array().unwrap().iter().filter(|site| site["site"] == Value::Null).count(), 1);
    assert!(
        printed(&["decode", path, "--launch", "0"])
            .contains("launch 0 (model.py:31 in Model.forward) matmul")
    );
    let info = printed(&["info", path]);
    assert!(info.contains("launched at") && info.contains("model.py:31 in Model.forward"), "{info}");
    compare_with_reference(&[with_stacks(&Folder::new())]);
}

#[test]
fn a_trace_without_stacks_says_so() {
    let folder = Folder::new();
    let path = super::labels::labelled(&folder);
    assert!(!printed(&["stats", text(&path)]).contains("launched at"));
    refused(&["stats", text(&path), "--by", "stack"], "no launch has a call stack");
}
