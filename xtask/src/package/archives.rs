//! Unpacked archives of `cargo package`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::workspace;

pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) folder: PathBuf,
}

/// Names the commit of a package. It changes with every commit.
const COMMIT_FILE: &str = ".cargo_vcs_info.json";

/// Files that every package must have.
const EVERYWHERE: [&str; 5] = ["Cargo.toml", "Cargo.lock", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Packages the workspace except `unpublished`, and unpacks the packages. Keeps unchanged files.
pub(super) fn make(folder: &Path, unpublished: &[&str]) -> anyhow::Result<Vec<Package>> {
    let outputs = folder.join("made");
    let mut cargo = workspace::cargo();
    cargo.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--color", "never"]);
    for package in unpublished {
        cargo.args(["--exclude", package]);
    }
    // Remove archives of packages that no longer exist.
    if outputs.exists() {
        fs::remove_dir_all(&outputs).with_context(|| format!("cannot remove {}", outputs.display()))?;
    }
    let output = cargo.arg("--target-dir").arg(&outputs).output().context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "cargo cannot package the workspace:\n{said}");
    // Cargo warns that excluded tests are ignored.
    let warning =
        said.lines().find(|line| line.starts_with("warning: ") && !line.contains("warning: ignoring "));
    if let Some(warning) = warning {
        bail!("cargo warns of a package: {warning}");
    }

    let made = outputs.join("package");
    let mut packages = Vec::new();
    for archive in files(&made)?.iter().filter(|file| file.ends_with(".crate") && !file.contains('/')) {
        let stem = archive.trim_end_matches(".crate");
        let (name, version) = stem.rsplit_once('-').with_context(|| format!("{archive} has no version"))?;
        let fresh = made.join("unpacked");
        fs::create_dir_all(&fresh).with_context(|| format!("cannot make {}", fresh.display()))?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(made.join(archive)).arg("-C").arg(&fresh);
        ensure!(tar.status().context("cannot run tar")?.success(), "tar cannot unpack {archive}");
        let package =
            Package { name: name.to_owned(), version: version.to_owned(), folder: folder.join(name) };
        copy_changed(&fresh.join(stem), &package.folder, &[COMMIT_FILE])?;
        check_contents(&package)?;
        packages.push(package);
    }
    ensure!(!packages.is_empty(), "cargo has packaged nothing");
    Ok(packages)
}

/// Checks the contents that a registry and its users require.
fn check_contents(package: &Package) -> anyhow::Result<()> {
    let Package { name, folder, .. } = package;
    for file in EVERYWHERE {
        ensure!(folder.join(file).is_file(), "the package {name} lacks {file}");
    }
    let path = folder.join("Cargo.toml");
    let manifest = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for key in ["description", "license", "repository", "readme", "keywords", "categories", "rust-version"] {
        ensure!(manifest.contains(&format!("\n{key} = ")), "the manifest of {name} does not have `{key}`");
    }
    ensure!(
        !manifest.contains("path = \"../"),
        "the manifest of {name} names a folder outside of the package"
    );
    Ok(())
}

/// Checks that builds wrote no files into the packages. Folders of a registry are read-only.
pub(super) fn check_untouched(folder: &Path, packages: &[Package]) -> anyhow::Result<()> {
    for Package { name, version, folder: unpacked } in packages {
        let fresh = files(&folder.join("made/package/unpacked").join(format!("{name}-{version}")))?;
        let added = files(unpacked)?.into_iter().find(|file| !fresh.contains(file));
        if let Some(file) = added {
            bail!("building has written {file} into the folder of the package {name}");
        }
    }
    Ok(())
}

/// Copies `from` to `to`, except names in `except`: writes changed files, and removes files not in `from`.
pub(super) fn copy_changed(from: &Path, to: &Path, except: &[&str]) -> anyhow::Result<()> {
    let is_meant = |file: &String| !except.iter().any(|name| file.split('/').next() == Some(name));
    let wanted: BTreeSet<String> = files(from)?.into_iter().filter(is_meant).collect();
    for file in &wanted {
        let (source, target) = (from.join(file), to.join(file));
        let bytes = fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
        if fs::read(&target).is_ok_and(|found| found == bytes) {
            continue;
        }
        let written =
            fs::create_dir_all(target.parent().unwrap_or(to)).and_then(|()| fs::write(&target, bytes));
        written.with_context(|| format!("cannot write {}", target.display()))?;
    }
    for file in files(to)?.into_iter().filter(|file| is_meant(file) && !wanted.contains(file)) {
        let path = to.join(file);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Returns all files below a folder by relative path; empty if the folder does not exist.
fn files(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(inner) = folders.pop() {
        let path = folder.join(&inner);
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
            let entry = entry?;
            let name = format!("{inner}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(name + "/");
            } else {
                found.insert(name);
            }
        }
    }
    Ok(found)
}
