//! Features that are not in this build: the command line is the same, and a message names the remedy.
#![cfg(not(all(feature = "parquet", feature = "store", feature = "tui")))]

use crate::support::{recorded, run, text};

/// Runs commands that need a feature. Each fails with a message about `feature`.
fn needs(feature: &str, commands: &[&[&str]]) {
    for arguments in commands {
        let (code, output, errors) = run(arguments);
        assert_eq!((code, output.as_str()), (1, ""), "{arguments:?}");
        let expected = format!(
            "this warptrace was built without {feature}: install the Python wheel, or build it with \
             `cargo install --path cli/tool --features full`\n"
        );
        assert!(errors.ends_with(&expected) && errors.lines().count() == 1, "{arguments:?}: {errors}");
    }
}

#[cfg(not(feature = "tui"))]
#[test]
fn tui_is_listed_and_says_how_to_get_it() {
    needs("`tui`", &[&["tui", "a.wtrc"], &["tui", "a.wtrc", "--source", "."]]);
    assert!(run(&["--help"]).1.contains("\n  tui "));
    assert!(run(&["tui", "--help"]).1.contains("--source <FOLDER>"));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_says_how_to_get_it() {
    let (folder, trace) = recorded(&[]);
    let export = |out| ["export", text(&trace), "--to", "parquet", "-o", out];
    let (file, tables) = (folder.at("out"), folder.at("tables/"));
    let [file, tables] = [&file, &tables].map(|path| export(text(path)));
    needs("Parquet", &[&file, &tables]);
    assert_eq!(folder.files(), ["a.wtrc"]);
}

#[cfg(not(feature = "store"))]
#[test]
fn object_stores_say_how_to_get_them() {
    needs(
        "object stores",
        &[
            &["top", "s3://bucket/a.wtrc"],
            &["verify", "gs://bucket/folder/"],
            &["stats", "s3://bucket/run.*.wtrc"],
            &["info", "https://host/a.wtrc"],
        ],
    );
}
