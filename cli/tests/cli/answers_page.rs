//! `docs/answers.md` shows what the tool prints.

use std::path::Path;

use crate::support::{Folder, tool};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/answers.md");
const BLOCK: &str = "```console\n";
const COMMAND: &str = "$ warptrace ";

/// Runs the commands of a block; answers the block with what they print, and how many it shows.
fn printed(block: &str, folder: &Path) -> (String, usize) {
    let (mut text, mut shown) = (String::new(), 0);
    for command in block.lines().filter_map(|line| line.strip_prefix(COMMAND)) {
        let output = tool().current_dir(folder).args(command.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        text += &format!("{COMMAND}{command}\n");
        // What a recording prints has times in it.
        if !command.starts_with("record ") {
            text += std::str::from_utf8(&output.stdout).unwrap();
            shown += 1;
        }
    }
    (text, shown)
}

/// With `WARPTRACE_OVERWRITE_PAGE=1` the page is written instead of compared.
#[test]
fn the_page_shows_what_the_tool_prints() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let folder = Folder::new();
    let mut parts = page.split(BLOCK);
    let mut new = parts.next().unwrap().to_owned();
    let mut shown = 0;
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let (text, of_block) = printed(block, &folder.at(""));
        new += &format!("{BLOCK}{text}```{rest}");
        shown += of_block;
    }
    assert!(shown >= 8, "{shown} commands are shown");
    if std::env::var_os("WARPTRACE_OVERWRITE_PAGE").is_some_and(|value| value == "1") {
        std::fs::write(PAGE, new).unwrap();
        return;
    }
    for (line, (old, new)) in (1..).zip(page.lines().zip(new.lines())) {
        assert_eq!(old, new, "docs/answers.md:{line}; CONTRIBUTING.md says how to write the page anew");
    }
    assert_eq!(page, new);
}
