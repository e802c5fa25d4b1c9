//! The documentation contains the example's files unchanged. `cargo xtask package` tests that the examples
//! build, run and trace, with the packages for users.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

const FILES: [&str; 4] = ["Cargo.toml", "build.rs", "src/kernels.rs", "src/main.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

#[test]
fn the_page_has_the_files_as_they_are() {
    let page = fs::read_to_string(root().join("docs/users/own-kernel.md")).unwrap();
    for file in FILES {
        let at = page.find(&format!("`{file}`")).unwrap_or_else(|| panic!("{file} is not on the page"));
        let block = page[at..].split("```").nth(1).unwrap();
        let block = block.split_once('\n').unwrap().1;
        assert_eq!(block, fs::read_to_string(root().join("examples/spmv").join(file)).unwrap(), "{file}");
    }
}
