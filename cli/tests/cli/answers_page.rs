//! `docs/answers.md` shows what the tool prints.

use crate::support::{Folder, tool};

#[test]
fn the_page_shows_what_the_tool_prints() {
    let page = include_str!("../../../docs/answers.md");
    let folder = Folder::new();
    let mut shown = 0;
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for command in block.split("$ warptrace ").skip(1) {
            let (arguments, expected) = command.split_once('\n').unwrap();
            let mut tool = tool();
            tool.current_dir(folder.at("")).args(arguments.split_whitespace());
            let output = tool.output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
            // What a recording prints has times in it.
            if !arguments.starts_with("record ") {
                assert_eq!(expected.trim_end(), printed.trim_end(), "of `warptrace {arguments}`");
                shown += 1;
            }
        }
    }
    assert!(shown >= 8, "{shown} commands are shown");
}
