//! Damaged files are analysed, or refused with an error. Runs the fuzz target's checks on the golden files.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::path::Path;

use warptrace_analysis::fuzzing::analyse_arbitrary;

fn golden_files_add_up(places: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../decode/tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wtrc"));
    assert!(files.len() > 3, "{files:?}");
    for path in files {
        let whole = std::fs::read(path).unwrap();
        analyse_arbitrary(&whole);
        let step = 1 + whole.len() / places;
        for at in (0..whole.len()).step_by(step) {
            analyse_arbitrary(&whole[..at]);
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            analyse_arbitrary(&changed);
        }
    }
}

#[test]
fn golden_files_add_up_whole_cut_and_changed() {
    golden_files_add_up(20);
}

mod full {
    #[test]
    fn golden_files_add_up_whole_cut_and_changed() {
        super::golden_files_add_up(64);
    }
}
