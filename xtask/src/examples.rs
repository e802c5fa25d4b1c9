//! Tests of the example changes: pages `docs/contributors/add-*.md`, each with a patch.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use crate::workspace;

    const NAMES: [&str; 4] = ["column", "event", "option", "section"];

    fn patch(name: &str) -> PathBuf {
        workspace::root().join(format!("docs/contributors/examples/{name}.patch"))
    }

    fn page(name: &str) -> String {
        let page = workspace::root().join(format!("docs/contributors/add-{name}.md"));
        fs::read_to_string(page).expect("the page can be read")
    }

    fn apply(folder: &Path, option: &str, name: &str) {
        let mut git = Command::new("git");
        // The copy is not a repository. Without the ceiling, git would use a repository above it.
        git.args(["apply", option])
            .arg(patch(name))
            .current_dir(folder)
            .env("GIT_CEILING_DIRECTORIES", folder);
        let output = git.output().expect("git runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}.patch: {said}\nCONTRIBUTING.md says how to write it anew");
    }

    #[test]
    fn patches_apply_and_touch_the_files_that_their_pages_list() {
        for name in NAMES {
            apply(workspace::root(), "--check", name);
            let text = fs::read_to_string(patch(name)).expect("the patch can be read");
            let mut touched: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
            let page = page(name);
            let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
            let mut listed: Vec<&str> = rows.collect();
            touched.sort_unstable();
            listed.sort_unstable();
            assert_eq!(listed, touched, "add-{name}.md lists other files than its patch touches");
        }
    }

    mod full {
        use super::*;

        #[test]
        fn the_commands_of_each_page_pass_once_its_patch_is_applied() {
            let copy = tempfile::tempdir().expect("a folder can be made");
            for file in workspace::files().expect("git runs") {
                let to = copy.path().join(&file);
                fs::create_dir_all(to.parent().expect("it lies in a folder")).expect("a folder can be made");
                fs::copy(workspace::root().join(&file), to).expect("a file can be copied");
            }
            for name in NAMES {
                apply(copy.path(), "--apply", name);
                let page = page(name);
                let commands = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
                for line in commands.expect("the page has commands").lines() {
                    let mut cargo = workspace::cargo();
                    cargo.args(line.split(' ').skip(1)).current_dir(copy.path());
                    cargo.env("CARGO_TARGET_DIR", workspace::target().expect("it is known"));
                    let output = cargo.env("WARPTRACE_NO_DEVICE_CODE", "1").output().expect("cargo runs");
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{name}: `{line}` failed:\n{said}");
                }
                apply(copy.path(), "--reverse", name);
            }
        }
    }
}
