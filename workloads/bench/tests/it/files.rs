//! A recording must not overwrite the files of its program.

use std::fs;

use crate::support::{Folder, bench, text};

#[test]
fn a_recording_does_not_write_to_files_of_its_program() {
    let folder = Folder::new();
    let graph = folder.at("graph");
    let edges = "0 1\n1 2\n";
    fs::write(&graph, edges).unwrap();
    let hard = folder.at("hard.wtrc");
    fs::hard_link(&graph, &hard).unwrap();
    for name in [&graph, &hard] {
        let record = ["record", "mis", "--device", "sim", "--graph", text(&graph), "-o", text(name)];
        let (code, _, errors) = bench(&record);
        assert!(code == 1 && errors.contains("are one file"), "{}: {errors}", name.display());
        assert_eq!(fs::read_to_string(&graph).unwrap(), edges);
    }
    // Two paths to one file that does not exist yet.
    fs::create_dir(folder.at("sub")).unwrap();
    let (picture, trace) = (folder.at("picture"), folder.at("sub/../picture"));
    let record = ["record", "fractal", "--device", "sim", "--picture", text(&picture), "-o", text(&trace)];
    let (code, _, errors) = bench(&record);
    assert!(code == 1 && errors.contains("are one file") && !picture.exists(), "{errors}");
    #[cfg(unix)]
    {
        let link = folder.at("link");
        std::os::unix::fs::symlink("picture", &link).unwrap();
        let record = ["record", "fractal", "--device", "sim", "--picture", text(&picture), "-o", text(&link)];
        let (code, _, errors) = bench(&record);
        assert!(code == 1 && errors.contains("are one file") && !picture.exists(), "{errors}");
    }
    // A mesh consists of several files.
    let mesh = [("node", "3 2 0 0\n1 0 0\n2 1 0\n3 0 1\n"), ("ele", "1 3 0\n1 1 2 3\n")];
    for (extension, words) in mesh {
        fs::write(folder.at(&format!("mesh.{extension}")), words).unwrap();
    }
    for given in ["mesh", "mesh.node", "mesh.ele"] {
        for (extension, words) in mesh {
            let output = folder.at(&format!("mesh.{extension}"));
            let given = folder.at(given);
            let record = ["record", "dmr", "--device", "sim", "--mesh", text(&given), "-o", text(&output)];
            let (code, _, errors) = bench(&record);
            assert!(code == 1 && errors.contains("are one file"), "{given:?} {extension}: {errors}");
            assert_eq!(fs::read_to_string(&output).unwrap(), words);
        }
    }
}
