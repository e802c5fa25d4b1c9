//! `new`. `cargo xtask package` tests that the package builds and traces: it consists of the files of the
//! example.

use crate::support::{Folder, printed, run};

#[test]
fn a_package_is_made_once() {
    let folder = Folder::new();
    let path = folder.at("my-kernels");
    let path = path.to_str().unwrap();
    let output = printed(&["new", path]);
    assert!(output.contains("cargo run"), "{output}");
    let read = |file: &str| std::fs::read_to_string(format!("{path}/{file}")).unwrap();
    assert!(read("Cargo.toml").contains("name = \"my-kernels\""));
    assert!(read("src/kernels.rs").contains("#[warptrace::kernels]"));
    assert!(read("src/main.rs").contains("Device::auto()"));
    assert!(read("build.rs").contains("warptrace_build::compile"));

    let (code, _, errors) = run(&["new", path]);
    assert_eq!(code, 1);
    assert!(errors.contains("is there already: name a folder that is not"), "{errors}");
}

#[test]
fn what_cannot_be_a_package_is_refused() {
    let folder = Folder::new();
    for name in ["7up", "a b", "ü", ".."] {
        let (code, _, errors) = run(&["new", folder.at(name).to_str().unwrap()]);
        assert_eq!(code, 1, "{name}");
        assert!(errors.contains("does not end in the name of a package"), "{errors}");
    }
    let path = folder.at("fine");
    let (code, _, errors) =
        run(&["new", path.to_str().unwrap(), "--sources", folder.at(".").to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(errors.contains("does not hold warptrace's sources"), "{errors}");
    assert!(!path.exists());
}
