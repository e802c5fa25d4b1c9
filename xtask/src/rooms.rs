//! Tests the dependency rules between packages with `cargo metadata`.
//!
//! The room of a package is its top folder. Tests of readers use committed traces, so they do not depend on
//! packages that record. Other dependencies of tests are not checked.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use serde_json::Value;

    use crate::workspace;

    struct Package {
        /// Path below the root of the workspace.
        folder: String,
        /// Normal and build dependencies, by name.
        needs: BTreeSet<String>,
        /// Additional dependencies of tests, by name.
        tests_need: BTreeSet<String>,
    }

    impl Package {
        fn is_in(&self, room: &str) -> bool {
            Path::new(&self.folder).starts_with(room)
        }
    }

    fn packages() -> BTreeMap<String, Package> {
        let mut command = workspace::cargo();
        command.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
        let output = command.output().expect("cargo runs");
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let package = |package: &Value| {
            let manifest = text(&package["manifest_path"]);
            let folder = Path::new(&manifest).parent().and_then(|it| it.strip_prefix(workspace::root()).ok());
            let folder = folder.expect("it lies in the workspace").display().to_string();
            let needs = |of_tests: bool| {
                let all = package["dependencies"].as_array().expect("a list").iter();
                all.filter(|need| (need["kind"] == "dev") == of_tests)
                    .map(|need| text(&need["name"]))
                    .collect()
            };
            let (needs, tests_need) = (needs(false), needs(true));
            (text(&package["name"]), Package { folder, needs, tests_need })
        };
        metadata["packages"].as_array().expect("a list").iter().map(package).collect()
    }

    /// Returns direct and indirect dependencies of `name` within the workspace.
    fn reached<'a>(packages: &'a BTreeMap<String, Package>, name: &str) -> BTreeMap<&'a str, &'a Package> {
        let (mut found, mut open) = (BTreeMap::new(), vec![name.to_owned()]);
        while let Some(name) = open.pop() {
            for need in &packages[&name].needs {
                if let Some((need, package)) = packages.get_key_value(need)
                    && found.insert(need.as_str(), package).is_none()
                {
                    open.push(need.clone());
                }
            }
        }
        found
    }

    #[test]
    fn readers_do_not_depend_on_recording() {
        let packages = packages();
        let reads = |package: &Package| {
            ["decoder", "cli/report", "cli/tui", "format"].iter().any(|room| package.is_in(room))
        };
        let readers: Vec<&String> =
            packages.iter().filter(|(_, package)| reads(package)).map(|(name, _)| name).collect();
        assert!(readers.len() >= 8, "{readers:?}");
        for reader in readers {
            let mut all = reached(&packages, reader);
            for need in packages[reader].tests_need.iter().filter(|need| packages.contains_key(*need)) {
                all.insert(need, &packages[need]);
                all.extend(reached(&packages, need));
            }
            for (need, package) in all {
                let records = ["tracer-host", "tracer-device", "workloads"].map(|room| package.is_in(room));
                assert!(
                    !records.contains(&true),
                    "{reader} reads traces, and depends on {need}, which records"
                );
            }
        }
    }

    #[test]
    fn columns_depend_on_nothing_of_traces() {
        // Kernels, the file format and readers may all depend on this package.
        let packages = packages();
        let reached = reached(&packages, "warptrace-columns");
        assert!(reached.is_empty(), "{:?}", reached.keys());
    }

    #[test]
    fn only_workloads_depend_on_workloads() {
        let packages = packages();
        for (name, package) in packages.iter().filter(|(_, package)| !package.is_in("workloads")) {
            for need in &package.needs {
                let is_workload = packages.get(need).is_some_and(|need| need.is_in("workloads"));
                assert!(!is_workload, "{name} depends on {need}, which is for tests and benchmarks alone");
            }
        }
    }

    #[test]
    fn only_the_cuda_backend_and_what_lends_it_name_the_driver() {
        let names = |file: &&String| {
            let text = std::fs::read_to_string(workspace::root().join(file)).unwrap_or_default();
            file.ends_with(".rs") && text.contains("cudarc::")
        };
        let files = workspace::files().expect("git runs");
        // The library accepts a context and arrays of its user. `xtask` writes a user's package that does so.
        let may = [
            "tracer-host/recorder/src/cuda/",
            "tracer-host/shim/",
            "tracer-host/warptrace/",
            "examples/own_context/",
            "xtask/",
        ];
        let others: Vec<&String> = files
            .iter()
            .filter(names)
            .filter(|file| !may.iter().any(|room| file.starts_with(room)))
            .collect();
        assert!(others.is_empty(), "{others:?}");
    }

    #[test]
    fn a_package_lies_in_a_room() {
        let rooms: BTreeSet<String> = packages()
            .into_values()
            .filter_map(|package| package.folder.split('/').next().map(str::to_owned))
            .collect();
        let known =
            ["cli", "decoder", "format", "fuzz", "tracer-device", "tracer-host", "workloads", "xtask"];
        assert_eq!(rooms.iter().map(String::as_str).collect::<Vec<_>>(), known);
    }
}
